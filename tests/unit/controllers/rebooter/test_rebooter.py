"""The rebooter on its node: once for each boot, and only with permission."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.api.kubernetes.meta import Json
from penstock.controllers.rebooter.arguments import BOOT_ID, COMMAND, Arguments, parse
from penstock.controllers.rebooter.process import Rebooter
from penstock.kube import Client
from penstock.model import node_mark
from penstock.model.node_mark import NodeMark, Purpose, Step
from penstock.simulation.apiserver import ApiServer, Connection

PATH = "/api/v1/nodes/gpu-7"
ALLOWED = NodeMark(Purpose.REBOOT, "boot-1", "t1", "", cordoned=True, step=Step.REBOOT)
ENVIRONMENT = {"REBOOTER_NODE_NAME": "gpu-7", "REBOOTER_EVICTION_METHOD": "evict"}


class Stage:
    """One Kubernetes node, and a stub that writes a line for each call."""

    def __init__(self, folder: Path) -> None:
        self.server = ApiServer(time.time)
        self.calls = folder / "calls"
        boot = folder / "boot_id"
        boot.write_text("boot-1\n")
        self.arguments = Arguments(
            node="gpu-7",
            command=("sh", "-c", f"echo called >> {self.calls}"),
            boot_id=boot,
            root="/",
            log_level="info",
        )
        self.server.ask("POST", "/api/v1/nodes", {"kind": "Node", "metadata": {"name": "gpu-7"}})
        self.ask()

    def ask(self, status: str = "True") -> None:
        one = {"type": "SlurmNodeReboot", "status": status, "reason": "NodeNeedReboot"}
        body = {"status": {"conditions": [one]}}
        self.server.ask("PATCH", f"{PATH}/status", body, kind="strategic")

    def mark(self, mark: NodeMark | None) -> None:
        text = mark.text if mark is not None else None
        body = {"metadata": {"annotations": {node_mark.OUT_OF_SERVICE: text}}}
        self.server.ask("PATCH", PATH, body)

    @property
    def node(self) -> Json:
        found = self.server.find("/nodes", "", "gpu-7")
        assert found is not None
        return found

    @property
    def started(self) -> str:
        found: str = self.node["metadata"].get("annotations", {}).get(node_mark.REBOOT_STARTED, "")
        return found

    @property
    def condition(self) -> Json:
        (found,) = self.node["status"]["conditions"]
        return found

    def count(self) -> int:
        return len(self.calls.read_text().splitlines()) if self.calls.exists() else 0

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[Rebooter]:
        rebooter = Rebooter(Client(Connection(self.server, "rebooter")), self.arguments)
        task = asyncio.create_task(rebooter.run())
        try:
            yield rebooter
        finally:
            task.cancel()
            await asyncio.wait([task])


async def until(is_so: Callable[[], object]) -> None:
    for _ in range(2000):
        if is_so():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not happen")


def test_it_reboots_once_it_may_and_only_once(tmp_path: Path):
    """S115: also when its process ends and another one begins before the node goes down."""

    async def play() -> None:
        stage = Stage(tmp_path)
        async with stage.running():
            stage.mark(replace(ALLOWED, step=Step.DRAIN))
            stage.mark(replace(ALLOWED, boot="boot-0"))
            stage.mark(ALLOWED)
            await until(lambda: stage.count() == 1)
        assert stage.started == "boot-1"
        assert stage.condition["reason"] == "NodeRebooting"
        assert stage.condition["status"] == "True"
        async with stage.running() as again:
            stage.mark(replace(ALLOWED, since="later"))
            await until(lambda: again.seen == stage.node["metadata"]["resourceVersion"])
        assert stage.count() == 1

    asyncio.run(play())


def test_a_withdrawn_request_is_not_done(tmp_path: Path):
    async def play() -> None:
        stage = Stage(tmp_path)
        stage.ask("False")
        stage.mark(ALLOWED)
        async with stage.running() as rebooter:
            await until(lambda: rebooter.seen == stage.node["metadata"]["resourceVersion"])
        assert stage.count() == 0
        assert stage.started == ""

    asyncio.run(play())


def test_a_command_that_fails_is_in_the_condition(tmp_path: Path):
    async def play() -> None:
        stage = Stage(tmp_path)
        words = "echo no systemd here; exit 3"
        stage.arguments = replace(stage.arguments, command=("sh", "-c", words))
        stage.mark(ALLOWED)
        async with stage.running():
            await until(lambda: "no systemd here" in stage.condition.get("message", ""))
        assert "exit status 3" in stage.condition["message"]

    asyncio.run(play())


def test_the_published_command_line_is_understood():
    found = parse(["-log-level=warn", "-log-format=json"], ENVIRONMENT)
    assert found.node == "gpu-7"
    assert found.command == COMMAND
    assert str(found.boot_id) == BOOT_ID
    assert found.log_level == "warning"
    assert parse(["-log-level=info", "-log-format="], ENVIRONMENT).log_level == "info"


def test_the_command_is_a_parameter():
    given = {**ENVIRONMENT, "REBOOTER_COMMAND": "sh -c 'echo a b'"}
    assert parse([], given).command == ("sh", "-c", "echo a b")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"REBOOTER_NODE_NAME": ""}, "REBOOTER_NODE_NAME is required"),
        ({"REBOOTER_EVICTION_METHOD": "drain"}, "'drain' is unknown, write evict"),
        ({"REBOOTER_COMMAND": "sh -c 'a"}, "REBOOTER_COMMAND"),
    ],
)
def test_a_wrong_variable_is_named(
    given: dict[str, str], words: str, capsys: pytest.CaptureFixture[str]
):
    with pytest.raises(SystemExit):
        parse([], {**ENVIRONMENT, **given})
    assert words in capsys.readouterr().err
