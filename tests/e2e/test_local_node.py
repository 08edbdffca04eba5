"""The built-in node serves as Kubernetes does, and leaves nothing behind."""

import json
import signal
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Generator
from functools import partial
from pathlib import Path

import pytest

from e2e_kit.left import left_of
from e2e_kit.probe import IMAGE, add_web, probe
from e2e_kit.site import eventually
from penstock.local import inotify, record
from penstock.local.components import Size
from penstock.local.errors import LocalError
from penstock.local.layout import Layout
from penstock.local.linux import why_not
from penstock.local.node import Node
from penstock.local.process import Process
from support.room import room

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not() or "can run")


def link(name: str) -> Path:
    there = record.load(Layout(name))
    assert there is not None
    return Path("/sys/class/net", there.addresses.link)


def fetch(url: str) -> str:
    with urllib.request.urlopen(url, timeout=5) as answer:
        return answer.read().decode()


def fetched(url: str) -> str:
    """The same; empty while nobody answers, as kube-proxy writes its rules after a pod is ready."""
    try:
        return fetch(url)
    except OSError:
        return ""


@pytest.fixture(scope="module")
def web(kube_node: Node) -> Generator[Node]:
    add_web(kube_node, "web")
    yield kube_node
    kube_node.kubectl("delete", "namespace", "web", "--wait=false")


def test_the_node_knows_its_images(web: Node) -> None:
    assert web.images()[IMAGE].startswith("sha256:")


def answers(node: Node, url: str) -> str:
    """What answers a pod; nothing while nobody does."""
    try:
        return probe(node, "web-0", "get", url)
    except LocalError as error:
        if "connection refused" not in str(error):
            raise
        return ""


def test_pods_reach_a_service_by_name_and_one_another(web: Node) -> None:
    url = "http://web.web.svc.cluster.local"
    # kube-proxy writes its rules a moment after the first pod is ready, and refuses until then.
    eventually("the Service is there", lambda: answers(web, url) != "")
    assert probe(web, "web-0", "get", url) in ("web-0", "web-1")
    # CoreDNS has each name a moment after its pod is ready, and keeps an answer for some seconds.
    for pod in ("web-0", "web-1"):
        found = partial(probe, web, "web-0", "get", f"http://{pod}.pods:8080")
        assert eventually(f"{pod} is found", found) == pod


def test_the_host_reaches_cluster_ips_and_pods(web: Node) -> None:
    ip = web.kubectl("-n", "web", "get", "svc", "web", "-o", "jsonpath={.spec.clusterIP}")
    pod = web.kubectl("-n", "web", "get", "pod", "web-1", "-o", "jsonpath={.status.podIP}")
    both = {"web-0", "web-1"}
    eventually("both pods answer", lambda: {fetched(f"http://{ip}") for _ in range(20)} == both)
    assert fetch(f"http://{pod}:8080") == "web-1"


def test_a_name_of_no_cluster_service_is_rejected_at_once(web: Node) -> None:
    # A resolver that waits in vain says "i/o timeout".
    with pytest.raises(LocalError, match="no such host"):
        probe(web, "web-0", "lookup", "nowhere.example.org")


def test_pods_that_are_not_root_share_the_volume_of_a_pvc(web: Node) -> None:
    probe(web, "web-0", "write", "/shared/note", "from web-0")
    assert probe(web, "web-1", "read", "/shared/note") == "from web-0"


def test_logs_of_a_container_are_served(web: Node) -> None:
    assert web.kubectl("-n", "web", "logs", "web-0") == ""


def test_the_audit_log_shows_who_wrote_what(web: Node) -> None:
    web.kubectl("-n", "web", "create", "configmap", "noted")

    def lines() -> list[tuple[str, str]]:
        events = map(json.loads, web.audit_log.read_text().splitlines())
        return [
            (event["user"]["username"], event["verb"])
            for event in events
            if event["objectRef"].get("name") == "noted"
        ]

    eventually("an audit line", lambda: ("kubernetes-admin", "create") in lines())


def test_a_restricted_namespace_rejects_a_root_pod(web: Node) -> None:
    label = "pod-security.kubernetes.io/enforce=restricted"
    web.kubectl("create", "namespace", "strict")
    web.kubectl("label", "namespace", "strict", label)
    eventually("sa", lambda: "default" in web.kubectl("-n", "strict", "get", "sa", "-o", "name"))
    with pytest.raises(LocalError, match="violates PodSecurity"):
        web.kubectl("-n", "strict", "run", "root", f"--image={IMAGE}")
    web.kubectl("delete", "namespace", "strict", "--wait=false")


