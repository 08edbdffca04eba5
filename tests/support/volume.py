"""A folder as the kubelet keeps it for a pod: all of its files change at once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


class Volume:
    """Shows one generation of files after the other."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.generation = 0
        path.mkdir()

    def show(self, files: Mapping[str, str]) -> None:
        """Another generation, with these files by name."""
        self.generation += 1
        data = self.path / f"..{self.generation}"
        data.mkdir()
        for name, content in files.items():
            (data / name).write_text(content)
            if not (self.path / name).is_symlink():
                (self.path / name).symlink_to(f"..data/{name}")
        link = self.path / "..new"
        link.symlink_to(data.name)
        link.rename(self.path / "..data")
