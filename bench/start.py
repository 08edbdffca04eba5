"""From `kubectl apply` of the quickstart to the first idle worker, with images present."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import yaml

from bench import machine, plain, process, quickstart
from bench.figures import Figure, Result, breakdown
from bench.first_idle import ASKER, FIRST_IDLE, ask
from bench.plain import TIMEOUT_S, is_ready
from bench.quickstart import NAMESPACE
from bench.registry import Bench, Settings
from bench.watch import FirstSeen, Json, watching
from penstock.local.components import Size
from penstock.local.node import Node
from penstock.local.progress import step

RESOURCES = ("statefulsets", "pods", "controllers", "restapis", "nodesets", "loginsets")
WORKLOADS = ("slurmctld", "slurmrestd", "slurmd", "login")
ROLES = ("slurmctld", "slurmrestd", "slurmd", "slurmd", "login")
"""Images of the quickstart's pods."""

PLAIN_PODS = "five plain pods: apply to ready"
RATIO = "first idle worker over plain pods"


def run(given: Settings) -> Result:
    """Measure."""
    runs = given.runs
    target, images = quickstart.prepared(given.node)
    pods = [images.slurm.format(role=role) for role in ROLES]
    measured: list[dict[str, float]] = []
    alone: list[float] = []
    crowding: list[str] = []
    for number in range(runs):
        with step(f"start {number + 1} of {runs}") as shown:
            alone.append(plain.until_ready(target.node, pods))
            load, waited, began = machine.load(), machine.waited(), time.monotonic()
            measured.append(_quickstart(target.node))
            share = (machine.waited() - waited) / (time.monotonic() - began)
            crowding.append(f"{load:.1f} and {share:.0%}")
            shown.note = f"{measured[-1][FIRST_IDLE]:.1f} s, plain pods {alone[-1]:.1f} s"
    first = Figure(FIRST_IDLE, "s", tuple(one[FIRST_IDLE] for one in measured))
    ratio = tuple(one / pod for one, pod in zip(first.values, alone, strict=True))
    return Result(
        (first, Figure(PLAIN_PODS, "s", tuple(alone)), Figure(RATIO, "x", ratio)),
        f"{breakdown(measured)}\nLoad before each run, and the share of it in which some process "
        f"waited for a core: {', '.join(crowding)}",
    )


BENCH = Bench(
    "start", "apply of the quickstart to an idle worker, images present", 5, Size.NODE, run
)


def _quickstart(node: Node) -> dict[str, float]:
    """Seconds after apply at which each step was done."""
    objects = quickstart.documents()
    wanted = {one["kind"] for one in objects if one["apiVersion"].startswith("slinky")}
    seen = FirstSeen()
    uids: dict[str, str] = {}
    node.kubectl("create", "namespace", NAMESPACE)
    try:
        with watching(node, NAMESPACE, RESOURCES, _teller(seen, uids)):
            began = time.time()
            node.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(objects))
            seen.mark("kubectl apply returned")
            asking = threading.Thread(target=_ask, args=(node, seen))
            asking.start()
            names = [f"{kind} Ready" for kind in sorted(wanted)]
            seen.until(FIRST_IDLE, *names, timeout=TIMEOUT_S)
            asking.join()
        for component in ("slurmctld", "slurmd", "slurmrestd"):
            uid = uids.get(component)
            at = process.started(uid, component) if uid else None
            if at is not None:
                seen.mark(f"{component} process started", at)
    finally:
        _remove(node)
    return {what: at - began for what, at in sorted(seen.moments.items(), key=lambda one: one[1])}


def _teller(seen: FirstSeen, uids: dict[str, str]) -> Callable[[str, Json], None]:
    def on_event(resource: str, obj: Json) -> None:
        if resource == "pods":
            _record_pod(seen, uids, obj)
        elif resource == "statefulsets":
            seen.mark("StatefulSet created")
        elif is_ready(obj):
            seen.mark(f"{obj['kind']} Ready")

    return on_event


def _record_pod(seen: FirstSeen, uids: dict[str, str], pod: Json) -> None:
    name = pod["metadata"].get("labels", {}).get("app.kubernetes.io/name", "")
    if name not in WORKLOADS:
        return
    uids.setdefault(name, pod["metadata"]["uid"])
    status: Json = pod.get("status") or {}
    seen.mark(f"{name} pod created")
    containers = [*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ())]
    for one in containers:
        if one["name"] in (name, ASKER) and "running" in one.get("state", {}):
            seen.mark(f"{one['name']} container seen running")
    if is_ready(pod):
        seen.mark(f"{name} pod ready")


def _ask(node: Node, seen: FirstSeen) -> None:
    """Ask sinfo from slurmctld's first moment on."""
    seen.until(f"{ASKER} container seen running", timeout=TIMEOUT_S)
    ask(node, ("slurm-controller-0", "-n", NAMESPACE, "-c", ASKER), seen)


def _remove(node: Node) -> None:
    kinds = "nodesets,loginsets,restapis,controllers"
    node.kubectl("delete", kinds, "--all", "-n", NAMESPACE, "--timeout=120s")
    node.kubectl("delete", "namespace", NAMESPACE, "--wait", "--timeout=120s")
