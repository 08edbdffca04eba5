"""From `kubectl apply` of the quickstart to the first idle worker, with images present."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable

import yaml

from bench import machine, process, quickstart
from bench.figures import Figure, Result, gathered
from bench.quickstart import NAMESPACE
from bench.registry import Bench, Settings
from bench.watch import FirstSeen, Json, watching
from penstock.local.components import Size
from penstock.local.node import Node
from penstock.local.progress import step

PLAIN = "plain"
RESOURCES = ("statefulsets", "pods", "controllers", "restapis", "nodesets", "loginsets")
WORKLOADS = ("slurmctld", "slurmrestd", "slurmd", "login")
ROLES = ("slurmctld", "slurmrestd", "slurmd", "slurmd", "login")
"""Images of the quickstart's pods."""
TIMEOUT_S = 180.0

FIRST_IDLE = "apply to first idle worker"
PLAIN_PODS = "five plain pods: apply to ready"
RATIO = "first idle worker over plain pods"

# Runs beside slurmctld, in the same pod and before it. One line for each thing that is true for the
# first time. The port is tried first: sinfo itself tries again only once a second.
SINFO = """
until (exec 3<>/dev/tcp/127.0.0.1/6817) 2>/dev/null; do sleep 0.05; done
echo listens $EPOCHREALTIME
said=
while :; do
  if states=$(sinfo -h -N -o %T 2>/dev/null); then
    for what in answers ${states:+registered} $(grep -x -m 1 idle <<<"$states"); do
      case " $said " in *" $what "*) ;; *) echo "$what $EPOCHREALTIME"; said="$said $what" ;; esac
    done
    case " $said " in *" idle "*) exit 0 ;; esac
  fi
  sleep 0.1
done
"""
ASKER = "reconfigure"
"""The container that SINFO runs in."""


def run(given: Settings) -> Result:
    """Measure."""
    runs = given.runs
    target, images = quickstart.prepared(given.node)
    measured: list[dict[str, float]] = []
    plain: list[float] = []
    crowding: list[str] = []
    for number in range(runs):
        with step(f"start {number + 1} of {runs}") as shown:
            plain.append(_plain_pods(target.node, images.slurm))
            load, waited, began = machine.load(), machine.waited(), time.monotonic()
            measured.append(_quickstart(target.node))
            share = (machine.waited() - waited) / (time.monotonic() - began)
            crowding.append(f"{load:.1f} and {share:.0%}")
            shown.note = f"{measured[-1][FIRST_IDLE]:.1f} s, plain pods {plain[-1]:.1f} s"
    first = Figure(FIRST_IDLE, "s", tuple(one[FIRST_IDLE] for one in measured))
    ratio = tuple(one / pod for one, pod in zip(first.values, plain, strict=True))
    return Result(
        (first, Figure(PLAIN_PODS, "s", tuple(plain)), Figure(RATIO, "x", ratio)),
        f"{_breakdown(measured)}\nLoad before each run, and the share of it in which some process "
        f"waited for a core: {', '.join(crowding)}",
    )


BENCH = Bench(
    "start", "apply of the quickstart to an idle worker, images present", 5, Size.NODE, run
)


def _plain_pods(node: Node, slurm_image: str) -> float:
    """The machine's measure: pods of the same images, all at once, that do nothing but listen."""
    listen = "import socket; s = socket.create_server(('', 8080)); s.listen()"
    pods: list[Json] = []
    for number, role in enumerate(ROLES):
        container: Json = {
            "name": "plain",
            "image": slurm_image.format(role=role),
            "command": ["python3", "-c", f"{listen}\nwhile True: s.accept()[0].close()"],
            "readinessProbe": {"tcpSocket": {"port": 8080}, "periodSeconds": 1},
        }
        spec: Json = {"containers": [container], "terminationGracePeriodSeconds": 0}
        metadata: Json = {"name": f"plain-{number}", "namespace": PLAIN}
        pods.append({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    seen = FirstSeen()

    def on_event(_: str, pod: Json) -> None:
        if _ready(pod):
            seen.mark(pod["metadata"]["name"])

    node.kubectl("create", "namespace", PLAIN)
    try:
        with watching(node, PLAIN, ["pods"], on_event):
            began = time.time()
            node.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(pods))
            seen.until(*(pod["metadata"]["name"] for pod in pods), timeout=TIMEOUT_S)
    finally:
        node.kubectl("delete", "namespace", PLAIN, "--wait", "--timeout=120s")
    return max(seen.moments.values()) - began


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
        elif _ready(obj):
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
    if _ready(pod):
        seen.mark(f"{name} pod ready")


def _ready(obj: Json) -> bool:
    status: Json = obj.get("status") or {}
    conditions: list[Json] = status.get("conditions") or []
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def _ask(node: Node, seen: FirstSeen) -> None:
    """Ask sinfo from slurmctld's first moment on."""
    seen.until(f"{ASKER} container seen running", timeout=TIMEOUT_S)
    command = ["kubectl", "exec", "slurm-controller-0", "-n", NAMESPACE, "-c", ASKER, "--"]
    names = {
        "listens": "slurmctld listens",
        "answers": "slurmctld answers sinfo",
        "registered": "a worker registered",
        "idle": FIRST_IDLE,
    }
    with subprocess.Popen(
        [*command, "bash", "-c", SINFO], env=node.env, stdout=subprocess.PIPE, text=True
    ) as asking:
        for line in asking.stdout or ():
            what, at = line.split()
            seen.mark(names[what], float(at))


def _remove(node: Node) -> None:
    kinds = "nodesets,loginsets,restapis,controllers"
    node.kubectl("delete", kinds, "--all", "-n", NAMESPACE, "--timeout=120s")
    node.kubectl("delete", "namespace", NAMESPACE, "--wait", "--timeout=120s")


def _breakdown(measured: list[dict[str, float]]) -> str:
    """Where the time goes: medians in their order."""
    steps = sorted(gathered(list(measured), "s"), key=lambda one: one.median)
    width = max(len(one.name) for one in steps)
    lines = [f"{'seconds after apply began':{width}}     min  median     max"]
    lines += [
        f"{one.name:{width}}  {one.low:6.2f}  {one.median:6.2f}  {one.high:6.2f}" for one in steps
    ]
    return "\n".join(lines)
