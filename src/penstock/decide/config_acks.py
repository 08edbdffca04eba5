"""What the reconfigure container says of configurations: its lines, read back.

The lines are described in render/shell/reconfigure.sh. Later ones count more than earlier ones.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_LINE = re.compile(
    r"^penstock: (?:"
    r"(?P<verb>tried|reconfigured) (?P<of>\S+) (?:ok|refused: (?P<why>.*))"
    r"|effective (?P<effective>\S+)"
    r"|(?P<trouble>refused|waits) (?P<hash>\S+): (?P<words>.*)"
    r")$"
)
_STAMP = re.compile(r"\[\d{4}-\d\d-\d\dT[\d:.]+\] ")


def _words() -> dict[str, str]:
    return {}


def _verdicts() -> dict[str, str | None]:
    return {}


@dataclass(frozen=True, slots=True)
class Acks:
    """Answers by the hash of a configuration; a verdict of None means yes, else why not.

    `tried` is of trial starts, `refused` of the real slurmctld, `effective` what that runs with.
    `waits` says why slurmctld could not be asked about the latest one. `reconfigured` is by the
    value that asked for it.
    """

    tried: Mapping[str, str | None] = field(default_factory=_verdicts)
    effective: str = ""
    refused: Mapping[str, str] = field(default_factory=_words)
    waits: str = ""
    reconfigured: Mapping[str, str | None] = field(default_factory=_verdicts)


def read(log: str) -> Acks:
    """The answers in a container's log; lines of other forms are for people."""
    tried: dict[str, str | None] = {}
    reconfigured: dict[str, str | None] = {}
    refused: dict[str, str] = {}
    effective = waits = ""
    for text in log.splitlines():
        found = _LINE.match(text)
        if found is None:
            continue
        if found["verb"] == "tried":
            why = found["why"]
            tried[found["of"]] = None if why is None else _plain(why)
            if why is None:
                # Tried anew, so what the real one said of it before is past.
                refused.pop(found["of"], None)
        elif found["verb"]:
            why = found["why"]
            reconfigured[found["of"]] = None if why is None else _plain(why)
        elif found["effective"]:
            effective, waits = found["effective"], ""
            refused.pop(effective, None)
        elif found["trouble"] == "refused":
            refused[found["hash"]] = _plain(found["words"])
            waits = ""
        else:
            waits = _plain(found["words"])
    return Acks(tried, effective, refused, waits, reconfigured)


def _plain(words: str) -> str:
    """Without the times of Slurm's log: the same words are the same message then."""
    return _STAMP.sub("", words).strip() or "it gave no reason"
