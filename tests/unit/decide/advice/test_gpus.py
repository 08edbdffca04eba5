"""GPUs are declared in three places: a difference is told."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.api.kubernetes.conditions import Finding
from penstock.catalog.reasons.slurm_nodes import SlurmNodeReason
from penstock.decide.advice.gpus import MISMATCH, GpuSpec, devices, differences, finding, listed


def declared(
    given: dict[str, Any] | None = None,
    gres: str = "",
    gres_conf: str | None = None,
    types: str | None = "gpu",
) -> GpuSpec:
    slurmd = {"resources": {"limits": given or {}}}
    return GpuSpec(slurmd, gres, "compute-0", gres_conf, types)


FOUR = "Name=gpu Type=a100 File=/dev/nvidia[0-3]\n"


@pytest.mark.parametrize(
    ("of", "words"),
    [
        (declared({"nvidia.com/gpu": 2}), "2 nvidia.com/gpu and spec.extraConf has no Gres=gpu:2"),
        (declared({"nvidia.com/gpu": "2"}, "gpu:a100:4"), "2 nvidia.com/gpu, and Gres in"),
        (declared(gres="gpu:8", gres_conf=FOUR), "gres.conf has 4 for compute-0, and Gres has 8"),
        (declared(gres="gpu:2", gres_conf=FOUR), "gres.conf has 4 for compute-0, and Gres has 2"),
        (declared(gres="gpu:2", types="tmpdisk"), "GresTypes in the Controller's extraConf lacks"),
    ],
)
def test_a_difference_is_told_with_both_numbers(of: GpuSpec, words: str) -> None:
    """Feature row 55."""
    (told,) = differences(of)
    assert words in told
    found = finding(of, ())
    assert found == Finding(True, SlurmNodeReason.GRES_DIFFERS, told, type=MISMATCH)


@pytest.mark.parametrize(
    "of",
    [
        declared({"nvidia.com/gpu": 4, "cpu": 2}, "gpu:a100:4,tmpdisk:3", FOUR),
        declared({"nvidia.com/mig-1g.5gb": 2, "nvidia.com/mig-2g.10gb": 1}, "gpu:1g:2,gpu:2g:1"),
        declared(gres="gpu:8"),
        declared(gres="gpu:8", gres_conf="AutoDetect=nvml\n"),
        declared(gres="gpu:8", types=None),
        declared(gres="gpu:8", gres_conf="Name=tmpdisk Count=4\n"),
    ],
)
def test_what_agrees_or_cannot_be_known_is_no_difference(of: GpuSpec) -> None:
    assert differences(of) == []
    found = finding(of, ())
    assert found is not None
    assert found.inverted


def test_a_nodeset_without_gpus_has_no_such_condition() -> None:
    assert finding(declared(gres="tmpdisk:4", gres_conf="Name=tmpdisk Count=4\n"), ()) is None


def test_gpus_of_claimed_devices_are_not_counted() -> None:
    """Feature row 56: how many a claim brings stands in no pod."""
    claimed = {"resources": {"claims": [{"name": "gpus"}], "limits": {"cpu": "2"}}}
    assert devices(claimed) == {}
    assert differences(GpuSpec(claimed, "gpu:4", "compute-0", FOUR, "gpu")) == []


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (FOUR, 4),
        ("NodeName=compute-[0-3] Name=gpu File=/dev/nvidia[0-1]\n" + "NodeName=big-0 " + FOUR, 2),
        ("Name=gpu File=/dev/nvidia0\nName=gpu File=/dev/nvidia1 # second\n", 2),
        ("Name=gpu Count=8\n", 8),
        ("Name=gpu MultipleFiles=/dev/nvidia0,/dev/caps/1\n" * 2, 2),
        ("AutoDetect=off\n" + FOUR, 4),
        ("NodeName=compute-0 AutoDetect=nvml Name=gpu\n", None),
        ("NodeName=compute-[0- Name=gpu File=/dev/x\n", None),
        ("NodeName=big-0 " + FOUR, None),
        ("Name=gpu Count=1K\n", None),
    ],
)
def test_gres_conf_is_counted_for_one_node(text: str, count: int | None) -> None:
    assert listed(text, "compute-0") == count
