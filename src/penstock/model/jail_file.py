"""Files that are written into a jail, and the objects that declare them."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.catalog.condition_reason import ConditionReason

DEFAULT_MODE = 0o644


@dataclass(frozen=True, slots=True)
class JailFile:
    """One file: `path` is absolute, with the jail as its root. `mode` has permission bits only."""

    path: str
    content: bytes
    mode: int = DEFAULT_MODE


@dataclass(frozen=True, slots=True)
class Fault:
    """Why the files of an object are not written: a condition's reason and its message."""

    reason: ConditionReason
    message: str


@dataclass(frozen=True, slots=True)
class JailedFiles:
    """What one JailedConfig declares.

    `created` is its creation time as the API server writes it. `group` is the value of its
    aggregation label, None without one. `config_map` is where the content comes from. With
    `reconfigures` a change of its files is followed by a reconfigure of slurmctld. With a `fault`
    there are no `files`, or none of them may be written.
    """

    name: str
    created: str
    group: str | None
    config_map: str
    files: tuple[JailFile, ...] = ()
    reconfigures: bool = False
    fault: Fault | None = None
