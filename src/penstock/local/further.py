"""Kubernetes nodes beside the first of a cluster: a containerd, a kubelet and a kube-proxy each.

A further node is made as the first one is, by a first process with namespaces of its own, and it
is joined to the first node's network. Ending that process is what pulling a machine's plug is.
"""

import time
from dataclasses import dataclass, replace
from datetime import datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any

from penstock.local import cgroups, files, given_images, inotify, launch, network, process, record
from penstock.local.addresses import MOST_NODES
from penstock.local.bringup import Waiter
from penstock.local.components import further_components, further_programs
from penstock.local.config import CONTAINERD_SOCKET
from penstock.local.errors import LocalError
from penstock.local.golang import compiled
from penstock.local.layout import Layout
from penstock.local.process import Process
from penstock.local.progress import step
from penstock.local.record import Further, Record
from penstock.local.rest import Rest

Json = dict[str, Any]
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"


@dataclass(frozen=True)
class Cluster:
    """The running first node that a further one belongs to."""

    layout: Layout
    record: Record
    first: Process

    def of(self, name: str) -> Layout:
        """The folder of a further node, there or not."""
        return Layout(self.layout.name, name)


def add(cluster: Cluster, name: str) -> None:
    """Make a node and wait until it is Ready; nothing is done if it runs. Raises LocalError.

    A stopped node is started. A node that did not come up completely is recreated.
    """
    layout = cluster.of(name)
    if name == cluster.record.node_name:
        raise LocalError(f"{name} is the first node of {layout.name} already; use another name.")
    there = record.load_further(layout)
    if there is not None and there.complete:
        start(cluster, name)
        return
    delete(cluster, name)
    inotify.check(inotify.FURTHER_NODE)
    of = cluster.record
    there = Further(name, _free_number(cluster), of.block, of.root, domain=of.domain)
    layout.folder.mkdir(mode=0o700, parents=True)
    record.save(layout, there)
    with step(f"adding the Kubernetes node {name}"):
        wanted = further_programs(cluster.record.kubernetes)
        programs = {program.name: compiled(program) for program in wanted}
        files.write_further(layout, there, programs, cluster.record.owner)
        _boot(cluster, layout, there)
    record.save(layout, replace(there, complete=True))


def start(cluster: Cluster, name: str) -> None:
    """Start a stopped node with the disk it had; nothing is done when it runs."""
    layout = cluster.of(name)
    there = _known(layout)
    if process.load(layout.pid) is None:
        inotify.check(inotify.FURTHER_NODE)
        with step(f"starting the Kubernetes node {name}"):
            _boot(cluster, layout, there)
    record.save(layout, replace(there, stopped=False))


def stop(cluster: Cluster, name: str) -> None:
    """End every process of a node at once, as when its power fails; its disk stays."""
    if name == cluster.record.node_name:
        raise LocalError(
            f"{name} is the first node of {cluster.layout.name} and has its control plane. "
            "Only further nodes can be stopped; penstock local down ends all."
        )
    layout = cluster.of(name)
    record.save(layout, replace(_known(layout), stopped=True))
    launch.end(layout)


def delete(cluster: Cluster, name: str) -> None:
    """Remove a node and its Kubernetes object; nothing is done when there is none."""
    if name == cluster.record.node_name:
        raise LocalError(
            f"{name} is the first node of {cluster.layout.name} and has its control plane. "
            "penstock local down removes the cluster."
        )
    layout = cluster.of(name)
    if not layout.folder.exists():
        return
    launch.end(layout)
    # Order: after the kubelet, which would create the object again; before the folder, without
    # which the node would count as removed.
    rest = Rest(cluster.record.addresses.node, cluster.layout.pki)
    try:
        status, body = rest.ask("DELETE", f"/api/v1/nodes/{name}")
    finally:
        rest.close()
    if status not in (HTTPStatus.OK, HTTPStatus.NOT_FOUND):
        raise LocalError(f"The API server keeps node {name}: {body}")
    there = record.load_further(layout)
    if there is not None:
        network.leave(Path(there.root), cluster.first, there.addresses, there.number)
    remove(layout)


def remove(layout: Layout) -> None:
    """Remove what this machine has of a node, whether its cluster runs or not."""
    launch.end(layout)
    there = record.load_further(layout)
    if there is not None:
        cgroups.remove(there.cgroup(layout.name))
    files.clear(layout.folder)


def running(layout: Layout) -> dict[str, Process]:
    """The components of a node by name, with pids of this machine."""
    there, first = record.load_further(layout), process.load(layout.pid)
    if there is None or first is None:
        return {}
    mine = {c.name for c in further_components(there.name, there.addresses, there.number)}
    children = first.children()
    return {name: children[name] for name in sorted(mine & children.keys())}


def _boot(cluster: Cluster, layout: Layout, there: Further) -> None:
    group = there.cgroup(layout.name)
    # Groups that are left from before cost cAdvisor three seconds each.
    cgroups.remove(group)
    cgroups.make(group)
    root = Path(there.root)
    began = time.time() if there.complete else 0.0
    first = launch.launch(
        layout,
        lambda one: network.join(root, cluster.first, one, there.addresses, there.number),
    )
    wait = Waiter(layout, first)
    wait.until("containerd", Path(f"/proc/{first.pid}/root{CONTAINERD_SOCKET}").exists)
    given_images.load_missing(layout, first)
    rest = Rest(cluster.record.addresses.node, cluster.layout.pki)
    try:
        wait.until("the node to be Ready", lambda: _is_ready(rest, there.name, began))
    finally:
        rest.close()


def _is_ready(rest: Rest, name: str, since: float) -> bool:
    """Whether a node is Ready, and renewed its lease after `since` (seconds of the epoch) if given.

    A node that is started soon after it was stopped is still Ready from before. A new one gets its
    lease ten seconds late.
    """
    if since:
        status, lease = rest.ask("GET", f"{LEASES}/{name}")
        if status != HTTPStatus.OK or _renewed(lease) < since:
            return False
    status, node = rest.ask("GET", f"/api/v1/nodes/{name}")
    if status != HTTPStatus.OK:
        return False
    found = {one["type"]: one["status"] for one in node["status"].get("conditions", ())}
    return found.get("Ready") == "True"


def _renewed(lease: Json) -> float:
    return datetime.fromisoformat(lease["spec"]["renewTime"]).timestamp()


def _free_number(cluster: Cluster) -> int:
    taken = {
        there.number for one in cluster.layout.all_further if (there := record.load_further(one))
    }
    for number in range(1, MOST_NODES):
        if number not in taken:
            return number
    raise LocalError(f"A cluster has at most {MOST_NODES} nodes; delete one first.")


def _known(layout: Layout) -> Further:
    there = record.load_further(layout)
    if there is None:
        raise LocalError(
            f"Cluster {layout.name} has no node {layout.further} that was added; "
            "penstock local node list shows those it has."
        )
    return there
