"""power-manager, which slurmctld's programs for power saving call."""

from __future__ import annotations

import json
import socket
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

POWER = Path(__file__).parents[3] / "images/power"
BASE = "/apis/slurm.nebius.ai/v1alpha1/namespaces/soperator"
Answer = tuple[int, dict[str, Any]]


class Server:
    """NodeSets and NodeSetPowerStates of one namespace. `faults` are answered first."""

    def __init__(self) -> None:
        self.node_sets: dict[str, dict[str, Any]] = {}
        self.states: dict[str, dict[str, Any]] = {}
        self.version = 1
        self.faults: list[Answer | None] = []
        self.asked: list[str] = []
        self.before_write: Callable[[], None] = lambda: None

    def declare(self, name: str = "eph", size: int = 4, *, ephemeral: bool = True) -> None:
        self.node_sets[name] = {"spec": {"replicas": size, "ephemeralNodes": ephemeral}}

    def set_active(self, *ordinals: int, name: str = "eph") -> None:
        self.version += 1
        meta = {"name": name, "resourceVersion": str(self.version)}
        self.states[name] = {"metadata": meta, "spec": {"activeNodes": list(ordinals)}}

    def active(self, name: str = "eph") -> list[int]:
        found: list[int] = self.states[name]["spec"]["activeNodes"]
        return found

    def connect(self, host: str, port: int, folder: Path) -> socket.socket:
        del host, port, folder
        if self.faults and self.faults[0] is None:
            self.faults.pop(0)
            raise ConnectionRefusedError("connection refused")
        near, far = socket.socketpair()
        threading.Thread(target=self._serve, args=(far,), daemon=True).start()
        return near

    def _serve(self, line: socket.socket) -> None:
        with line:
            request = b""
            while b"\r\n\r\n" not in request:
                request += line.recv(65536)
            head, _, content = request.partition(b"\r\n\r\n")
            first, *fields = head.decode().split("\r\n")
            sizes = [one.split(": ")[1] for one in fields if one.startswith("Content-Length")]
            while len(content) < int(sizes[0]):
                content += line.recv(65536)
            method, path, _ = first.split()
            self.asked.append(f"{method} {path.removeprefix(BASE)}")
            status, body = self._answer(method, path, json.loads(content) if content else {})
            line.sendall(f"HTTP/1.0 {status} X\r\n\r\n{json.dumps(body)}".encode())

    def _answer(self, method: str, path: str, body: dict[str, Any]) -> Answer:
        if self.faults and (fault := self.faults.pop(0)) is not None:
            return fault
        _, kind, name = f"{path.removeprefix(BASE)}/".split("/")[:3]
        objects = self.node_sets if kind == "nodesets" else self.states
        if method == "GET":
            return (200, objects[name]) if name in objects else (404, {"message": "not found"})
        self.before_write()
        name = name or body["metadata"]["name"]
        live = self.states.get(name)
        if method == "POST" and live is not None:
            return 409, {"message": "exists"}
        given = body["metadata"].get("resourceVersion")
        if live is not None and live["metadata"]["resourceVersion"] != given:
            return 409, {"message": "the object has been modified"}
        self.set_active(*body["spec"]["activeNodes"], name=name)
        return 200, self.states[name]


@pytest.fixture
def server() -> Server:
    found = Server()
    found.declare()
    found.set_active(0)
    return found


@pytest.fixture
def run(
    power_manager: ModuleType, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., int]:
    monkeypatch.setattr(power_manager, "LOG", tmp_path / "log")
    monkeypatch.setattr(power_manager, "PAUSE", 0.001)
    monkeypatch.setattr(power_manager, "POLL", 0.001)
    (tmp_path / "namespace").write_text("soperator")
    (tmp_path / "token").write_text("secret")
    api = power_manager.KubeApi(tmp_path, ("api", 443), server.connect)

    def call(*arguments: str, timeout: str = "20s") -> int:
        found: int = power_manager.main([*arguments, "-timeout", timeout], api)
        return found

    return call


@pytest.fixture
def logged(tmp_path: Path) -> Callable[[], str]:
    return lambda: (tmp_path / "log").read_text()


@pytest.mark.parametrize(
    ("hosts", "names"),
    [
        ("eph-3", ["eph-3"]),
        ("eph-[0-2,7]", ["eph-0", "eph-1", "eph-2", "eph-7"]),
        ("a-[0-1],b-c-5", ["a-0", "a-1", "b-c-5"]),
        ("a-[08-10]", ["a-08", "a-09", "a-10"]),
    ],
)
def test_a_host_list_has_the_names_that_slurmctld_means(
    power_manager: ModuleType, hosts: str, names: list[str]
) -> None:
    assert power_manager.expand(hosts) == names


def test_resume_adds_ordinals_and_suspend_removes_them(
    run: Callable[..., int], server: Server
) -> None:
    assert run("resume", "-nodes", "eph-[1,3]") == 0
    assert server.active() == [0, 1, 3]
    assert run("suspend", "--nodes=eph-[0-1]") == 0
    assert server.active() == [3]
    before = len(server.asked)
    assert run("resume", "-nodes", "eph-3") == 0
    assert not [one for one in server.asked[before:] if not one.startswith("GET")]


