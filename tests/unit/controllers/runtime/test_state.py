"""State in memory belongs to one object and goes with it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, cast

from fault_plans.plan import Layout
from fault_plans.world import GROUP, SPACE
from penstock.api.kubernetes.meta import KubeObject, ObjectMeta
from penstock.controllers import operator as operators
from penstock.kube import Cache, Controller
from penstock.kube.runtime.state import gone
from penstock.simulation.event_loop import simulate
from unit.controllers.slinky.test_accounting import Lab

OURS = (
    "penstock.controllers",
    "penstock.kube.apply.server_side",
    "penstock.kube.cache.expectations",
    "penstock.slurm",
)
KINDS = ("controllers", "nodesets", "restapis", "loginsets", "accountings", "tokens")
NOT_BY_OBJECT = {
    "_failures": "back-off of a key that failed",
    "_found": "an index of a cache, or ports that were tried",
}


def obj(uid: str, name: str = "slurm") -> KubeObject:
    return KubeObject(metadata=ObjectMeta(name=name, namespace="a", uid=uid))


def test_a_change_that_shows_another_object_of_the_name_took_the_former_one() -> None:
    """As a watch shows it that was interrupted."""
    one, other = obj("1"), obj("2")
    assert gone(None, one) is None
    assert gone(one, one) is None
    assert gone(one, other) is one
    assert gone(one, None) is one


def kept(root: object, keys: set[str]) -> list[str]:
    """Where below an object of ours something is kept by one of these keys."""
    seen: set[int] = set()
    found: list[str] = []
    stack: list[tuple[str, Any]] = [("operator", root)]
    while stack:
        path, one = stack.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, dict | set):
            for key in cast("Iterable[Any]", one):
                parts: tuple[Any, ...] = (
                    cast("tuple[Any, ...]", key) if isinstance(key, tuple) else (key,)
                )
                hit = any(isinstance(part, str) and part in keys for part in parts)
                if hit and path.rpartition(".")[2] not in NOT_BY_OBJECT:
                    found.append(f"{path}[{key}]")
            values = list(cast("dict[Any, Any]", one).values()) if isinstance(one, dict) else []
            stack += [(path, value) for value in values]
        elif isinstance(one, list | tuple):
            stack += [(path, value) for value in cast("Iterable[Any]", one)]
        elif type(one).__module__.startswith(OURS) and not isinstance(one, (Cache, KubeObject)):
            slots = [s for kind in type(one).__mro__ for s in getattr(kind, "__slots__", ())]
            fields = {**getattr(one, "__dict__", {})}
            fields |= {name: getattr(one, name, None) for name in slots}
            stack += [(f"{path}.{name}", value) for name, value in fields.items()]
        elif isinstance(one, Controller):
            # Nothing else refers to the loops.
            stack.append((f"{path}", one._reconcile.__self__))  # type: ignore[attr-defined]
        elif (owner := getattr(cast("object", one), "__self__", None)) is not None:
            stack.append((f"{path}()", owner))
    return sorted(found)


def test_nothing_is_kept_of_objects_that_are_gone() -> None:
    """Of each kind, whatever they went through before."""
    made: list[operators.Operator] = []
    init = operators.Operator.__init__

    def remember(self: operators.Operator, *args: Any, **options: Any) -> None:
        made.append(self)
        init(self, *args, **options)

    async def play() -> None:
        lab = Lab()
        lab.world.layout = Layout(accounted=True, login=True, tokens=True)
        lab.world.declare(2)
        process = lab.world.operator()
        keys, uids = set[str](), set[str]()
        try:
            await lab.ready("controllers", "slurm")
            await lab.ready("nodesets", "compute")
            body = {"spec": {"extraConf": "MessageTimeout=33"}}
            lab.patch(f"{GROUP}/controllers/slurm", body)
            await lab.until(lambda: "MessageTimeout=33" in lab.slurm_conf())
            for plural in KINDS:
                for one in lab.world.server.objects(f"slinky.slurm.net/{plural}", SPACE):
                    keys.add(f"{SPACE}/{one['metadata']['name']}")
                    uids.add(one["metadata"]["uid"])
            assert len(uids) == len(KINDS)
            assert kept(made[-1], keys), "nothing of living objects is found either"
            for plural in ("loginsets", "tokens", "nodesets"):
                for one in lab.world.server.objects(f"slinky.slurm.net/{plural}", SPACE):
                    lab.world.ask("DELETE", f"{GROUP}/{plural}/{one['metadata']['name']}", {})
            await lab.until(
                lambda: not lab.world.find("slinky.slurm.net/nodesets", "compute"), seconds=700
            )
            for plural in ("restapis", "controllers", "accountings"):
                for one in lab.world.server.objects(f"slinky.slurm.net/{plural}", SPACE):
                    lab.world.ask("DELETE", f"{GROUP}/{plural}/{one['metadata']['name']}", {})
            await asyncio.sleep(5)
            assert kept(made[-1], keys | uids) == []
        finally:
            await lab.world.crash(process)

    operators.Operator.__init__ = remember  # type: ignore[method-assign]
    try:
        simulate(play())
    finally:
        operators.Operator.__init__ = init  # type: ignore[method-assign]
