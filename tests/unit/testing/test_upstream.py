"""The stand-in for slurm-operator makes what the real one was seen to make, field by field."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, cast

import pytest

from penstock.api.kubernetes.meta import Json
from penstock.simulation.slurm_operator import MANAGER, Upstream
from support.captured import KINDS, captured

DEFAULTS = re.compile(
    r"(successThreshold|timeoutSeconds|failureThreshold|scheme|terminationMessage\w+|dnsPolicy"
    r"|restartPolicy|schedulerName|terminationGracePeriodSeconds|defaultMode|protocol|periodSeconds"
    r"|clusterIPs?|internalTrafficPolicy|ipFamil\w+|sessionAffinity|type|progressDeadlineSeconds"
    r"|rollingUpdate|maxSurge|maxUnavailable|partition|whenDeleted|whenScaled|updateStrategy"
    r"|persistentVolumeClaimRetentionPolicy|strategy|podManagementPolicy|immutable"
    r"|resources|securityContext|priority|preemptionPolicy|serviceAccount\w*|nodeName"
    r"|enableServiceLinks|status|enabled)$"
)
"""Given by the API server, the scheduler and admission where slurm-operator says nothing."""
BY_SERVER = frozenset(
    ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "generateName")
)
NAMED = {
    r"\[\d+\]\.command\[2\]$": "texts of scripts are its own, and taken out of the captures",
    r"-hash$": "hashes over Secrets that were taken out, and over texts of its own",
    r"kubernetes.io/hash$|^metadata.name$": "what a hash is made from, only slurm-operator knows",
    r"deployment.kubernetes.io/revision$": "written by the Deployment controller",
    r"fieldRef.apiVersion$": "a default of the API server",
    r"^spec.tolerations$": "admission adds those for nodes that are not ready",
    r"slinky.slurm.net/pod-cordon$": "set by a user, with kubectl annotate",
    r"^data\.(slurm|sshd|authorized|cgroup|ssh_host|password|jwt|sssd)": (
        "texts of its own; what is compared of them is in tests/unit/render/test_held.py"
    ),
}
"""Differences that stay, by path, and why."""


def differences(one: Any, other: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Paths at which two values differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        first, second = cast("Json", one), cast("Json", other)
        for key in sorted(first.keys() | second.keys()):
            yield from differences(first.get(key), second.get(key), f"{path}.{key}".strip("."))
    elif isinstance(one, list) and isinstance(other, list):
        ours, theirs = cast("list[Any]", one), cast("list[Any]", other)
        if len(ours) != len(theirs):
            yield path, ours, theirs
            return
        for number, pair in enumerate(zip(ours, theirs, strict=True)):
            yield from differences(*pair, f"{path}[{number}]")
    elif one != other and (one or None) != (other or None):
        yield path, one, other


def unexplained(mine: Json, seen: Json) -> list[str]:
    """What the stand-in makes otherwise, for no reason that is named."""
    kept = {key: one for key, one in seen["metadata"].items() if key not in BY_SERVER}
    real: Json = {**seen, "metadata": kept}
    return [
        f"{path}: {one!r} is {other!r}"
        for path, one, other in differences(mine, real)
        if not (one is None and DEFAULTS.search(path.split("[")[0] if path[-1] == "]" else path))
        if not any(re.search(rule, path) for rule in NAMED)
    ]


def _without_hash(one: Json) -> str:
    """Its name; that of a ControllerRevision ends with a hash that is another one each time."""
    name: str = one["metadata"]["name"]
    return name.rpartition("-")[0] if one["kind"] == "ControllerRevision" else name


def stand_in(which: str) -> tuple[Upstream, list[Json]]:
    every = captured(which)
    given = [o for o in every if o["kind"] in (*KINDS, "Secret", "ConfigMap")]
    for one in given:
        if one["kind"] == "Secret":
            one["data"] = dict.fromkeys(one["data"], "AAAA")
    return Upstream(given), every


@pytest.mark.parametrize("which", ["running", "accounting"])
def test_every_object_is_as_the_real_one_makes_it(which: str) -> None:
    upstream, every = stand_in(which)
    by = {(o["kind"], _without_hash(o)): o for o in every}
    found: dict[str, list[str]] = {}
    for one in upstream.made():
        name = one["metadata"]["name"]
        seen = by.get((one["kind"], _without_hash(one)))
        if seen is not None:
            found[f"{one['kind']} {name}"] = unexplained(one, seen)
    assert {name: lines for name, lines in found.items() if lines} == {}
    assert len(found) >= 12


def test_every_worker_is_as_the_real_one_makes_it() -> None:
    upstream, every = stand_in("running")
    (nodeset,) = [o for o in upstream.of("NodeSet") if o["spec"]["replicas"] == 3]
    pods = {o["metadata"]["name"]: o for o in every if o["kind"] == "Pod"}
    for ordinal in (0, 2):
        mine = upstream.worker(nodeset, ordinal)
        assert unexplained(mine, pods[mine["metadata"]["name"]]) == []


def test_it_writes_under_the_name_of_the_real_one() -> None:
    for which in ("running", "accounting"):
        writers = {
            entry["manager"]
            for one in captured(which)
            for entry in one["metadata"].get("managedFields", ())
        }
        assert MANAGER in writers
        assert "manager" not in writers
