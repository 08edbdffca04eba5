"""From the first process of a node to one that serves: waits, first objects, simulated nodes."""

import os
import socket
import time
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path

from penstock.local import given_images, launch, objects, single
from penstock.local.components import API_READY, Size
from penstock.local.config import CONTAINERD_SOCKET, PAUSE_IMAGE
from penstock.local.errors import LocalError
from penstock.local.layout import Layout
from penstock.local.process import Process
from penstock.local.progress import step
from penstock.local.record import Record
from penstock.local.rest import Rest

TIMEOUT = 120.0
"""Seconds for a node to come up; it takes less than ten on an idle machine."""
TICK = 0.1
NODES_A_SECOND = 50
"""Simulated nodes that are created in a second even on a busy machine."""


class Waiter:
    """Waits for parts of one node until a common deadline."""

    def __init__(self, layout: Layout, first: Process) -> None:
        self._layout = layout
        self._first = first
        self.deadline = time.monotonic() + TIMEOUT

    def until(self, what: str, check: Callable[[], bool], tick: float = TICK) -> None:
        """Return once `check()`; LocalError with the end of the log when it never comes."""
        while not check():
            log = launch.tail(self._layout.logs / "init.log")
            if not self._first.alive:
                raise LocalError(f"The node ended while waiting for {what}:\n{log}")
            if time.monotonic() > self.deadline:
                raise LocalError(
                    f"Timed out waiting for {what}. Its logs are in "
                    f"{self._layout.logs}; init.log ends with:\n{log}"
                )
            time.sleep(tick)


def complete(layout: Layout, there: Record, first: Process) -> None:
    """Wait until all of the node serves, making the objects it starts with."""
    wait = Waiter(layout, first)
    if there.size is Size.NODE:
        # A path of the node, seen from the machine.
        wait.until("containerd", Path(f"/proc/{first.pid}/root{CONTAINERD_SOCKET}").exists)
        archive = layout.folder / "pause.tar"
        archive.write_bytes(single.archive(layout.bin / "pause", PAUSE_IMAGE, os.uname().machine))
        given_images.load(layout, first, archive)
        given_images.keep(layout, archive)
    rest = Rest(there.addresses.node, layout.pki)
    try:
        wait.until("the API server", rest.ready)
        Path(f"/proc/{first.pid}/root{API_READY}").touch()
        if there.size is Size.NODE:
            for path, obj in objects.node_objects(there.addresses):
                rest.create(path, obj, wait.deadline)
            wait.until("the node to be Ready", lambda: _ready_nodes(rest) == {there.node_name})
            wait.until("kube-proxy", lambda: _connects(there.addresses.kubernetes, 443))
            wait.until("CoreDNS", lambda: _connects(there.addresses.dns, 53))
        if there.size is not Size.API:
            account = "/api/v1/namespaces/default/serviceaccounts/default"
            wait.until("the controllers", lambda: rest.ask("GET", account)[0] == HTTPStatus.OK)
    finally:
        rest.close()


def fleet(layout: Layout, there: Record, first: Process, nodes: int) -> None:
    """Wait until a fleet has `nodes` simulated nodes that are Ready, making those it lacks."""
    wait = Waiter(layout, first)
    rest = Rest(there.addresses.node, layout.pki)
    wanted = {objects.fleet_name(index) for index in range(nodes)}
    try:
        ready = _ready_nodes(rest)
        if wanted <= ready:
            return
        wait.deadline += nodes / NODES_A_SECOND
        with step(f"making {nodes} simulated nodes"):
            for path, obj in objects.fleet_objects(nodes, there.addresses.node):
                if obj["metadata"]["name"] not in ready:
                    rest.create(path, obj, wait.deadline)
            # A list of thousands takes the server long, so it is not asked for all the time.
            tick = max(TICK, nodes / 2500)
            wait.until("the simulated nodes", lambda: wanted <= _ready_nodes(rest), tick)
    finally:
        rest.close()


def _ready_nodes(rest: Rest) -> set[str]:
    status, body = rest.ask("GET", "/api/v1/nodes")
    return {
        node["metadata"]["name"]
        for node in (body["items"] if status == HTTPStatus.OK else ())
        for condition in node["status"].get("conditions", ())
        if (condition["type"], condition["status"]) == ("Ready", "True")
    }


def _connects(host: str, port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex((host, port)) == 0
