"""Which pods restart by a change, by name: `penstock plan` beside what then happens."""

from __future__ import annotations

import asyncio
import base64
from copy import deepcopy
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fault_plans.kinds import path_of
from fault_plans.plan import Layout
from fault_plans.promises import final_state as expected
from fault_plans.world import CORE, SPACE, World
from penstock.api.kubernetes.meta import Json
from penstock.preview.effect import Effects, How
from penstock.preview.report import render_report
from penstock.preview.restarts import deleted
from penstock.preview.state import ClusterCopy, SimulatedRun
from penstock.simulation.event_loop import EPOCH, simulate
from penstock.slurm.conf.apply_method import Force
from penstock.slurm.conf.apply_method_table import TABLE
from support.plans import SLINKY_PREVIEW, copied, effects_of

SETTLED_S = 120.0
PODS = {
    "slurmctld": {"slurm-controller-0"},
    "slurmd": {"compute-0", "compute-1"},
    "slurmdbd": {"records-accounting-0"},
    "slurmrestd": {"slurm-restapi-0"},
    "sackd": {"login-0"},
}
"""The pods of each daemon in the simulated cluster."""
FILES = "extra-files"


async def _settled(*, persistent: bool) -> ClusterCopy:
    world = World(1, Layout(login=True, accounted=True))
    world.declare(2)
    spec = {"persistence": {"enabled": persistent}, "configFileRefs": [{"name": FILES}]}
    world.ask("PATCH", path_of(SPACE, "controllers", "slurm"), {"spec": spec})
    meta = {"name": FILES, "namespace": SPACE}
    world.ask("POST", f"{CORE}/configmaps", {"kind": "ConfigMap", "metadata": meta, "data": {}})
    process = world.operator()
    await asyncio.sleep(SETTLED_S)
    assert expected.missing(world) == []
    found = copied(world, "slurm/slurm")
    await world.crash(process)
    return found


@pytest.fixture(scope="module")
def live() -> ClusterCopy:
    return simulate(_settled(persistent=True))


@pytest.fixture(scope="module")
def in_pod() -> ClusterCopy:
    """The same with slurmctld's state in its pod."""
    return simulate(_settled(persistent=False))


def changed(live: ClusterCopy, plural: str, name: str, spec: Json) -> Effects:
    """What a change of these fields of a spec would do."""
    resource = f"slinky.slurm.net/{plural}"
    obj: Json = deepcopy(live.objects[resource][SPACE, name])
    obj["spec"] |= spec
    obj["metadata"]["generation"] += 1
    return effects_of(live, [(resource, obj)], EPOCH + 3 * SETTLED_S)


def named(found: Effects, *hows: How) -> set[str]:
    return {pod for one in found.restarts if one.how in hows for pod in one.pods}


def pods_of(live: ClusterCopy, daemon: str) -> set[str]:
    label = {"sackd": "login"}.get(daemon, daemon)
    return {
        name
        for (_, name), pod in live.objects["/pods"].items()
        if pod["metadata"]["labels"].get("app.kubernetes.io/name") == label
    }


CASES = [
    pytest.param(row.file, line, need.daemons, id=f"{row.file}:{line}")
    for row in TABLE.rows
    for line, need in (
        *(((f"{key}=1") if row.keys else "", row.need) for key in row.keys or ("",)),
        *((f"{row.keys[0]}={option}", need) for option, need in row.options),
    )
    if need.force is Force.RESTART
]
"""Every key, option and file of the table that takes effect by a restart, and of what."""


def test_the_table_of_cases_has_every_daemon() -> None:
    named = {daemon for case in CASES for daemon in cast("tuple[str, ...]", case.values[2])}
    assert named == PODS.keys()
    assert len(CASES) >= 12


