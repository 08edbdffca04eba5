"""A cluster of several Kubernetes nodes: each has kubelet, network and disk of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from penstock.local import inotify
from penstock.local.components import Size
from penstock.local.errors import LocalError
from penstock.local.golang import Program, compiled
from penstock.local.layout import Layout
from penstock.local.linux import why_not
from penstock.local.node import Node
from penstock.local.process import load
from penstock.local.single import archive
from support.room import room

IMAGE = "test.local/probe:1"
PROBE = Program("probe", ".", {}, source=Path(__file__).parents[1] / "fixtures/probe")
NAMES = ("front", "gpu-1", "gpu-2")

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not() or "can run")

PODS = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: shared}
spec: {accessModes: [ReadWriteMany], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: Service
metadata: {name: pods}
spec: {clusterIP: None, selector: {app: web}}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: web}
spec:
  serviceName: pods
  replicas: 3
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 0
      securityContext: {runAsUser: 1234}
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
          - labelSelector: {matchLabels: {app: web}}
            topologyKey: kubernetes.io/hostname
      containers:
      - name: probe
        image: test.local/probe:1
        args: [serve]
        volumeMounts: [{name: shared, mountPath: /shared}]
      volumes: [{name: shared, persistentVolumeClaim: {claimName: shared}}]
"""


def eventually(check: Callable[[], bool], what: str, timeout: float = 90.0) -> None:
    deadline = time.monotonic() + timeout
    while not check():
        assert time.monotonic() < deadline, f"not within {timeout} s: {what}"
        time.sleep(0.1)


def left_of(name: str) -> list[str]:
    """Everything that a cluster of this name may leave on the machine."""
    folder = Layout(name).folder
    found = [str(path) for path in (folder, Layout(name).lock) if path.exists()]
    groups = (Path(at, one) for at, inner, _ in os.walk("/sys/fs/cgroup") for one in inner)
    found += [str(one) for one in groups if one.match(f"penstock-*-{name}*")]
    found += [m for m in Path("/proc/self/mounts").read_text().splitlines() if str(folder) in m]
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if str(folder) in command and int(process.name) != os.getpid():
            found.append(f"{process.name}: {command}")
    return found


def ready(node: Node) -> dict[str, bool]:
    """By name whether a Kubernetes node is Ready."""
    items = json.loads(node.kubectl("get", "nodes", "-o", "json"))["items"]
    return {
        one["metadata"]["name"]: any(
            (c["type"], c["status"]) == ("Ready", "True") for c in one["status"]["conditions"]
        )
        for one in items
    }


def pods(node: Node) -> dict[str, dict[str, Any]]:
    items = json.loads(node.kubectl("-n", "web", "get", "pods", "-o", "json"))["items"]
    return {one["metadata"]["name"]: one for one in items}


def probe(node: Node, pod: str, *arguments: str) -> str:
    try:
        return node.kubectl("-n", "web", "exec", pod, "--", "/probe", *arguments)
    except LocalError as error:
        return str(error)


@pytest.fixture(scope="module")
def alone() -> Generator[None]:
    """The module with the most nodes at a time: four here, one of the process."""
    with room(inotify.FIRST_NODE + 3 * inotify.FURTHER_NODE):
        yield


def test_down_removes_a_cluster_whose_first_node_was_killed(alone: None) -> None:
    with Node("test-orphans") as node:
        node.up(Size.NODE, nodes=2)
        assert set(ready(node)) == {"test-orphans", "test-orphans-2"}
        first = load(Layout(node.name).pid)
        assert first is not None
        os.kill(first.pid, 9)
        assert first.wait(30)
        assert [one.state for one in node.nodes()] == ["dead", "running"]
    assert left_of("test-orphans") == []


