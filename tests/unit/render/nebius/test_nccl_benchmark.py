"""The script of `spec.periodicChecks.ncclBenchmark`, run with a stand-in for nccl-tests. S113."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import msgspec
import pytest

from penstock.api.nebius.active_check import ActiveCheck
from penstock.api.nebius.older_fields import NcclArguments
from penstock.api.registry import problems, unsupported_fields
from penstock.render.nebius.check.nccl_benchmark import script
from support.nebius_clusters import OLDER, of_shape

PERF = """#!/bin/bash
echo "called with $* IB=$NCCL_IB_DISABLE P2P=$NCCL_P2P_DISABLE"
echo "# Avg bus bandwidth    : $GOT"
"""


def run(folder: Path, given: NcclArguments, got: str) -> tuple[int, str, str]:
    """Exit status, output, and the call of nccl-tests."""
    program, calls = folder / "all_reduce_perf", folder / "calls"
    program.write_text(PERF.replace("echo", f"tee -a {calls} <<<", 1))
    program.chmod(0o755)
    done = subprocess.run(
        ["bash", "-c", script(given)],
        env={
            "PATH": f"{folder}:{os.environ['PATH']}",
            "GOT": got,
            "SLURM_GPUS_ON_NODE": "8",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr, calls.read_text()


@pytest.mark.parametrize(("got", "status"), [("350", 1), ("400", 0), ("1234.5", 0), ("", 1)])
def test_a_node_below_the_threshold_fails_with_the_value(
    got: str, status: int, tmp_path: Path
) -> None:
    found, said, _ = run(tmp_path, NcclArguments(threshold_more_than="400"), got)
    assert found == status, said
    if got:
        assert f"{got} GB/s, at least 400 expected" in said


@pytest.mark.parametrize("use", [True, False])
def test_arguments_have_the_published_defaults(use: bool, tmp_path: Path) -> None:
    given = NcclArguments(use_infiniband=use)
    _, _, call = run(tmp_path, given, "400")
    disabled = "IB= P2P=1" if use else "IB=1 P2P="
    assert call.strip() == f"called with -b 512Mb -e 8Gb -f 2 -g 8 {disabled}"
    assert "#SBATCH --time=20:00\n" in script(given)


def test_it_asks_for_gpus_so_that_it_is_skipped_without_any() -> None:
    assert "\n#SBATCH --gres=gpu:1\n" in script(NcclArguments())


def test_its_check_is_one_that_the_operator_takes() -> None:
    given = {"enabled": True, "image": "i", "k8sNodeFilterName": "gpu"}
    found = of_shape(OLDER, {"spec.periodicChecks": {"ncclBenchmark": given}})
    (made,) = (one for one in found.objects() if one["kind"] == "ActiveCheck")
    assert made["metadata"]["ownerReferences"][0]["kind"] == "SlurmCluster"
    assert "failureReactions" not in made["spec"]
    check = msgspec.convert(made, ActiveCheck)
    assert (problems(check), list(unsupported_fields(check))) == ([], [])
    given["enabled"] = False
    off = of_shape(OLDER, {"spec.periodicChecks": {"ncclBenchmark": given}})
    assert not [one for one in off.objects() if one["kind"] == "ActiveCheck"]