def test_a_killed_api_server_comes_back_with_what_it_knew(web: Node) -> None:
    before = web.processes()["kube-apiserver"]
    assert before.signal(signal.SIGKILL)
    eventually("a new process", lambda: web.processes().get("kube-apiserver", before) != before)

    def answers() -> bool:
        try:
            return "web-0" in web.kubectl("-n", "web", "get", "pods")
        except LocalError:
            return False

    eventually("an answer", answers)


def test_a_second_node_lives_and_goes_beside_the_first(web: Node) -> None:
    with room(inotify.FIRST_NODE), Node("test-second") as second:
        second.up(Size.NODE)
        wire = link(second.name)
        assert wire.exists()
        add_web(second, "web")
        ip = second.kubectl("-n", "web", "get", "svc", "web", "-o", "jsonpath={.spec.clusterIP}")
        eventually("the Service is there", lambda: fetched(f"http://{ip}") in ("web-0", "web-1"))
        assert second.address != web.address
        assert probe(web, "web-0", "get", "http://web.web.svc.cluster.local")
    assert left_of("test-second") == []
    assert not wire.exists()
    assert probe(web, "web-0", "get", "http://web.web.svc.cluster.local")


def test_up_again_changes_nothing(web: Node) -> None:
    before = web.processes()
    web.up(Size.NODE)
    assert web.processes() == before


STAGES: dict[str, Callable[[Layout], bool]] = {
    "claimed": lambda layout: layout.record.exists(),
    "first process known": lambda layout: layout.pid.exists(),
    "etcd runs": lambda layout: (layout.logs / "etcd.log").exists(),
    "kubelet runs": lambda layout: (layout.logs / "kubelet.log").exists(),
    "DNS runs": lambda layout: (layout.logs / "coredns.log").exists(),
}


@pytest.mark.parametrize("stage", STAGES)
def test_an_up_killed_in_the_middle_leaves_nothing_after_down(stage: str, kube_node: Node) -> None:
    layout = Layout("test-killed")
    command = [sys.executable, "-c", "from penstock.cli.local import app; app()"]
    with subprocess.Popen([*command, "up", "--name", layout.name]) as up:
        try:
            eventually(stage, lambda: STAGES[stage](layout), every=0.1)
        finally:
            up.kill()
    assert Node(layout.name).status().state in ("unfinished", "dead")
    wire = link(layout.name)
    Node(layout.name).down()
    # A first process that nobody knew yet gives up by itself, since nobody tells it to go on.
    eventually("nothing remains", lambda: left_of(layout.name) == [])
    assert not wire.exists()


def test_a_dead_node_is_replaced_by_up(kube_node: Node) -> None:
    with Node("test-dead") as node:
        node.up(Size.API)
        first = Process.of(int(Layout(node.name).pid.read_text().split()[0]))
        assert first is not None
        assert first.signal(signal.SIGKILL)
        assert first.wait(60)
        assert node.status().state == "dead"
        node.up(Size.API)
        assert node.status().state == "ready"
        # The API server makes it after it says that it is ready.
        node.kubectl("wait", "--for=create", "service/kubernetes", "--timeout=60s")
    assert left_of("test-dead") == []


def test_nobody_anonymous_is_served(api_node: Node) -> None:
    context = ssl.create_default_context(cafile=str(Layout(api_node.name).pki / "ca.crt"))
    with pytest.raises(urllib.error.HTTPError, match="401") as refused:
        urllib.request.urlopen(api_node.status().server + "/version", context=context)
    refused.value.close()


def test_fifty_pods_of_a_fleet_become_ready() -> None:
    pods = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: many}
spec:
  replicas: 50
  selector: {matchLabels: {app: many}}
  template:
    metadata: {labels: {app: many}}
    spec: {containers: [{name: c, image: none}]}
"""
    with Node("test-fleet") as node:
        node.up(Size.FLEET, nodes=20)
        ready = node.kubectl("get", "nodes", "--no-headers").splitlines()
        assert len(ready) == 20
        assert all(" Ready " in line for line in ready)
        node.kubectl("apply", "-f", "-", stdin=pods)
        node.kubectl("rollout", "status", "deployment/many", "--timeout=60s")
    assert left_of("test-fleet") == []
