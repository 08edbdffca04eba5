"""The chart `soperator-activechecks`: ActiveChecks with scripts of ours, and the Job that waits.

S113.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

from penstock.api.kubernetes.meta import Json
from penstock.api.nebius.active_check import ActiveCheck
from penstock.api.registry import problems, unsupported_fields
from penstock.local import images
from penstock.local.charts import CHARTS
from support.charts import REGISTRY, lint, rejection, render
from support.structural import faults, schemas
from support.value_keys import everything

# The first test that needs Helm compiles it.
pytestmark = pytest.mark.timeout(1800)

CHART = "soperator-activechecks"
SCRIPTS = CHARTS / CHART / "scripts"
SCHEMA = schemas()["ActiveCheck"]


def chart(given: Json | None = None) -> dict[str, Json]:
    return render(given, chart=CHART, release="checks", namespace="ml")


def checks(given: Json | None = None) -> dict[str, Json]:
    """Specs of the ActiveChecks, by the names that the values have."""
    prefix = "ActiveCheck soperator-"
    return {
        name.removeprefix(prefix): one["spec"]
        for name, one in chart(given).items()
        if name.startswith(prefix)
    }


@pytest.mark.parametrize("given", [None, everything(CHART)], ids=["default", "everything"])
def test_the_operator_takes_every_check_and_uses_each_field(given: Json | None) -> None:
    for name, one in chart(given).items():
        if one["kind"] == "ActiveCheck":
            assert list(faults(one, SCHEMA)) == [], name
            made = msgspec.convert(one, ActiveCheck)
            assert problems(made) == [], name
            assert list(unsupported_fields(made)) == [], name


def test_helm_finds_no_fault() -> None:
    assert "1 chart(s) linted, 0 chart(s) failed" in lint(
        CHART, "--set", f"global.imageRegistry={REGISTRY}"
    )


def test_a_check_that_is_off_is_left_out_of_dependencies() -> None:
    """soperator: a name in dependsOn that does not exist is waited for."""
    found = checks()
    assert "manage-jail-state" not in found
    assert found["gpu-checks"]["dependsOn"] == [
        "soperator-wait-for-soperatorchecks-srun-ready",
        "soperator-wait-for-topology",
    ]
    assert "soperator-manage-jail-state" in checks(everything(CHART))["gpu-checks"]["dependsOn"]


def test_a_check_of_gpus_asks_for_them_so_that_it_is_skipped_without_any() -> None:
    found = checks({"slurmJob": {"gpusPerNode": "4"}})["gpu-checks"]["slurmJobSpec"]
    assert {"name": "SBATCH_GPUS_PER_NODE", "value": "4"} in found["jobContainer"]["env"]
    assert "image" not in found["jobContainer"]


def test_images_have_the_names_under_which_they_are_pushed() -> None:
    pushed = images.names(REGISTRY, jail=True)
    found = checks()
    for name in ("create-user-soperatorchecks", "retrigger-checks"):
        assert found[name]["k8sJobSpec"]["jobContainer"]["image"] in pushed, name
    job: Any = chart()["Job soperator-wait-for-active-checks"]["spec"]["template"]["spec"]
    assert job["containers"][0]["image"] in pushed


def test_names_of_a_cluster_with_a_long_name_fit_and_differ() -> None:
    ref = "a-cluster-whose-name-has-38-characters"
    given = {**everything(CHART), "slurmClusterRefName": ref}
    found = {key: one for key, one in chart(given).items() if one["kind"] == "ActiveCheck"}
    names = {one["spec"]["name"] for one in found.values()}
    assert len(names) == len(found) == 12
    for one in found.values():
        assert problems(msgspec.convert(one, ActiveCheck)) == []
        assert set(one["spec"].get("dependsOn", ())) <= names


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"global": {}}, ": name an image, or set global.imageRegistry"),
        ({"checks": {"manage-jail-state": {"enabled": True}}}, "images.sansible: name an image"),
        (
            {"checks": {"cudaSamples": {"suspend": False}}},
            "checks.cudaSamples (suspend): the chart",
        ),
        ({"checks": {"gpu-checks": {"slurmJobSpec": {"sbatchScriptFile": "x"}}}}, "no file x"),
        ({"checks": {"gpu-checks": {"drainReasonPrefix": "x"}}}, "drainReasonPrefix"),
    ],
)
def test_values_that_cannot_work_are_named(given: Json, words: str) -> None:
    assert words in rejection(given, chart=CHART)


def test_a_check_of_your_own_needs_no_file_of_the_chart() -> None:
    mine: Json = {
        "enabled": True,
        "checkType": "slurmJob",
        "slurmJobSpec": {"sbatchScript": "#!/bin/bash\ntrue\n"},
    }
    found = checks({"checks": {"mine": mine}})["mine"]
    assert found["slurmJobSpec"]["sbatchScript"] == "#!/bin/bash\ntrue\n"
    assert found["suspend"] is found["runAfterCreation"] is False


def run(script: str, folder: Path, programs: dict[str, str], **variables: str) -> str:
    """Exit status and output of a script, with stand-ins for programs of the jail."""
    for name, text in programs.items():
        (folder / name).write_text(f"#!/bin/bash\n{text}\n")
        (folder / name).chmod(0o755)
    path = f"{folder}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", str(SCRIPTS / script)],
        env={"PATH": path, "SLURM_JOB_ID": "5", **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    return f"{done.returncode} {done.stdout}{done.stderr}"


GPUS = """case "$1" in
--query-gpu=index) printf '0\\n1\\n' ;;
--query-gpu=index,ecc*) printf '0, 0\\n1, %s\\n' "$ECC" ;;
--query-gpu=*) printf '0, [N/A]\\n1, [N/A]\\n' ;;
--query-remapped-rows=*) printf '00:01, No, %s\\n' "$ROWS" ;;
esac"""


@pytest.mark.parametrize(
    ("gpus", "ecc", "rows", "words"),
    [
        ("2", "0", "No", "0 PASS 2 GPUs"),
        ("3", "0", "No", "1 FAIL 2 of 3 GPUs answer"),
        ("2", "4", "No", "1 FAIL GPU 1: ecc.errors.uncorrected.volatile.total is 4"),
        ("2", "[N/A]", "No", "0 PASS 2 GPUs"),
        ("2", "0", "Yes", "1 FAIL GPU 00:01: rows cannot be remapped"),
    ],
)
def test_the_check_of_gpus_names_what_it_finds(
    gpus: str, ecc: str, rows: str, words: str, tmp_path: Path
) -> None:
    found = run(
        "gpu-checks.sh",
        tmp_path,
        {"nvidia-smi": GPUS},
        SLURM_GPUS_ON_NODE=gpus,
        ECC=ecc,
        ROWS=rows,
    )
    assert found.startswith(words), found


@pytest.mark.parametrize(("got", "status"), [("350.1", "1"), ("400", "0")])
def test_a_slow_link_fails_the_check_of_gpus(got: str, status: str, tmp_path: Path) -> None:
    """S113: at least 400, the node reports 350."""
    programs = {"nvidia-smi": GPUS, "all_reduce_perf": f"echo '# Avg bus bandwidth    : {got}'"}
    found = run(
        "gpu-checks.sh",
        tmp_path,
        programs,
        SLURM_GPUS_ON_NODE="2",
        ECC="0",
        ROWS="No",
        NCCL_LEAST_GBPS="400",
    )
    assert found[0] == status, found
    assert ("350.1 GB/s, at least 400 expected" in found) == (status == "1")


def row(name: str, state: str, why: str = "none") -> str:
    return f"echo '{name:<64}{state:<20}{why:<160}'"


def test_a_node_that_is_out_of_service_is_unhealthy(tmp_path: Path) -> None:
    good = [row("worker-0", "idle"), row("worker-1", "alloc"), row("worker-2", "idle~")]
    well = run("ensure-healthy-nodes.sh", tmp_path, {"sinfo": "\n".join(good)})
    assert well.startswith("0 all nodes are healthy")
    for bad in (
        row("worker-3", "drain", "bad cable"),
        row("worker-3", "down*", "Not responding"),
        row("worker-3", "idle*"),
        row("worker-3", "idle", "it was slow"),
    ):
        found = run("ensure-healthy-nodes.sh", tmp_path, {"sinfo": "\n".join([*good, bad])})
        assert found.startswith("1 unhealthy nodes:\nworker-3"), found
