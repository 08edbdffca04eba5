"""From apply to the first idle worker, and back to nothing."""

from __future__ import annotations

import threading
import time

import yaml

from bench import first_idle, plain
from bench.first_idle import ASKER, FIRST_IDLE
from bench.slurmcluster.side import JAIL, Side
from bench.watch import FirstSeen, Json, watching
from penstock.local.node import Node

_GONE = ("--ignore-not-found", "--timeout=120s")
_ASKS = f"{ASKER} runs"


def start(node: Node, side: Side) -> dict[str, float]:
    """Apply the objects; seconds after which each step was done, FIRST_IDLE among them."""
    seen = FirstSeen()
    with watching(node, side.namespace, ["pods"], lambda _, pod: _record(seen, side, pod)):
        began = time.time()
        node.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(side.objects))
        seen.mark("kubectl apply returned")
        asking = threading.Thread(target=_ask, args=(node, side, seen), daemon=True)
        asking.start()
        seen.until(FIRST_IDLE, timeout=plain.TIMEOUT_S)
        asking.join()
    return {what: at - began for what, at in sorted(seen.moments.items(), key=lambda one: one[1])}


def stop(node: Node, side: Side) -> None:
    """Delete the cluster, and wait until its pods are gone. The jail stays filled."""
    _delete_kinds(node, side)
    node.kubectl("wait", "pod", "--all", "-n", side.namespace, "--for=delete", "--timeout=120s")
    claims = node.kubectl("get", "pvc", "-n", side.namespace, "-o", "name").split()
    # slurmctld's state is that of a cluster that is gone.
    if old := [one for one in claims if one != f"persistentvolumeclaim/{JAIL}"]:
        node.kubectl("delete", *old, "-n", side.namespace, *_GONE)


def remove(node: Node, side: Side) -> None:
    """Delete all of a side, also what a killed bench has left; nothing is done without it."""
    if node.kubectl("get", "namespace", side.namespace, "--ignore-not-found", "-o", "name"):
        _delete_kinds(node, side)
        node.kubectl("delete", "namespace", side.namespace, *_GONE)


def _delete_kinds(node: Node, side: Side) -> None:
    # One after the other: a Controller stays while its NodeSets drain workers by it.
    node.kubectl("delete", ",".join(side.kinds), "--all", "-n", side.namespace, *_GONE)


def _ask(node: Node, side: Side, seen: FirstSeen) -> None:
    seen.until(_ASKS, timeout=plain.TIMEOUT_S)
    first_idle.ask(node, side.asker, seen)


def _record(seen: FirstSeen, side: Side, pod: Json) -> None:
    meta: Json = pod["metadata"]
    status: Json = pod.get("status") or {}
    role = meta.get("labels", {}).get(side.role, meta["name"])
    seen.mark(f"{role}: pod created")
    if status.get("phase") == "Succeeded":
        seen.mark(f"{role}: done")
    beside: list[Json] = status.get("initContainerStatuses", [])
    if meta["name"] == side.pod and any(
        one["name"] == ASKER and "running" in one.get("state", {}) for one in beside
    ):
        seen.mark(_ASKS)
    if plain.is_ready(pod):
        seen.mark(f"{role}: pod ready")
