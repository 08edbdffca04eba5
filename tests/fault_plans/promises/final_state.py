"""What the world must look like when all is healed and the operator had its time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import cast

import msgspec

from fault_plans import worker_sets
from fault_plans.actions import key_rotation as rotation
from fault_plans.daemonset import is_daemon, machine_of, of_mode, places, wanted, workers
from fault_plans.promises import accounting_and_tokens as served
from fault_plans.promises import maintenance as reserved
from fault_plans.promises import node_pins as pins
from fault_plans.promises import pvc as claims
from fault_plans.promises.restarts import RING
from fault_plans.specs import RECORDS, USER
from fault_plans.world import World
from penstock.api.cluster.marks import CONFIG_HASH, KEY_RING
from penstock.api.kubernetes.meta import Json
from penstock.api.slinky.labels import SLURM_KEY_HASH
from penstock.decide.observed import node_comment
from penstock.model.worker_marks import WorkerMarks
from penstock.simulation.kubelet.kubelet import NODES
from penstock.simulation.kubelet.pod_lifecycle import PODS, node_name
from penstock.simulation.kubelet.workload_controllers import KINDS
from penstock.simulation.slurm.cluster import SimulatedSlurm

BUDGETS = "policy/poddisruptionbudgets"
KEPT = ("/services", "/configmaps", "apps/statefulsets", "apps/deployments", "/secrets", BUDGETS)
VOLATILE = frozenset(
    {
        "creationTimestamp",
        "generation",
        "managedFields",
        "resourceVersion",
        "uid",
        "ownerReferences",
        "annotations",
    }
)


_OF_SLINKY = re.compile(
    r"[Nn]ode[Ss]et(?!\.penstock\.dev)|slinky|slurm-operator|extraConf|controllerRef"
)


def missing(world: World) -> list[str]:
    """What is not as it was declared."""
    found = [one for space in world.spaces for one in _daemons(world, space)]
    found += [one for space in world.spaces for one in _configuration(world, space)]
    found += _foreign_words(world)
    found += served.missing(world)
    found += rotation.missing(world)
    found += [one for slurm in world.slurms.values() for one in reserved.missing(slurm)]
    found += [one for place in world.places for one in _partition(world, *place)]
    return [*found, *(one for place in world.places for one in worker_problems(world, *place))]


def _daemons(world: World, space: str) -> Iterator[str]:
    if not world.slurms[space].up:
        yield "slurmctld does not run"
    if not world.slurms[space].rest_up:
        yield "slurmrestd does not run"
    kinds = [("controllers", "slurm"), ("restapis", "slurm")]
    kinds += [("loginsets", "login")] if world.layout.login else []
    kinds += [("accountings", RECORDS)] if world.layout.accounted else []
    kinds += [("tokens", USER)] if world.layout.tokens else []
    kinds += [(world.plural, name) for where, name in world.places if where == space]
    for plural, name in kinds:
        found = world.of_kind(plural, name, space)
        if found is None:
            yield f"there is no {plural} {name}"
            continue
        status: Json = found.get("status", {})
        if status.get("observedGeneration") != found["metadata"]["generation"]:
            yield f"the status of {plural} {name} is old"
        ready = condition(found, "Ready")
        waits = (
            ready is not None and ready["reason"] == "RollingUpdate" and update_waits(world, space)
        )
        if ready is None or (ready["status"] != "True" and not waits):
            yield f"{plural} {name} is not ready: {ready}"


def _configuration(world: World, space: str) -> Iterator[str]:
    """Slurmctld's pod has been told of the configuration that is wanted now."""
    controller = world.find("slinky.slurm.net/controllers", "slurm", space)
    pod = world.find(PODS, "slurm-controller-0", space)
    if controller is None or pod is None:
        return
    wanted = controller.get("status", {}).get("configHash")
    notes: dict[str, str] = pod["metadata"].get("annotations", {})
    if world.left is not None and KEY_RING not in notes:
        # Nobody in a pod of another operator can be told, or tells.
        return
    if notes.get(CONFIG_HASH) != wanted:
        yield f"slurmctld of {space} has not been told of its configuration"
    if controller.get("status", {}).get("effectiveConfigHash") != wanted:
        yield f"slurmctld of {space} has not taken over its configuration"


