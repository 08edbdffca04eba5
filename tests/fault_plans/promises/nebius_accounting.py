"""What accounting of SlurmClusters must come to when all is healed."""

from __future__ import annotations

import base64
from collections.abc import Iterator

from fault_plans.api_names import CLUSTER, OF_NEBIUS
from fault_plans.nebius_world import NebiusWorld
from fault_plans.promises.final_state import condition
from fault_plans.specs import DATABASE
from fault_plans.world import SPACE
from penstock.api.kubernetes.meta import Json
from penstock.api.nebius import names
from penstock.decide.accounting.registration import REGISTERED
from penstock.decide.accounting.slurmdbd import REACHABLE
from penstock.simulation.kubelet.pod_lifecycle import PODS, app_of
from penstock.simulation.slurm.reconfigure import slurm_conf

_AVAILABLE = "AccountingAvailable"


def missing(world: NebiusWorld, space: str, cluster: Json) -> Iterator[str]:
    """What of the accounting of a namespace is not as it was declared."""
    declared: Json = cluster["spec"]["slurmNodes"]["accounting"]
    every = {name: condition(cluster, name) for name in (_AVAILABLE, REGISTERED, REACHABLE)}
    statuses = {name: one["status"] for name, one in every.items() if one is not None}
    if not declared["enabled"]:
        yield from _off(world, space, statuses)
        return
    if not world.machines.runs(space, "slurmdbd"):
        yield f"slurmdbd of {space} does not run"
    if world.layout.left and space == SPACE:
        # Its files and its database stay those of soperator.
        if statuses.get(_AVAILABLE) != "True":
            yield f"the SlurmCluster of {space} reports of its accounting {every}"
        return
    conf = _value(world, space, names.slurmdbd_configs(CLUSTER), "slurmdbd.conf").splitlines()
    password = _value(world, space, DATABASE, "password")
    if f"StoragePass={password}" not in conf:
        yield f"slurmdbd.conf of {space} has another password than {password}"
    timeout = declared.get("slurmdbdConfig", {}).get("tcpTimeout", 2)
    if f"TCPTimeout={timeout}" not in conf:
        yield f"slurmdbd.conf of {space} has another TCPTimeout than {timeout}"
    text = slurm_conf(_startup(world, space)).splitlines()
    host = f"{names.service(CLUSTER, 'accounting')}.{space}"
    if f"AccountingStorageHost={host}" not in text:
        yield f"slurm.conf of {space} does not name slurmdbd"
    if not any(line.startswith("AccountingStorageTRES=") for line in text):
        yield f"slurm.conf of {space} has no TRES though the database answers"
    if not world.slurms[space].ctld.registered:
        yield f"slurmdbd of {space} does not have the cluster registered"
    if statuses != dict.fromkeys(every, "True"):
        yield f"the SlurmCluster of {space} reports of its accounting {every}"


def _off(world: NebiusWorld, space: str, statuses: dict[str, str]) -> Iterator[str]:
    if any(app_of(pod) == "slurmdbd" for pod in world.server.objects(PODS, space)):
        yield f"slurmdbd of {space} runs for nobody"
    if "AccountingStorageHost=" in slurm_conf(_startup(world, space)):
        yield f"slurm.conf of {space} names a slurmdbd"
    if world.find("/secrets", names.slurmdbd_configs(CLUSTER), space) is not None:
        yield f"slurmdbd.conf of {space} stays"
    if statuses != {_AVAILABLE: "False"}:
        yield f"the SlurmCluster of {space} reports of no accounting {statuses}"


def _startup(world: NebiusWorld, space: str) -> dict[str, str]:
    found = world.find("/configmaps", OF_NEBIUS.startup, space)
    return (found or {}).get("data") or {}


def _value(world: NebiusWorld, space: str, name: str, key: str) -> str:
    secret = world.find("/secrets", name, space)
    data: Json = secret["data"] if secret is not None else {}
    return base64.b64decode(data.get(key, "")).decode(errors="replace")
