"""Where durations of nodes outlive the process: a ConfigMap, or a file outside Kubernetes."""

from __future__ import annotations

import asyncio
import base64
import gzip
import os
import tempfile
from pathlib import Path
from typing import Final, Protocol

import msgspec
import structlog

from penstock.api.kubernetes.kinds import CONFIG_MAPS
from penstock.api.nebius import names
from penstock.controllers.exporter.history import VERSION, Saved
from penstock.kube import Client, Clock, ForbiddenError, KubeError, NotFoundError

_KEY: Final = "durations"
AGAIN_S: Final = 5.0

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)


class SavedState(Protocol):
    """A place for durations. Raises OSError or KubeError."""

    async def load(self) -> Saved | None:
        """What was saved last; None when nothing that can be read was."""
        ...

    async def save(self, saved: Saved) -> None:
        """Replace it."""
        ...


class NoState:
    """Durations end with the process."""

    async def load(self) -> Saved | None:
        """Nothing."""
        return None

    async def save(self, saved: Saved) -> None:
        """Nothing."""


class ConfigMapState:
    """The ConfigMap that the operator makes for the exporter of a SlurmCluster."""

    def __init__(self, client: Client, namespace: str, cluster: str) -> None:
        self._client = client
        self._namespace = namespace
        self._name = names.exporter_state(cluster)

    async def load(self) -> Saved | None:
        """Read the ConfigMap. Raises KubeError, but not for one that is not there."""
        try:
            found = await self._client.get(CONFIG_MAPS, self._namespace, self._name)
        except NotFoundError:
            return None
        text = (found.binary_data or {}).get(_KEY, "")
        return unpack(base64.b64decode(text))

    async def save(self, saved: Saved) -> None:
        """Patch the ConfigMap."""
        text = base64.b64encode(pack(saved)).decode()
        patch = {"binaryData": {_KEY: text}}
        await self._client.patch(CONFIG_MAPS, self._namespace, self._name, patch)


class FileState:
    """A local file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def load(self) -> Saved | None:
        """Read the file. Raises OSError, but not for one that is not there."""
        try:
            return unpack(self._path.read_bytes())
        except FileNotFoundError:
            return None

    async def save(self, saved: Saved) -> None:
        """Replace the file in one step. Raises OSError."""
        await asyncio.to_thread(self._replace, pack(saved))

    def _replace(self, content: bytes) -> None:
        handle, name = tempfile.mkstemp(dir=self._path.parent, prefix=f".{self._path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            Path(name).replace(self._path)
        except OSError:
            Path(name).unlink(missing_ok=True)
            raise


async def load(state: SavedState, clock: Clock) -> Saved | None:
    """What was saved last; waits for the API server, as a save would replace it.

    Raises OSError of a file.
    """
    while True:
        try:
            return await state.load()
        except ForbiddenError as error:
            log.warning("durations of earlier processes cannot be read", problem=str(error))
            return None
        except KubeError as error:
            log.warning("waiting for the API server", problem=str(error))
            await clock.sleep(AGAIN_S)


def pack(saved: Saved) -> bytes:
    """Compressed JSON: the same bytes for the same durations."""
    return gzip.compress(msgspec.json.encode(saved), compresslevel=1, mtime=0)


def unpack(packed: bytes) -> Saved | None:
    """What `pack` packed; None for anything else."""
    try:
        found = msgspec.json.decode(gzip.decompress(packed), type=Saved)
    except (OSError, EOFError, ValueError):
        return None
    return found if found.version == VERSION else None
