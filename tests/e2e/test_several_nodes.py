"""A cluster of several Kubernetes nodes: each has kubelet, network and disk of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Generator
from typing import Any

import pytest

from e2e_kit.left import left_of
from e2e_kit.probe import IMAGE, add_web, probe
from e2e_kit.site import eventually
from penstock.local import inotify
from penstock.local.components import Size
from penstock.local.errors import LocalError
from penstock.local.layout import Layout
from penstock.local.linux import why_not
from penstock.local.node import Node
from penstock.local.process import load
from support.room import room

NAMES = ("front", "gpu-1", "gpu-2")

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not() or "can run")


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
        add_web(node, "web", replicas=3, apart=True)
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
                f"{one} reaches {other}",
                lambda at=one, to=other: probe(several, at, "get", f"http://{to}.pods:8080") == to,
            )
        eventually(
            f"{one} reaches the Service",
            lambda at=one: probe(several, at, "get", url) in pods(several),
        )


def test_pods_of_all_nodes_share_the_volume_of_a_pvc(several: Node) -> None:
    probe(several, "web-0", "write", "/shared/note", "from web-0")
    assert {probe(several, pod, "read", "/shared/note") for pod in pods(several)} == {"from web-0"}


def test_a_stopped_node_is_lost_as_a_failed_one_is_and_has_its_disk_when_it_starts(
    several: Node,
) -> None:
    lost = next(p for p, one in pods(several).items() if one["spec"]["nodeName"] == "gpu-2")
    uid = pods(several)[lost]["metadata"]["uid"]
    several.stop("gpu-2")
    assert [one.state for one in several.nodes()] == ["running", "running", "stopped"]
    eventually("the node is not Ready", lambda: not ready(several)["gpu-2"], timeout=90)
    assert ready(several)["gpu-1"]
    several.start("gpu-2")
    assert ready(several)["gpu-2"]
    url = f"http://{lost}.pods:8080"
    eventually("it serves", lambda: probe(several, lost, "get", url) == lost, timeout=90)
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
            eventually("its first process runs", lambda: load(layout.pid) is not None, every=0.1)
        finally:
            adding.kill()
    assert several.nodes()[-1].state in ("unfinished", "dead")
    several.add("killed")
    assert ready(several)["killed"]
    several.delete("killed")
    assert "killed" not in ready(several)
