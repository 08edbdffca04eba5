"""What plans of SlurmClusters must come to when all is healed."""

from __future__ import annotations

from collections.abc import Iterator

from fault_plans import worker_sets
from fault_plans.actions import checks, power, replacements
from fault_plans.api_names import CLUSTER, OF_NEBIUS
from fault_plans.nebius_world import NebiusWorld
from fault_plans.promises import maintenance as reserved
from fault_plans.promises import nebius_accounting as records
from fault_plans.promises.final_state import condition, update_waits, worker_problems
from penstock.api.cluster.marks import CONFIG_HASH
from penstock.api.kubernetes.meta import Json
from penstock.api.nebius import names
from penstock.simulation.kubelet.pod_lifecycle import PODS, app_of
from penstock.simulation.slurm.reconfigure import slurm_conf
from penstock.slurm.partition.declaration import partition_lines


def missing(world: NebiusWorld) -> list[str]:
    """What is not as it was declared."""
    found = [one for space in world.spaces for one in _cluster(world, space)]
    found += [*checks.missing(world), *power.missing(world), *replacements.missing(world)]
    found += [one for slurm in world.slurms.values() for one in reserved.missing(slurm)]
    return [*found, *(one for place in world.places for one in worker_problems(world, *place))]


def _cluster(world: NebiusWorld, space: str) -> Iterator[str]:
    if not world.slurms[space].up:
        yield f"slurmctld of {space} does not run"
    if not world.slurms[space].rest_up:
        yield f"slurmrestd of {space} does not run"
    cluster = world.cluster(space)
    if cluster is None:
        yield f"there is no SlurmCluster in {space}"
        return
    if _status(cluster).get("phase") != "Available":
        yield f"the phase of {space} is {_status(cluster).get('phase')}"
    yield from _reported(world, space, cluster)
    for name in (name for where, name in world.places if where == space and not world.is_older):
        found = world.find(worker_sets.NEBIUS_NODESETS, name, space)
        if found is None:
            yield f"there is no NodeSet {name}"
            continue
        yield from _reported(world, space, found)
        if _status(found).get("phase") != "Ready" and not update_waits(world, space):
            yield f"the phase of NodeSet {name} is {_status(found).get('phase')}"
    yield from _jail(world, space)
    yield from _configuration(world, space, cluster)
    yield from records.missing(world, space, cluster)
    for app in ("login", "sconfigcontroller"):
        if not any(app_of(pod) == app and _ready(pod) for pod in world.server.objects(PODS, space)):
            yield f"no {app} of {space} is ready"


def _reported(world: NebiusWorld, space: str, obj: Json) -> Iterator[str]:
    name, status = f"{obj['kind']} {obj['metadata']['name']} of {space}", _status(obj)
    if status.get("observedGeneration") != obj["metadata"]["generation"]:
        yield f"the status of {name} is old"
    ready = condition(obj, "Ready")
    waits = ready is not None and ready["reason"] == "RollingUpdate" and update_waits(world, space)
    if ready is None or (ready["status"] != "True" and not waits):
        yield f"{name} is not ready: {ready}"


def _jail(world: NebiusWorld, space: str) -> Iterator[str]:
    if not world.jails[space].is_filled:
        yield f"the jail of {space} is not filled"


def _configuration(world: NebiusWorld, space: str, cluster: Json) -> Iterator[str]:
    """The declared configuration is in force: in the jail, in slurmctld, and in the status."""
    if world.left_cluster is not None:
        # That of the original stays in force, in a pod that reports nothing.
        yield from world.left_cluster.missing()
        return
    startup = world.find("/configmaps", OF_NEBIUS.startup, space)
    candidate = world.find("/configmaps", names.candidate_configs(CLUSTER), space)
    good = world.find("/configmaps", OF_NEBIUS.last_known_good, space)
    files = [_data(one) for one in (startup, candidate, good)]
    if files[0] != files[1] or files[0] != files[2]:
        yield f"the startup files of {space} are not the candidate and the last known good"
    if world.jails[space].present() != files[0] or not world.jails[space].is_complete():
        yield f"the jail of {space} has not the startup files"
    wanted: str = cluster["spec"]["customSlurmConfig"]
    if wanted not in slurm_conf(files[0]):
        yield f"slurm.conf of {space} lacks {wanted!r}"
    if slurm_conf(files[0]) not in world.machines.mounts.served[space]:
        yield f"slurmctld of {space} never served with its files"
    declared = partition_lines("\n".join((*_raw(cluster), wanted))) if _raw(cluster) else {}
    found = world.slurms[space].ctld.partitions
    if declared and declared.keys() != found.keys():
        yield f"slurmctld of {space} has partitions {sorted(found)}, not {sorted(declared)}"
    for partition, line in declared.items():
        limit = found.get(partition, {}).get("maximums", {}).get("time", {}).get("number", 0)
        if partition in found and str(limit) != line.keys.get("maxtime", "0"):
            yield f"partition {partition} of {space} has a limit of {limit}: {line}"
    status = _status(cluster)
    if status.get("configHash") != status.get("effectiveConfigHash"):
        yield f"slurmctld of {space} has not taken over its configuration"
    pod = world.find(PODS, f"{world.prefix}controller-0", space)
    notes: dict[str, str] = pod["metadata"].get("annotations", {}) if pod is not None else {}
    if notes.get(CONFIG_HASH) != status.get("configHash"):
        yield f"slurmctld of {space} has not been told of its configuration"


def _raw(cluster: Json) -> list[str]:
    partitions: Json = cluster["spec"].get("partitionConfiguration") or {}
    return partitions.get("rawConfig") or []


def _data(config_map: Json | None) -> dict[str, str]:
    return (config_map or {}).get("data") or {}


def _status(obj: Json) -> Json:
    status: Json = obj.get("status", {})
    return status


def _ready(pod: Json) -> bool:
    found = condition(pod, "Ready")
    return found is not None and found["status"] == "True"
