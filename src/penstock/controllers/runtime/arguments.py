"""Arguments that the command lines of our processes have alike."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Final

LEVELS: Final = ("debug", "info", "warning", "error", "critical")
"""Of logs."""


@dataclass(frozen=True, slots=True)
class Address:
    """Address of a server. No host means each address of the pod, port 0 no server."""

    host: str | None
    port: int


def address(text: str) -> Address:
    """Parse `[HOST]:PORT`. Raises ValueError."""
    host, _, port = text.rpartition(":")
    return Address(host.strip("[]") or None, int(port))


def add_switch(parser: argparse.ArgumentParser, option: str, words: str) -> None:
    """An option that may have a value, as those of the original operators: `--option=false`."""
    parser.add_argument(
        option, nargs="?", type=_switch, const=True, default=False, metavar="BOOL", help=words
    )


def _switch(text: str) -> bool:
    """As Go reads one. Source: strconv.ParseBool."""
    if text in {"1", "t", "T", "true", "TRUE", "True"}:
        return True
    if text in {"0", "f", "F", "false", "FALSE", "False"}:
        return False
    raise ValueError(text)


_switch.__name__ = "true or false"
