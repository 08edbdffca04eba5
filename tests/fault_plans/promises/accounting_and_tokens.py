"""What must be true at the end of Accountings and Tokens, and what a settled Token still writes."""

from __future__ import annotations

import base64
import math
from collections import Counter
from collections.abc import Iterator

from fault_plans.actions.accounting import WORKLOAD
from fault_plans.actions.tokens import SECRET
from fault_plans.specs import DATABASE, JWT_SECRET, RECORDS, USER
from fault_plans.world import World
from penstock.api.kubernetes.meta import Json
from penstock.base import times
from penstock.base.duration import seconds
from penstock.decide.accounting.registration import REGISTERED
from penstock.decide.auth.token import RENEW_AT
from penstock.slurm.auth import jwt


def missing(world: World) -> list[str]:
    """What is not as it was declared."""
    found: list[str] = []
    for space in world.spaces:
        if world.layout.accounted:
            found += _accounting(world, space)
        if world.layout.tokens:
            found += _token(world, space)
    return found


def _accounting(world: World, space: str) -> Iterator[str]:
    obj = world.find("slinky.slurm.net/accountings", RECORDS, space)
    conf = _value(world, space, WORKLOAD, "slurmdbd.conf").splitlines()
    password = _value(world, space, DATABASE, "password")
    if f"StoragePass={password}" not in conf:
        yield f"slurmdbd.conf of {space} has another password than {password}"
    wanted = obj["spec"].get("extraConf", "") if obj is not None else ""
    if [one for one in wanted.splitlines() if one not in conf]:
        yield f"slurmdbd.conf of {space} lacks {wanted!r}"
    if not world.machines.runs(space, "slurmdbd"):
        yield f"slurmdbd of {space} does not run"
    found = world.find("/configmaps", "slurm-config", space)
    data: Json = found["data"] if found is not None else {}
    if f"AccountingStorageHost={WORKLOAD}" not in data.get("slurm.conf", "").splitlines():
        yield f"slurm.conf of {space} does not name slurmdbd"
    if not world.slurms[space].ctld.registered:
        yield f"slurmdbd of {space} does not have the cluster registered"
    controller = world.find("slinky.slurm.net/controllers", "slurm", space) or {}
    conditions: list[Json] = controller.get("status", {}).get("conditions", [])
    if not any(one["type"] == REGISTERED and one["status"] == "True" for one in conditions):
        yield f"the Controller of {space} does not report that it is registered"


def _token(world: World, space: str) -> Iterator[str]:
    key = base64.b64decode(_raw(world, space, JWT_SECRET, "jwt.key"))
    text, now = _value(world, space, SECRET, "SLURM_JWT"), world.true_time()
    try:
        claims = jwt.verify(key, text, now)
    except jwt.JwtError as error:
        yield f"the token of {space} is of no use: {error}"
        return
    obj = world.find("slinky.slurm.net/tokens", USER, space) or {"spec": {}}
    lives = seconds(obj["spec"]["lifetime"])
    if (claims["sun"], claims["exp"] - claims["iat"]) != (USER, lives):
        yield f"the token of {space} is {claims}"
    if obj.get("status", {}).get("expiresAt") != times.write(claims["exp"]):
        yield f"the status of the Token of {space} tells of another one"


def renewals(world: World, during: float) -> Counter[str]:
    """How often a settled operator may write what, for tokens that are due in so many seconds.

    The status may be sent twice: when the watch shows the new Secret before the new status. An
    event is one of a series, whose last one comes later.
    """
    found: Counter[str] = Counter()
    for obj in world.server.objects("slinky.slurm.net/tokens"):
        space = obj["metadata"]["namespace"]
        due = math.ceil(during / (RENEW_AT * seconds(obj["spec"]["lifetime"])))
        found[f"PATCH /api/v1/namespaces/{space}/secrets/{SECRET}"] = due
        group = f"/apis/slinky.slurm.net/v1beta1/namespaces/{space}"
        found[f"PATCH {group}/tokens/{USER}/status"] = 2 * due
        events = f"/apis/events.k8s.io/v1/namespaces/{space}"
        found[f"POST {events}/events"] = found[f"PATCH {events}"] = 2 * due
    return found


def unasked(world: World, writes: list[tuple[float, str]], during: float) -> list[str]:
    """Writes for which a settled operator has no reason."""
    left, found = renewals(world, during), list[str]()
    for at, what in writes:
        left[what] -= 1
        if left[what] < 0:
            found.append(f"{at:.2f} {what}")
    return found


def _raw(world: World, space: str, name: str, key: str) -> str:
    secret = world.find("/secrets", name, space)
    data: Json = secret["data"] if secret is not None else {}
    text: str = data.get(key, "")
    return text


def _value(world: World, space: str, name: str, key: str) -> str:
    return base64.b64decode(_raw(world, space, name, key)).decode(errors="replace")
