"""A changed configuration is tried, delivered and acknowledged, and a refused one goes nowhere."""

from __future__ import annotations

import asyncio

import pytest

from penstock.api.cluster.marks import RECONFIGURE, RESTART
from penstock.api.kubernetes.meta import Json
from support.operator_kit import Lab, Node, lab

pytestmark = pytest.mark.api

MAPS = ("slurm-config", "slurm-config-slurm", "slurm-config-candidate")


def controller(extra: str = "") -> Json:
    return {
        "apiVersion": "slinky.slurm.net/v1beta1",
        "kind": "Controller",
        "metadata": {"name": "slurm"},
        "spec": {"extraConf": extra},
    }


def applied(lab_: Lab, status: str) -> bool:
    found = lab_.condition("Controller", "slurm", "ConfigApplied")
    return found is not None and found.status == status


def conf(lab_: Lab, name: str) -> str:
    return (lab_.get("ConfigMap", name) or {}).get("data", {}).get("slurm.conf", "")


async def test_a_change_gets_to_slurmctld_and_is_acknowledged(api_node: Node) -> None:
    async with lab(api_node) as lab_, lab_.operator():
        await lab_.apply(controller())
        await lab_.until(lambda: applied(lab_, "True"))
        uids = dict(lab_.kubelet.seen)
        await lab_.apply(controller("SchedulerTimeSlice=5\n"))
        await lab_.until(lambda: all("SchedulerTimeSlice=5" in conf(lab_, one) for one in MAPS))
        await lab_.until(lambda: applied(lab_, "True"))
        status = (lab_.get("Controller", "slurm") or {})["status"]
        assert status["effectiveConfigHash"] == status["configHash"]
        assert status["configSince"]
        assert not status.get("lastError")
        assert lab_.kubelet.seen == uids


async def test_a_rejected_change_stays_out_and_the_next_good_one_goes_through(
    api_node: Node,
) -> None:
    async with lab(api_node) as lab_, lab_.operator():
        await lab_.apply(controller())
        await lab_.until(lambda: applied(lab_, "True"))
        await lab_.apply(controller("BogusKey=1\n"))
        await lab_.until(lambda: applied(lab_, "False"))
        valid = lab_.condition("Controller", "slurm", "ConfigValid")
        assert valid is not None
        assert (valid.status, valid.reason) == ("False", "ConfigRefused")
        assert "unrecognized key: BogusKey" in valid.message
        assert "slurm.conf: BogusKey=1)" in valid.message
        for name in MAPS[:2]:
            assert "Bogus" not in conf(lab_, name)
        status = (lab_.get("Controller", "slurm") or {})["status"]
        assert "BogusKey" in status["lastError"]
        assert status["effectiveConfigHash"] not in ("", status["configHash"])
        await lab_.apply(controller("SchedulerTimeSlice=6\n"))
        await lab_.until(lambda: "SchedulerTimeSlice=6" in conf(lab_, MAPS[0]))
        await lab_.until(lambda: applied(lab_, "True"))
        assert not (lab_.get("Controller", "slurm") or {})["status"].get("lastError")


async def test_a_new_operator_goes_on_where_the_last_one_ended(api_node: Node) -> None:
    async with lab(api_node) as lab_:
        async with lab_.operator():
            await lab_.apply(controller())
            await lab_.until(lambda: applied(lab_, "True"))
            await lab_.apply(controller("BogusKey=1\n"))
            await lab_.until(lambda: applied(lab_, "False"))
        await lab_.delete("ConfigMap", MAPS[0])
        await lab_.until(lambda: not conf(lab_, MAPS[0]))
        async with lab_.operator() as second:
            await lab_.until(lambda: bool(conf(lab_, MAPS[0])))
            assert "Bogus" not in conf(lab_, MAPS[0])
            await lab_.calm()
            written = len(second.writes)
            await asyncio.sleep(1.0)
            assert len(second.writes) == written
            await lab_.apply(controller("SchedulerTimeSlice=7\n"))
            await lab_.until(lambda: "SchedulerTimeSlice=7" in conf(lab_, MAPS[0]))
            await lab_.until(lambda: applied(lab_, "True"))


async def test_what_annotations_ask_for_is_done_once(api_node: Node) -> None:
    async with lab(api_node) as lab_, lab_.operator():
        await lab_.apply(controller())
        await lab_.until(lambda: applied(lab_, "True"))

        def result(name: str, value: str) -> str:
            status = (lab_.get("Controller", "slurm") or {}).get("status", {})
            every = {(one["name"], one["value"]): one for one in status.get("triggers", ())}
            return every.get((name, value), {}).get("result", "")

        pod = f"{lab_.namespace}/slurm-controller-0"
        notes = {RECONFIGURE: "first", RESTART: "slurmctld@first"}
        await lab_.patch("Controller", "slurm", {"metadata": {"annotations": notes}})
        await lab_.until(lambda: result("reconfigure", "first") == "Done")
        await lab_.until(lambda: result("restart", "slurmctld@first") == "Done")
        assert len(lab_.kubelet.seen[pod]) == 2
        await lab_.calm()
        await lab_.apply(controller("SchedulerTimeSlice=5\n"))
        await lab_.until(lambda: all("SchedulerTimeSlice=5" in conf(lab_, one) for one in MAPS))
        assert len(lab_.kubelet.seen[pod]) == 2
        notes = {RESTART: "slurmd"}
        await lab_.patch("Controller", "slurm", {"metadata": {"annotations": notes}})
        await lab_.until(lambda: result("restart", "slurmd") == "Refused")
