"""The wait of the first slurmctld's pod, run for real beside hosts that answer like slurmctld."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from penstock.render.parts.script import script

FIRST = "c-controller-0"
ACTIVE = HTTPStatus.NO_CONTENT
STANDBY = HTTPStatus.INTERNAL_SERVER_ERROR
"""As slurmctld 26.05 answers."""
QUICK = {"HANDOVER_PAUSE": "0.02", "HANDOVER_LIMIT": "1", "HANDOVER_PATIENCE": "2"}
PATIENCE_S = 30


class Answers(BaseHTTPRequestHandler):
    """A slurmctld of which only /readyz shows whether it has control."""

    def do_GET(self) -> None:
        assert self.path == "/readyz"
        assert isinstance(self.server, Slurmctld)
        self.server.asked.release()
        self.send_response(self.server.status)
        self.end_headers()

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Print nothing."""


class Slurmctld(ThreadingHTTPServer):
    """Answers with `status`: ACTIVE while it has control, else STANDBY."""

    daemon_threads = False

    def __init__(self, host: str, port: int, status: int) -> None:
        super().__init__((host, port), Answers)
        self.status = status
        self.asked = threading.Semaphore(0)
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()


@dataclass
class Hosts:
    """Hosts with the same port, on loopback addresses of their own."""

    clean: ExitStack
    port: int = 0
    count: int = 0

    def slurmctld(self, status: int) -> tuple[str, Slurmctld]:
        host = self.host()
        server = Slurmctld(host, self.port, status)
        self.clean.callback(server.server_close)
        self.clean.callback(server.shutdown)
        self.port = server.server_port
        return host, server

    def host(self) -> str:
        self.count += 1
        return f"127.0.77.{self.count}"

    def wait(self, *hosts: str, pod: str = FIRST) -> subprocess.Popen[str]:
        command = ["bash", "-c", script("handover"), "handover", FIRST, str(self.port), *hosts]
        env = {**os.environ, **QUICK, "POD_NAME": pod}
        process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)
        self.clean.enter_context(process)
        self.clean.callback(process.kill)
        return process


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    with ExitStack() as clean:
        yield Hosts(clean)


def test_the_first_waits_while_another_has_control_and_starts_when_that_ends(hosts: Hosts) -> None:
    standby, _ = hosts.slurmctld(STANDBY)
    active, server = hosts.slurmctld(ACTIVE)
    process = hosts.wait(standby, active)
    for _ in range(4):
        assert server.asked.acquire(timeout=PATIENCE_S)
    assert process.poll() is None
    server.shutdown()
    server.server_close()
    printed, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0
    assert printed == f"{active} has control: waiting for its end\n"


@pytest.mark.parametrize("status", [STANDBY, HTTPStatus.SERVICE_UNAVAILABLE])
def test_a_standby_is_not_waited_for(hosts: Hosts, status: int) -> None:
    standby, _ = hosts.slurmctld(status)
    process = hosts.wait(standby)
    assert process.communicate(timeout=PATIENCE_S) == ("", None)
    assert process.returncode == 0


def test_hosts_that_are_absent_are_not_waited_for(hosts: Hosts) -> None:
    hosts.slurmctld(STANDBY)
    process = hosts.wait(hosts.host(), "absent.invalid")
    assert process.wait(PATIENCE_S) == 0


def test_another_pod_than_the_first_waits_for_nobody(hosts: Hosts) -> None:
    active, _ = hosts.slurmctld(ACTIVE)
    assert hosts.wait(active, pod="c-controller-1").wait(PATIENCE_S) == 0


def test_one_that_takes_connections_and_never_answers_is_waited_for_a_while(hosts: Hosts) -> None:
    hosts.slurmctld(STANDBY)
    host = hosts.host()
    with closing(socket.create_server((host, hosts.port))) as mute:
        process = hosts.wait(host)
        for _ in range(int(QUICK["HANDOVER_PATIENCE"])):
            connection, _ = mute.accept()
            hosts.clean.enter_context(connection).recv(1)
            assert process.poll() is None
        assert process.wait(PATIENCE_S) == 0


def test_an_answer_that_comes_once_more_ends_no_wait(hosts: Hosts) -> None:
    """A slurmctld under load may miss one question."""
    active, server = hosts.slurmctld(ACTIVE)
    server.status = STANDBY
    process = hosts.wait(active)
    assert server.asked.acquire(timeout=PATIENCE_S)
    server.status = ACTIVE
    for _ in range(3):
        assert server.asked.acquire(timeout=PATIENCE_S)
    assert process.poll() is None
