"""Objects that are applied in whatever order come to the same end, and nothing is restarted."""

from __future__ import annotations

import asyncio
from itertools import permutations

import pytest

from penstock.render.parts import ssh_host_keys as hostkeys
from support.operator_kit import Lab, Node, lab, made, quickstart

pytestmark = pytest.mark.api

KINDS = ("Controller", "RestApi", "NodeSet", "LoginSet")
LONG_S = 150.0
"""For as many clusters as there are orders, at once, on a machine that has other things to do."""
ORDERS = list(permutations(KINDS))


async def test_every_order_comes_to_the_same_end_without_a_restart(
    api_node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = hostkeys.generate()
    monkeypatch.setattr(hostkeys, "generate", lambda: keys)
    async with lab(api_node, clusters=len(ORDERS)) as lab_, lab_.operator() as running:
        spaces = dict(zip(lab_.clusters, ORDERS, strict=True))
        async with asyncio.TaskGroup() as group:
            for space, order in spaces.items():
                group.create_task(apply(lab_, space, order))
        await lab_.calm()
        ends = {order: made(lab_, space) for space, order in spaces.items()}
        first = ends[ORDERS[0]]
        assert len(first) > 15
        for order, end in ends.items():
            assert end == first, order
        restarted = {key: uids for key, uids in lab_.kubelet.seen.items() if len(uids) > 1}
        assert restarted == {}
        assert [write for write in running.writes if write.startswith("DELETE")] == []
        for space in spaces:
            for kind in ("StatefulSet", "Deployment"):
                for one in lab_.all(kind, space):
                    assert one["metadata"]["generation"] == 1, one["metadata"]["name"]


async def apply(lab_: Lab, space: str, order: tuple[str, ...]) -> None:
    """Apply one by one, each after the operator has told about the one before."""
    objects = quickstart()
    for kind in order:
        await lab_.apply(objects[kind], namespace=space)
        if kind == "Controller":
            await lab_.apply(objects["ConfigMap"], namespace=space)
        name = objects[kind]["metadata"]["name"]
        await lab_.until(
            lambda kind=kind, name=name: bool(lab_.condition(kind, name, namespace=space)),
            within=LONG_S,
        )
    for kind in order:
        name = objects[kind]["metadata"]["name"]
        await lab_.until(
            lambda kind=kind, name=name: lab_.ready(kind, name, namespace=space), within=LONG_S
        )