def _foreign_words(world: World) -> Iterator[str]:
    """Events, conditions and drain reasons of the tiny API name nothing of another API."""
    if not world.layout.tiny:
        return
    texts = [
        f"{one['reason']}: {one.get('note')}"
        for one in world.server.objects("events.k8s.io/events")
        if one["regarding"]["kind"] == "Crew"
    ]
    for crew in worker_sets.every(world.server):
        every: list[Json] = crew.get("status", {}).get("conditions", [])
        texts += [f"{one['type']} {one['reason']}: {one.get('message')}" for one in every]
    for slurm in world.slurms.values():
        # Comments of nodes still have the keys of slurm-operator.
        texts += [node.reason for node in slurm.ctld.nodes.values()]
    for pod in world.server.objects(PODS):
        if pod["metadata"]["name"].startswith("crew-"):
            texts.append(str(pod))
    for text in dict.fromkeys(texts):
        if found := _OF_SLINKY.search(text):
            yield f"a user of Crews reads of {found[0]}: {text}"


def _partition(world: World, space: str, of: str) -> Iterator[str]:
    """Slurmctld has the partition of a NodeSet as it is declared."""
    nodeset = worker_sets.find(world.server, space, of)
    if nodeset is None or worker_sets.is_crew(nodeset):
        return
    wanted = nodeset["spec"]["partition"].get("config", "").removeprefix("MaxTime=")
    found = world.slurms[space].ctld.partitions.get(of)
    if found is None:
        yield f"there is no partition {of} in {space}"
    elif wanted and found["maximums"]["time"] != {
        "set": True,
        "infinite": False,
        "number": int(wanted),
    }:
        yield f"partition {of} in {space} has {found['maximums']['time']}, not {wanted} minutes"


def worker_problems(world: World, space: str, of: str) -> Iterator[str]:
    """What is not as it was declared of workers, their Slurm nodes and PVCs."""
    nodeset, slurm = worker_sets.find(world.server, space, of), world.slurms[space]
    if nodeset is None:
        return
    if "deletionTimestamp" in nodeset["metadata"]:
        yield f"the {nodeset['kind']} is still being deleted"
    replicas = wanted(world.server, nodeset)
    pods = {pod["metadata"]["name"]: pod for pod in workers(world.server, nodeset)}
    nodes = {node_name(pod): pod for pod in pods.values()}
    own = of_mode(list(pods.values()), nodeset)
    if is_daemon(nodeset):
        yield from _places(world, space, own)
    old = [one for one, pod in pods.items() if worker_sets.is_old(nodeset, pod)]
    if world.left is not None and world.left.unchanged(nodeset):
        old = []
    if old and not update_waits(world, space):
        yield f"pods have an older template: {sorted(old)}"
    # Those of the other scaling mode go as an update goes, beside all that are wanted in this one.
    if len(own) < len(pods) and not update_waits(world, space):
        yield f"pods are of another scaling mode: {sorted(pods)}"
    # Which ones go first is the policy's; a user's cordon may leave gaps.
    if len(own) != replicas:
        yield f"pods are {sorted(pods)}, not {replicas}"
    for name, pod in sorted(pods.items()):
        ready = condition(pod, "Ready")
        if ready is None or ready["status"] != "True":
            yield f"pod {name} is not ready"
    yield from claims.missing(world.server, list(pods.values()), world.claims.deleted)
    yield from pins.missing(world.server, nodeset)
    for name, pod in sorted(nodes.items()):
        yield from _node(slurm, name, pod, worker_sets.marks(nodeset))
    for name, node in sorted(slurm.ctld.nodes.items()):
        if name in nodes:
            continue
        record = node_comment.read(worker_sets.marks(nodeset).comment, node.comment)
        if record is None or record.nodeset_uid != nodeset["metadata"]["uid"]:
            continue
        if not _stays(world, nodeset, record):
            yield f"the record {name} is left over: {slurm.ctld.states(node)} {node.reason}"


