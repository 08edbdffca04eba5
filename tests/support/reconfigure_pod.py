"""The sidecar that tries files, run for real beside stand-ins for slurmctld and scontrol."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from penstock.render.config.content import content_hash
from penstock.render.parts.reconfigure import command
from support.volume import Volume

REFUSED = "slurm_reconfigure error: Unspecified error"
AWAY = "slurm_reconfigure error: Unable to contact slurm controller (connect failure)"
RUNS = 'echo "[2026-01-01T00:00:00.123] Running as primary controller"\nexec sleep 60\n'


class ConfVolume(Volume):
    """A volume with slurm.conf in it."""

    def write(self, text: str | None = None, **others: str) -> None:
        """Another generation: slurm.conf with this text, and dot files by their names."""
        given = {f".{name}": value for name, value in others.items()}
        given |= {"slurm.conf": text, "slurm.key": "secret"} if text is not None else {}
        self.show(given)


class Pod:
    """The volumes, stand-ins for Slurm's programs, and the side container."""

    is_shared_folder = False
    has_keys_beside = False

    def __init__(self, root: Path) -> None:
        self.etc, self.candidate = ConfVolume(root / "etc"), ConfVolume(root / "candidate")
        self.state, self.bin, self.spool = root / "state", root / "bin", root / "spool"
        for directory in (self.state, self.bin, self.spool):
            directory.mkdir()
        self.answer, self.calls, self.seen = root / "answer", root / "calls", root / "seen"
        self.keys = root / "keys"
        self.calls.touch()
        self.program(
            "scontrol",
            f"echo x >>{self.calls}\n[ -f {self.answer} ] || exit 0\ncat {self.answer}\nexit 1\n",
        )
        self.slurmctld(RUNS)
        self.etc.write("first")
        self.candidate.write("first")

    def program(self, name: str, text: str) -> None:
        new = self.bin / f".{name}"
        new.write_text(f"#!/bin/sh\n{text}")
        new.chmod(0o755)
        new.rename(self.bin / name)

    def slurmctld(self, text: str) -> None:
        """What a trial start does; its slurm.conf and arguments are kept."""
        version = '[ "$1" != -V ] || { echo "slurm-wlm 26.05.5"; exit; }\n'
        keep = f'for last; do :; done\ncp "$last" {self.seen}\necho "$@" >{self.seen}.args\n'
        self.program("slurmctld", version + keep + text)

    def reject(self, answer: str) -> None:
        new = self.answer.with_suffix(".new")
        new.write_text(answer)
        new.rename(self.answer)

    def start(self, **more: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            command(is_shared_folder=self.is_shared_folder, has_keys_beside=self.has_keys_beside)[
                3:
            ],
            env={
                "SLURM_KEYS": str(self.keys),
                "PATH": f"{self.bin}:{os.environ['PATH']}",
                "SLURM_ETC": str(self.etc.path),
                "SLURM_CANDIDATE": str(self.candidate.path),
                "SLURM_STATE": str(self.spool),
                "RECONFIGURE_STATE": str(self.state),
                "RECONFIGURE_TICK": "0.02",
                **more,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )


def hash_of(text: str) -> str:
    return content_hash({"slurm.conf": text, "slurm.key": "left out"})


def lines_until(process: subprocess.Popen[str], words: str) -> list[str]:
    """All lines up to the next one with these words; fails when the process ends before."""
    assert process.stdout
    lines: list[str] = []
    while line := process.stdout.readline():
        lines.append(line.rstrip("\n"))
        if words in line:
            return lines
    raise AssertionError(f"ended without saying {words!r}: {lines}")


def until(seen: Callable[[], bool]) -> None:
    """Wait for it, for as long as the test may take."""
    while not seen():
        time.sleep(0.01)