@pytest.fixture(scope="module")
def several(alone: None) -> Generator[Node]:
    with Node("test-several") as node:
        node.up(Size.NODE, nodes=3, names=NAMES)
        image = Layout(node.name).folder / "probe.tar"
        image.write_bytes(archive(compiled(PROBE), IMAGE, os.uname().machine))
        node.import_image(image)
        node.kubectl("create", "namespace", "web")
        node.kubectl("apply", "-n", "web", "-f", "-", stdin=PODS)
        node.kubectl("-n", "web", "rollout", "status", "statefulset/web", "--timeout=90s")
        yield node
    assert left_of("test-several") == []


def test_nodes_have_the_names_that_the_user_chose_and_one_pod_each(several: Node) -> None:
    assert set(ready(several)) == set(NAMES)
    assert {pod["spec"]["nodeName"] for pod in pods(several).values()} == set(NAMES)


def test_pods_reach_each_other_and_services_across_nodes(several: Node) -> None:
    url = "http://web.web.svc.cluster.local"
    for one in pods(several):
        for other in pods(several):
            eventually(
                lambda at=one, to=other: probe(several, at, "get", f"http://{to}.pods:8080") == to,
                f"{one} reaches {other}",
            )
        eventually(
            lambda at=one: probe(several, at, "get", url) in pods(several),
            f"{one} reaches the Service",
        )


def test_pods_of_all_nodes_share_the_volume_of_a_claim(several: Node) -> None:
    probe(several, "web-0", "write", "/shared/note", "from web-0")
    assert {probe(several, pod, "read", "/shared/note") for pod in pods(several)} == {"from web-0"}


def test_a_stopped_node_is_lost_as_a_machine_is_and_has_its_disk_when_it_starts(
    several: Node,
) -> None:
    lost = next(p for p, one in pods(several).items() if one["spec"]["nodeName"] == "gpu-2")
    uid = pods(several)[lost]["metadata"]["uid"]
    several.stop("gpu-2")
    assert [one.state for one in several.nodes()] == ["running", "running", "stopped"]
    eventually(lambda: not ready(several)["gpu-2"], "the node is not Ready")
    assert ready(several)["gpu-1"]
    several.start("gpu-2")
    assert ready(several)["gpu-2"]
    eventually(lambda: probe(several, lost, "get", f"http://{lost}.pods:8080") == lost, "it serves")
    assert pods(several)[lost]["metadata"]["uid"] == uid


def test_up_again_starts_what_was_stopped_and_adds_what_is_new(several: Node) -> None:
    several.stop("gpu-1")
    several.up(Size.NODE, nodes=4, names=(*NAMES, "late"))
    try:
        assert [one.state for one in several.nodes()] == ["running"] * 4
        assert ready(several)["late"]
        assert IMAGE in Node(several.name).images()
        several.kubectl(
            "-n",
            "web",
            "run",
            "there",
            f"--image={IMAGE}",
            "--image-pull-policy=Never",
            '--overrides={"spec":{"nodeName":"late"}}',
            "--",
            "serve",
        )
        several.kubectl("-n", "web", "wait", "--for=condition=Ready", "pod/there", "--timeout=60s")
        several.kubectl("-n", "web", "delete", "pod", "there", "--now")
    finally:
        several.delete("late")
    assert set(ready(several)) == set(NAMES)
    assert not any("late" in one for one in left_of(several.name))


def test_the_first_node_cannot_be_stopped_or_deleted(several: Node) -> None:
    with pytest.raises(LocalError, match="control plane"):
        several.stop("front")
    with pytest.raises(LocalError, match="control plane"):
        several.delete("front")
    with pytest.raises(LocalError, match="has no node nowhere"):
        several.stop("nowhere")


def test_an_add_that_was_killed_is_done_again_by_the_next(several: Node) -> None:
    layout = Layout(several.name, "killed")
    command = [sys.executable, "-c", "from penstock.cli.local import app; app()"]
    with subprocess.Popen([*command, "node", "add", "killed", "--name", several.name]) as adding:
        try:
            eventually(lambda: load(layout.pid) is not None, "its first process runs")
        finally:
            adding.kill()
    assert several.nodes()[-1].state in ("unfinished", "dead")
    several.add("killed")
    assert ready(several)["killed"]
    several.delete("killed")
    assert "killed" not in ready(several)
