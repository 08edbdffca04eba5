"""A cluster that is as declared is left alone: by one operator, by its successor, by a standby."""

from __future__ import annotations

import pytest

from penstock.slurm.mirror.pace import Pace
from penstock.slurm.mirror.partitions import PACE_S
from support.operator_kit import KINDS, Lab, Node, lab, made, quickstart

pytestmark = pytest.mark.api

SETTLED_S = 20.0
PACE = Pace()


async def test_a_settled_cluster_is_not_written_to(api_node: Node) -> None:
    """D25, feature row 66."""
    async with lab(api_node) as lab_:
        async with lab_.operator() as running:
            await settle(lab_)
            # Slurm is asked more often for a while after a change.
            await lab_.calm(PACE.moving_for + 2 * PACE.moving)
            before = len(running.writes)
            asked = len(lab_.rest.calls)
            # Nothing at all may change for so long, by whomever.
            await lab_.calm(SETTLED_S)
            assert running.writes[before:] == []
            polls = SETTLED_S / PACE.settled + 1
            of_partitions = SETTLED_S / PACE_S + 1
            assert len(lab_.rest.calls) - asked <= 2 * polls + of_partitions
            for resource in KINDS:
                for one in lab_.all(resource.kind):
                    status = one["status"]
                    assert status["observedGeneration"] == one["metadata"]["generation"]
                    told = {each["type"]: each["status"] for each in status["conditions"]}
                    assert told["Ready"] == "True", one["metadata"]["name"]
                    assert not told.keys() & {"Reconciling", "Stalled"}, one["metadata"]["name"]
        objects, pods = made(lab_), dict(lab_.kubelet.seen)
        asked = len(lab_.rest.calls)
        async with lab_.operator(name="two") as second:
            await lab_.rest.called(asked + 4)
            await lab_.calm(2)
            assert second.writes == []
        assert made(lab_) == objects
        assert lab_.kubelet.seen == pods


async def test_of_two_operators_one_acts_and_the_other_takes_over(api_node: Node) -> None:
    """Feature row 65."""
    async with lab(api_node) as lab_, lab_.operator(lease=True, name="one") as one:
        await settle(lab_)
        async with lab_.operator(lease=True, name="two") as two:
            await lab_.until(lambda: two.manager.not_ready() is None)
            await lab_.delete("Service", "slurm-controller")
            await lab_.until(lambda: "slurm-controller" in lab_.names("Service"))
            assert two.writes == []
            await one.stop()
            count = len(one.writes)
            await lab_.delete("Service", "slurm-controller")
            await lab_.until(lambda: "slurm-controller" in lab_.names("Service"))
            assert len(one.writes) == count
            assert any("/services/slurm-controller" in write for write in two.writes)


async def settle(lab_: Lab) -> None:
    """The example, up to the end."""
    objects = quickstart()
    await lab_.apply(*objects.values())
    for resource in KINDS:
        if resource.kind in objects:
            name = objects[resource.kind]["metadata"]["name"]
            await lab_.until(lambda kind=resource.kind, name=name: lab_.ready(kind, name))
    await lab_.calm(2)
