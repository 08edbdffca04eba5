"""Tar files with the same bytes for the same content."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import IO, cast

_MODE = 0o644


def write_tar(file: IO[bytes], members: Iterable[tuple[str, bytes | Path]], epoch: int) -> None:
    """The members in the given order, owned by root, as old as `epoch`."""
    with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.mtime, info.mode = epoch, _MODE
            if isinstance(content, bytes):
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
                continue
            info.size = content.stat().st_size
            with content.open("rb") as source:
                tar.addfile(info, source)


def write_tgz(path: Path, members: Iterable[tuple[str, bytes | Path]], epoch: int) -> None:
    """The same, compressed; the header has neither a name nor another time."""
    with (
        path.open("wb") as out,
        gzip.GzipFile(filename="", mode="wb", fileobj=out, mtime=epoch) as packed,
    ):
        write_tar(cast("IO[bytes]", packed), members, epoch)