def test_a_resume_without_the_object_creates_it(run: Callable[..., int], server: Server) -> None:
    del server.states["eph"]
    assert run("resume", "-nodes", "eph-2") == 0
    assert server.active() == [2]
    assert "POST /nodesetpowerstates" in server.asked


def test_a_suspend_without_the_object_has_nothing_to_do(
    run: Callable[..., int], server: Server
) -> None:
    del server.states["eph"]
    assert run("suspend", "-nodes", "eph-2") == 0
    assert server.states == {}


def test_two_resumes_at_once_lose_nothing(run: Callable[..., int], server: Server) -> None:
    def another() -> None:
        server.before_write = lambda: None
        server.set_active(0, 3)

    server.before_write = another
    assert run("resume", "-nodes", "eph-1") == 0
    assert server.active() == [0, 1, 3]


@pytest.mark.parametrize("fault", [None, (500, {}), (503, {}), (401, {}), (403, {}), (429, {})])
def test_a_resume_is_repeated_while_the_api_server_is_away(
    run: Callable[..., int], server: Server, fault: Answer | None
) -> None:
    server.faults = [fault, fault]
    assert run("resume", "-nodes", "eph-1") == 0
    assert server.active() == [0, 1]


def test_a_resume_gives_up_at_its_timeout_with_words(
    run: Callable[..., int], server: Server, logged: Callable[[], str]
) -> None:
    server.faults = [None] * 1000
    assert run("resume", "-nodes", "eph-1", timeout="10ms") == 1
    assert "giving up: api: connection refused" in logged()


def test_ordinals_out_of_range_are_rejected_and_the_others_are_resumed(
    run: Callable[..., int], server: Server, logged: Callable[[], str]
) -> None:
    assert run("resume", "-nodes", "eph-[3-4]") == 1
    assert server.active() == [0, 3]
    assert "ordinals 4 are out of range: NodeSet eph has 4 nodes" in logged()


def test_a_suspend_takes_ordinals_out_of_range_away(
    run: Callable[..., int], server: Server
) -> None:
    server.set_active(0, 7)
    assert run("suspend", "-nodes", "eph-7") == 0
    assert server.active() == [0]


@pytest.mark.parametrize(
    ("hosts", "words"),
    [
        ("gone-1", "there is no NodeSet gone in namespace soperator"),
        ("always-1", "NodeSet always has no ephemeral nodes"),
        ("login", "'login' is no node of a NodeSet"),
        ("eph-[a]", "is no host list"),
        ("eph-[1-]", "is no range of numbers"),
    ],
)
def test_nodes_that_have_no_pod_by_power_are_rejected_with_words(
    run: Callable[..., int], server: Server, logged: Callable[[], str], hosts: str, words: str
) -> None:
    server.declare("always", ephemeral=False)
    assert run("resume", "-nodes", hosts) == 1
    assert words in logged()


def test_one_nodeset_waits_for_no_other(run: Callable[..., int], server: Server) -> None:
    server.declare("other")
    server.set_active(name="other")
    server.faults = [(500, {"message": "etcd is away"})]
    assert run("resume", "-nodes", "eph-1,other-2,gone-0") == 1
    assert (server.active(), server.active("other")) == ([0, 1], [2])


def test_waits_end_once_the_ordinals_are_there_or_gone(
    run: Callable[..., int], server: Server
) -> None:
    assert run("wait-added", "-nodes", "eph-0") == 0
    assert run("wait-removed", "-nodes", "eph-1") == 0
    assert run("wait-added", "-nodes", "eph-1", timeout="5ms") == 1
    assert run("wait-removed", "-nodes", "eph-0", timeout="5ms") == 1
    del server.states["eph"]
    assert run("wait-removed", "-nodes", "eph-0", timeout="5ms") == 1


def test_wrong_arguments_have_their_own_exit_status(run: Callable[..., int]) -> None:
    for arguments in (("resume",), ("restart", "-nodes", "eph-0")):
        with pytest.raises(SystemExit) as ended:
            run(*arguments)
        assert ended.value.code == 2
    with pytest.raises(SystemExit) as ended:
        run("resume", "-nodes", "eph-0", timeout="soon!")
    assert ended.value.code == 2


def test_a_timeout_is_a_duration_or_a_key_of_slurm_conf(
    power_manager: ModuleType, tmp_path: Path
) -> None:
    conf = tmp_path / "slurm.conf"
    conf.write_text("include own.conf\nResumeTimeout=10\n")
    (tmp_path / "own.conf").write_text("ResumeTimeout=1800\nSuspendTimeout=90\n")
    assert power_manager.seconds("1m30s") == 90
    assert power_manager.seconds("250ms") == 0.25
    assert power_manager.seconds("ResumeTimeout", conf) == 1800
    assert power_manager.seconds("SuspendTimeout", conf) == 90
    assert power_manager.seconds("AbsentTimeout", conf) == 60


def test_the_programs_of_slurm_conf_are_executable_shell() -> None:
    for path in POWER.iterdir():
        assert path.stat().st_mode & 0o111
        subprocess.run(["/bin/sh", "-n", str(path)], check=True)