@pytest.mark.parametrize(("file", "line", "daemons"), CASES)
@pytest.mark.parametrize("persistent", [True, False], ids=["persistent", "in-pod"])
def test_each_key_that_needs_a_restart_names_the_pods_of_its_daemons(
    live: ClusterCopy,
    in_pod: ClusterCopy,
    file: str,
    line: str,
    daemons: tuple[str, ...],
    persistent: bool,
) -> None:
    """slurmctld's by the operator where its state outlives the pod; all others by the user.

    For a file of the user's own the operator does nothing but reconfigure.
    """
    live = live if persistent else in_pod
    if file == "slurm.conf":
        found = changed(live, "controllers", "slurm", {"extraConf": f"{line}\n"})
    else:
        found = with_file(live, file, f"{line}\n" if line else "# changed\nx: 1\n")
    ours = {"slurmctld"} & {*daemons} if persistent and file == "slurm.conf" else set[str]()
    # slurmrestd is replaced for what is about how it speaks to slurmctld.
    replaced = named(found, How.TEMPLATE)
    assert replaced <= pods_of(live, "slurmrestd")
    left = set[str]().union(*(pods_of(live, one) for one in {*daemons} - ours)) - replaced
    restarted = set[str]().union(*(pods_of(live, one) for one in ours))
    assert named(found, How.OPERATOR) == restarted
    assert named(found, How.YOURS) == left
    told = render_report(found)
    for name in left | restarted | replaced:
        assert f"slurm/{name}" in told
    assert "No pod restarts or ends at once." not in told
    assert ("No pod restarts by itself." in told) == (not restarted and not replaced)
    if any(one.plan.beware for one in found.files) or {"slurmd", "sackd"} & {*daemons}:
        assert "No job is touched" not in told
    lost = "slurmctld" in daemons and not persistent
    assert ("all jobs are lost" in told) == lost


def with_file(live: ClusterCopy, file: str, content: str) -> Effects:
    """What another content of a file would do that a ConfigMap of the user's has."""
    config_map = deepcopy(live.objects["/configmaps"][SPACE, FILES])
    config_map["data"] = {file: content}
    config_map["metadata"]["resourceVersion"] = "999999"
    return effects_of(live, [("/configmaps", config_map)], EPOCH + 3 * SETTLED_S)


def test_a_new_slurm_key_names_logins_and_slurmdbd(live: ClusterCopy) -> None:
    secret = deepcopy(live.objects["/secrets"][SPACE, "slurm-auth-slurm"])
    secret["data"]["slurm.key"] = base64.b64encode(b"another" * 20).decode()
    secret["metadata"]["resourceVersion"] = "999999"
    found = effects_of(live, [("/secrets", secret)], EPOCH + 3 * SETTLED_S)
    assert named(found, How.ROTATION) >= pods_of(live, "sackd")
    assert "No pod restarts" not in render_report(found)


@pytest.mark.parametrize(
    ("plural", "name", "spec", "daemon"),
    [
        ("controllers", "slurm", {"slurmctld": {"image": "other:1"}}, "slurmctld"),
        ("restapis", "slurm", {"slurmrestd": {"image": "other:1"}}, "slurmrestd"),
        ("loginsets", "login", {"login": {"image": "other:1"}}, "sackd"),
        ("accountings", "records", {"slurmdbd": {"image": "other:1"}}, "slurmdbd"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_another_image_names_each_pod_that_is_replaced(
    live: ClusterCopy, plural: str, name: str, spec: Json, daemon: str
) -> None:
    found = changed(live, plural, name, spec)
    assert named(found, How.TEMPLATE) == pods_of(live, daemon)
    told = render_report(found)
    assert all(f"slurm/{pod} (" in told for pod in pods_of(live, daemon))
    assert "No pod restarts" not in told


def test_a_slurmctld_that_becomes_external_ends_here(live: ClusterCopy) -> None:
    outside = {
        "external": True,
        "externalConfig": {"host": "slurm.example.com"},
        "persistence": None,
    }
    found = changed(live, "controllers", "slurm", outside)
    assert named(found, How.ENDS) == pods_of(live, "slurmctld")
    assert "slurm/slurm-controller-0 (slurmctld): ends, since StatefulSet" in render_report(found)


@pytest.mark.parametrize(
    ("version", "restarted"), [("apps/v1", []), ("apps.example.org/v1", [("login-0",)])]
)
def test_only_the_replica_sets_of_kubernetes_give_way_to_others(
    version: str, restarted: list[tuple[str, ...]]
):
    owner = {"apiVersion": version, "kind": "ReplicaSet", "name": "login", "uid": "x"}
    meta: Json = {"labels": {"app.kubernetes.io/name": "login"}, "ownerReferences": [owner]}
    key = (SPACE, "login-0")
    live = ClusterCopy({"/pods": {key: {"metadata": meta}}}, {})
    gone = cast("SimulatedRun[Any]", SimpleNamespace(after={("/pods", key): None}))
    assert [one.pods for one in deleted(live, gone, SLINKY_PREVIEW)] == restarted
