"""SHA256SUMS, as `sha256sum --check` reads it."""

from __future__ import annotations

import hashlib
from pathlib import Path

SUMS = "SHA256SUMS"


def write_sums(folder: Path) -> None:
    """A line for each other file of the folder, by name."""
    files = sorted(one for one in folder.rglob("*") if one.is_file() and one.name != SUMS)
    lines = [f"{_sum(one)}  {one.relative_to(folder)}\n" for one in files]
    (folder / SUMS).write_text("".join(lines), encoding="utf-8")


def _sum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
