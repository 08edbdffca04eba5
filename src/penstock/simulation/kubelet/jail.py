"""The jail of a simulated SlurmCluster, as far as it decides which configuration daemons read."""

from __future__ import annotations

from collections.abc import Callable

from penstock.decide.jail.configuration import named
from penstock.slurm.conf.includes import SLURM_CONF
from penstock.slurm.conf.manifest import MANIFEST, manifest

DIFFERENT_S = 30.0
"""A folder that differs from its manifest is used all the same when it is unchanged for so long.
Source: images/entrypoints/jail.py."""


class Jail:
    """Whether it is filled, and /etc/slurm in it. `clock` gives seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.is_filled = False
        self.files: dict[str, bytes] = {}
        """The folder by name, with its manifest."""
        self._clock = clock
        self._changed_at = float("-inf")

    def put(self, name: str, content: bytes) -> None:
        """Rename a file into place."""
        self.files[name] = content
        self._changed_at = self._clock()

    def remove(self, name: str) -> None:
        """Remove a file."""
        self.files.pop(name, None)
        self._changed_at = self._clock()

    def present(self) -> dict[str, str]:
        """The files beside the manifest, also between two states."""
        return {name: text.decode() for name, text in self.files.items() if name != MANIFEST}

    def is_complete(self) -> bool:
        """Whether `sha256sum --check` accepts the folder."""
        text = self.files.get(MANIFEST, b"").decode()
        listed = named(text)
        if SLURM_CONF not in listed or not listed <= self.files.keys():
            return False
        return manifest({name: self.files[name] for name in listed}) == text

    def is_usable(self) -> bool:
        """Whether daemons start with it."""
        if not self.is_filled or SLURM_CONF not in self.files:
            return False
        return self.is_complete() or self._clock() - self._changed_at >= DIFFERENT_S
