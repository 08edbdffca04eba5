"""From the end of slurmctld, killed or with its pod, to the start of the next job.

A job is asked for again and again from a worker, as users do. The reference is a container that
only listens, killed in the same way: what the kubelet needs to start one again.
"""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import time
from collections.abc import Callable

from bench import process, quickstart
from bench.config.rest import Cluster
from bench.figures import Figure, Result
from bench.registry import Bench, Settings
from penstock.api.kubernetes.meta import Json
from penstock.local.components import Size
from penstock.local.errors import LocalError
from penstock.local.node import Node
from penstock.local.process import Process
from penstock.local.progress import step

CONTROLLER = "slurm-controller-0"
WORKER = ("compute-0", "-n", quickstart.NAMESPACE, "-c", "slurmd")
PLAIN = "plain"
PORT = 8080
TIMEOUT_S = 180.0

KILLED = "slurmctld killed to the next job's start"
PLAIN_KILLED = "a plain container killed to its answer"
DELETED = "slurmctld's pod deleted to the next job's start"

# It waits for input, so that its own start is not counted. A job prints when it runs.
NEXT_JOB = """
read -r _
until timeout 10 srun --quiet --ntasks=1 bash -c 'echo $EPOCHREALTIME' 2>/dev/null; do
  sleep 0.1
done
"""


def run(given: Settings) -> Result:
    """Measure."""
    target, images = quickstart.prepared(given.node)
    objects = quickstart.documents()
    for one in objects:
        if one["kind"] == "Controller":
            one["spec"]["persistence"] = {"enabled": True}
    took: dict[str, list[float]] = {KILLED: [], PLAIN_KILLED: [], DELETED: []}
    with quickstart.running(target, objects) as cluster:
        for number in range(given.runs):
            with step(f"recover {number + 1} of {given.runs}") as shown:
                took[PLAIN_KILLED].append(_plain(target.node, images.slurm.format(role="slurmd")))
                took[KILLED].append(_next_job(cluster, _kill))
                # A pod of its own for each: a container that ends again and again is started later.
                took[DELETED].append(_next_job(cluster, _delete))
                shown.note = ", ".join(f"{values[-1]:.1f} s" for values in took.values())
    return Result(tuple(Figure(name, "s", tuple(values)) for name, values in took.items()))


BENCH = Bench("recover", "slurmctld gone until the next job starts", 5, Size.NODE, run)


def _next_job(cluster: Cluster, end: Callable[[Node, Process], float]) -> float:
    """Seconds from the end that `end` causes, which returns its time."""
    # It saves its jobs every few seconds: one that is killed may believe in the last job after it.
    cluster.run("scancel --user=root")
    cluster.until_idle(2)
    cluster.until_rest()
    node = cluster.node
    slurmctld = _only(node, CONTROLLER, quickstart.NAMESPACE, "slurmctld")
    command = ["kubectl", "exec", "-i", *WORKER, "--", "bash", "-c", NEXT_JOB]
    with subprocess.Popen(
        command, env=node.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as asking:
        try:
            began = end(node, slurmctld)
            if not slurmctld.wait(TIMEOUT_S):
                raise TimeoutError("slurmctld does not end")
            # What a slurmctld that is on its way out begins does not count.
            said, _ = asking.communicate("go\n", timeout=TIMEOUT_S)
        finally:
            asking.kill()
    return float(said) - began


def _kill(_: Node, slurmctld: Process) -> float:
    slurmctld.signal(signal.SIGKILL)
    return time.time()


def _delete(node: Node, _: Process) -> float:
    began = time.time()
    node.kubectl("delete", "pod", CONTROLLER, "-n", quickstart.NAMESPACE, "--wait=false")
    return began


def _plain(node: Node, image: str) -> float:
    """The machine's measure: a container that listens is killed, and listens again."""
    listen = f"import socket; s = socket.create_server(('', {PORT})); s.listen()"
    container: Json = {
        "name": PLAIN,
        "image": image,
        "command": ["python3", "-c", f"{listen}\nwhile True: s.accept()[0].close()"],
    }
    spec: Json = {"containers": [container], "terminationGracePeriodSeconds": 0}
    pod: Json = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": PLAIN}, "spec": spec}
    node.kubectl("apply", "-n", "default", "-f", "-", stdin=json.dumps(pod))
    try:
        node.kubectl("wait", "pod", PLAIN, "-n", "default", "--for=condition=Ready")
        address = node.kubectl(
            "get", "pod", PLAIN, "-n", "default", "-o", "jsonpath={.status.podIP}"
        )
        _until_answers(address)
        python = _only(node, PLAIN, "default", "python3")
        began = _kill(node, python)
        if not python.wait(TIMEOUT_S):
            raise TimeoutError("the plain container does not end")
        _until_answers(address)
        return time.time() - began
    finally:
        node.kubectl("delete", "pod", PLAIN, "-n", "default", "--wait")


def _until_answers(address: str) -> None:
    end = time.monotonic() + TIMEOUT_S
    while time.monotonic() < end:
        try:
            with socket.create_connection((address, PORT), timeout=1):
                return
        except OSError:
            time.sleep(0.05)
    raise TimeoutError("the plain container does not answer")


def _only(node: Node, pod: str, namespace: str, name: str) -> Process:
    """The oldest process of that name in a pod."""
    uid = node.kubectl("get", "pod", pod, "-n", namespace, "-o", "jsonpath={.metadata.uid}")
    found = process.of_pod(uid, name)
    if not found:
        raise LocalError(f"Pod {pod} has no process {name}.")
    return found[0]