def _stays(world: World, nodeset: Json, record: node_comment.NodeComment) -> bool:
    """Whether a record of a machine that is gone, or called otherwise now, is declared to stay.

    Plans declare that it goes; a NodeSet that slurm-operator left has the default.
    """
    policy = nodeset["spec"].get("pruneSlurmNodeRecords") or "Never"
    by_ordinal = record.pod.rpartition("-")[2].isdecimal()
    if policy != "Never" or by_ordinal or not is_daemon(nodeset):
        return False
    there = {machine["metadata"]["name"] for machine in world.server.objects(NODES)}
    return record.node not in there or record.node in places(world.server)


def _places(world: World, space: str, pods: list[Json]) -> Iterator[str]:
    """Each machine has its worker, under its name."""
    found = {machine_of(pod): node_name(pod) for pod in pods}
    if len(found) != len(pods):
        yield f"several pods are on one machine: {found}"
    machines = places(world.server)
    if found.keys() != machines.keys():
        yield f"workers are on {sorted(found)}, not on {sorted(machines)}"
    if not found.items() <= machines.items() and not update_waits(world, space):
        yield f"machines and their nodes are {found}, not {machines}"


def update_waits(world: World, space: str) -> bool:
    """Whether somebody holds a node back for as long as they like, and so an update."""
    cordoned = any(
        world.marks.is_cordoned(notes)
        for pod in world.server.objects(PODS, space)
        if (notes := pod["metadata"].get("annotations", {}))
    )
    slurm = world.slurms[space]
    return cordoned or bool(slurm.drains or slurm.overwritten)


def _node(slurm: SimulatedSlurm, name: str, pod: Json, marks: WorkerMarks) -> Iterator[str]:
    node = slurm.ctld.nodes.get(name)
    if node is None:
        yield f"node {name} is not registered"
        return
    told = f"node {name} is {'+'.join(slurm.ctld.states(node))} ({node.reason!r})"
    notes: dict[str, str] = pod["metadata"].get("annotations", {})
    cordoned = marks.is_cordoned(notes)
    reason = slurm.drains.get(name)
    if reason is not None:
        if "DRAIN" not in node.flags or node.reason != reason:
            yield f"{told}, but somebody drained it: {reason!r}"
    elif "DRAIN" in node.flags and node.reason == slurm.overwritten.get(name):
        return
    elif cordoned:
        if "DRAIN" not in node.flags and node.base != "DOWN":
            yield f"{told}, but its pod is cordoned"
    elif node.flags & {"DRAIN", "NOT_RESPONDING"} or (
        node.base != "IDLE" and node.reason.startswith(marks.drain_prefix)
    ):
        yield f"{told}, but nothing speaks against its use"


def condition(obj: Json, type_: str) -> Json | None:
    """A condition of an object."""
    found = cast("list[Json]", obj.get("status", {}).get("conditions", []))
    return next((one for one in found if one["type"] == type_), None)


def owned(world: World) -> dict[str, str]:
    """What the operator keeps besides pods, as JSON without what differs from run to run."""
    found: dict[str, str] = {}
    for resource in KEPT:
        if world.left is not None and resource in KINDS:
            # Whether its pods are ours by now depends on whether a wish that did not last was seen.
            continue
        for obj in world.server.objects(resource):
            if obj["metadata"]["name"] in world.unsettled:
                continue
            meta = {k: v for k, v in obj["metadata"].items() if k not in VOLATILE}
            plain = {k: v for k, v in obj.items() if k != "status"} | {"metadata": meta}
            if resource == "/secrets":
                # Once a key was changed, its ring says that there was another one.
                plain["data"] = [] if meta["name"] == RING else sorted(plain["data"])
            text = msgspec.json.encode(plain, order="deterministic").decode()
            name = f"{resource} {meta['namespace']}/{meta['name']}"
            # Keys are random, and hashes and names of them are in annotations of templates.
            text = re.sub(rf'"{SLURM_KEY_HASH}":"[^"]*"', f'"{SLURM_KEY_HASH}":"HASH"', text)
            # It never shrinks, so it depends on what there was before.
            text = re.sub(r"MaxNodeCount=\d+", "MaxNodeCount=N", text)
            found[name] = re.sub(r"\b[0-9a-f]{64}\b", "HASH", text)
    return found
