"""Acknowledgements of configurations, parsed from the lines of the container `reconfigure`.

render/shell/reconfigure.sh documents the lines. Later lines replace earlier ones.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_LINE = re.compile(
    r"penstock: (?:"
    r"(?P<verb>tried|reconfigured) (?P<of>\S+) (?:ok|refused: (?P<why>.*))"
    r"|effective (?P<effective>\S+)"
    r"|pending (?P<pending>\S+)"
    r"|(?P<trouble>refused|waits|untried) (?P<hash>\S+): (?P<words>.*)"
    r"|slurm (?P<release>\d[\d.]*)"
    r"|mpi (?P<mpi>\w+(?: \w+)*)"
    r")"
)
_STAMP = re.compile(r"\[\d{4}-\d\d-\d\dT[\d:.]+\] ")


def _words() -> dict[str, str]:
    return {}


def _verdicts() -> dict[str, str | None]:
    return {}


@dataclass(frozen=True, slots=True)
class Acknowledgements:
    """Answers by the hash of a configuration; a verdict of None means yes, else why not.

    `tried` are trial starts, `rejected` the verdicts of slurmctld itself, `active` its
    configuration. `untried` has why a trial start gave no verdict, `blocked_by` why slurmctld could
    not be asked about the latest one. `pending` is in /etc/slurm and takes effect by a restart.
    `reconfigured` is by the value that requested it.
    """

    tried: Mapping[str, str | None] = field(default_factory=_verdicts)
    untried: Mapping[str, str] = field(default_factory=_words)
    pending: str = ""
    active: str = ""
    rejected: Mapping[str, str] = field(default_factory=_words)
    blocked_by: str = ""
    reconfigured: Mapping[str, str | None] = field(default_factory=_verdicts)
    release: str = ""
    """Version of Slurm in the container's image; empty when the log does not have it any more."""
    mpi: tuple[str, ...] = ()
    """MPI plug-ins of that image; empty when the log does not have them."""
    has_lines: bool = False
    """Whether there is any such line."""


def read(log: str) -> Acknowledgements:
    """Read the acknowledgements in a container's log; other lines are for people.

    Only a line feed ends a line: the container quotes slurmctld, whose messages may have other
    separators.
    """
    tried: dict[str, str | None] = {}
    untried: dict[str, str] = {}
    reconfigured: dict[str, str | None] = {}
    rejected: dict[str, str] = {}
    effective = waits = pending = release = ""
    mpi: tuple[str, ...] = ()
    spoke = False
    for text in log.split("\n"):
        found = _LINE.fullmatch(text)
        if found is None:
            continue
        spoke = True
        if found["release"]:
            release = found["release"]
        elif found["mpi"]:
            mpi = tuple(found["mpi"].split())
        elif found["verb"] == "tried":
            why = found["why"]
            tried[found["of"]] = None if why is None else _plain(why)
            untried.pop(found["of"], None)
            if why is None:
                # It was tried again, so an earlier verdict of the running slurmctld is obsolete.
                rejected.pop(found["of"], None)
        elif found["verb"]:
            why = found["why"]
            reconfigured[found["of"]] = None if why is None else _plain(why)
        elif found["effective"]:
            effective, waits, pending = found["effective"], "", ""
            rejected.pop(effective, None)
        elif found["pending"]:
            pending, waits = found["pending"], ""
        elif found["trouble"] == "refused":
            rejected[found["hash"]] = _plain(found["words"])
            waits = ""
        elif found["trouble"] == "untried":
            tried.pop(found["hash"], None)
            untried[found["hash"]] = _plain(found["words"])
        else:
            waits = _plain(found["words"])
    return Acknowledgements(
        tried, untried, pending, effective, rejected, waits, reconfigured, release, mpi, spoke
    )


def _plain(words: str) -> str:
    """Remove the times of Slurm's log, so that the same error is the same message."""
    return _STAMP.sub("", words).strip() or "it gave no reason"
