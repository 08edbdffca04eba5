"""The process of one rebooter: it watches its own Kubernetes node, and runs one command.

It needs these rights, beside a privileged container with hostPID:

    rules:
    - apiGroups: [""]
      resources: [nodes]
      verbs: [get, list, watch]
    - apiGroups: [""]
      resources: [nodes/status]
      verbs: [patch]
"""

from __future__ import annotations

import asyncio
import os
import signal
from functools import partial
from pathlib import Path
from typing import Final

import structlog

from penstock.api.kubernetes.kinds import NODES, Node
from penstock.controllers.rebooter.arguments import Arguments
from penstock.decide.reboot_command import may_reboot
from penstock.kube import Cache, Client, ConflictError, KubeError
from penstock.kube.client import config
from penstock.kube.client.transport import HttpTransport
from penstock.model import node_mark

REBOOT: Final = "SlurmNodeReboot"
REBOOTING: Final = "NodeRebooting"
"""Published reason of the condition once the command runs."""
RETRY_S: Final = 5.0

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)


class Rebooter:
    """Reboots one Kubernetes node when its mark and its condition ask for it."""

    def __init__(self, client: Client, arguments: Arguments) -> None:
        self._client = client
        self._arguments = arguments
        self._changed = asyncio.Event()
        self._cache = Cache[Node](client, NODES, fields=f"metadata.name={arguments.node}")
        self._cache.subscribe(lambda _old, _new: self._changed.set())
        self.seen = ""
        """The last version of the node that asked for nothing."""

    async def run(self) -> None:
        """Watch until cancelled. Raises OSError without a boot ID."""
        boot = await asyncio.to_thread(_read, self._arguments.boot_id)
        log.info("watching", node=self._arguments.node, boot=boot)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._cache.run())
            while True:
                await self._changed.wait()
                self._changed.clear()
                try:
                    await self.reconcile(boot)
                except KubeError as error:
                    log.warning("not written", error=str(error))
                    await self._client.clock.sleep(RETRY_S)
                    self._changed.set()

    async def reconcile(self, boot: str) -> None:
        """Note that the reboot begins, then run the command. Raises KubeError.

        The note names the version of the node that was decided on. If the operator has withdrawn
        the mark meanwhile, the note is rejected, and nothing is run.
        """
        node = self._cache.get(self._arguments.node)
        if node is None:
            return
        found = node.condition(REBOOT)
        asked = found is not None and found.status == "True"
        if not may_reboot(node.metadata.annotations, boot, is_requested=asked):
            self.seen = node.metadata.resource_version
            return
        try:
            await self._note(node, boot, "The rebooter runs its command")
        except ConflictError:
            # The watch brings the newer node.
            return
        log.info("rebooting", node=node.metadata.name, command=self._arguments.command)
        failure = await self._run_command()
        if failure:
            log.error("the reboot failed", error=failure)
            await self._note(None, boot, f"The command to reboot failed: {failure}")

    async def _note(self, node: Node | None, boot: str, message: str) -> None:
        metadata: dict[str, object] = {"annotations": {node_mark.REBOOT_STARTED: boot}}
        if node is not None:
            meta = node.metadata
            metadata |= {"uid": meta.uid, "resourceVersion": meta.resource_version}
        condition = {"type": REBOOT, "status": "True", "reason": REBOOTING, "message": message}
        body = {"metadata": metadata, "status": {"conditions": [condition]}}
        await self._client.patch(
            NODES, "", self._arguments.node, body, kind="strategic", subresource="status"
        )

    async def _run_command(self) -> str:
        """Run the command in the root of PID 1; its failure in words, empty without one."""
        try:
            process = await asyncio.create_subprocess_exec(
                *self._arguments.command,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                preexec_fn=partial(_enter, self._arguments.root),
            )
        except (OSError, ValueError) as error:
            return str(error)
        output, _ = await process.communicate()
        if not process.returncode:
            return ""
        words = " ".join(output.decode(errors="replace").split())[-300:]
        return f"exit status {process.returncode}: {words}"


def _enter(root: str) -> None:
    if root != "/":
        os.chroot(root)
        os.chdir("/")


def _read(path: Path) -> str:
    return path.read_text().strip()


async def run(arguments: Arguments) -> None:
    """Run until SIGTERM. Raises ConfigError and OSError when it cannot start."""
    transport = HttpTransport(config.load())
    try:
        task = asyncio.create_task(Rebooter(Client(transport), arguments).run())
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, task.cancel)
        await asyncio.wait([task])
        if not task.cancelled() and (error := task.exception()) is not None:
            raise error
    finally:
        await transport.close()
