"""Whether workers with a root of their own have the same in it, by the reports of their sidecars.

A report is a line of a sidecar's log. Its form: images/entrypoints/jail_report.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from penstock.api.kubernetes.conditions import Finding
from penstock.base.text import list_some
from penstock.catalog.condition_reason import ConditionReason
from penstock.catalog.condition_type import ConditionType
from penstock.catalog.reasons.jail import JailReason
from penstock.model.root_report import RootReport

ROOTS_EQUAL: Final = ConditionType.WORKER_ROOTS_EQUAL
"""Type of the condition about the roots of workers."""
_PREFIX: Final = "penstock: root "
_MORE: Final = "*"
_IMAGE, _PACKAGES, _PROGRAMS = "image", "packages", "programs"
_SUBJECTS: Final = (_IMAGE, _PACKAGES, _PROGRAMS, "accounts", "users")
"""In the order of messages; a newer image may report others, which follow."""
_NEXT: Final = (
    "Make the same change on each worker, or delete the PVC and the pod of a worker to fill its "
    "root again"
)


def parse(log: str) -> RootReport | None:
    """The last report in a log; None without one."""
    line = next((one for one in reversed(log.splitlines()) if one.startswith(_PREFIX)), None)
    if line is None:
        return None
    digests: dict[str, str] = {}
    changes: dict[str, list[str]] = {}
    for word in line.removeprefix(_PREFIX).split(" "):
        name, colon, change = word.partition(":")
        if colon and "=" not in name:
            changes.setdefault(name, []).append(change)
        elif "=" in word:
            name, _, digest = word.partition("=")
            digests[name] = digest
    return RootReport(digests, changes) if digests else None


def finding(reports: Mapping[str, RootReport | None]) -> Finding:
    """The condition. `reports` are by worker, None where there is none yet."""
    known = {name: one for name, one in sorted(reports.items()) if one is not None}
    different = list(_differences(known))
    if different:
        words = f"Roots differ: {list_some(different, '; ')}. {_NEXT}"
        return _condition(False, JailReason.ROOTS_DIFFER, words)
    missing = sorted(reports.keys() - known.keys())
    if missing:
        words = f"No report of the root of {list_some(missing)} yet"
        return _condition(None, JailReason.ROOTS_UNKNOWN, words)
    words = f"{len(known)} workers have the same packages, programs and accounts in their roots"
    return _condition(True, JailReason.ROOTS_EQUAL, words)


def _condition(ok: bool | None, reason: ConditionReason, words: str) -> Finding:
    return Finding(ok, reason, words, ROOTS_EQUAL, excluded_from_ready=True)


def _differences(reports: Mapping[str, RootReport]) -> Iterator[str]:
    """One text for each worker that differs from most others."""
    subjects = dict.fromkeys(
        (*_SUBJECTS, *(name for one in reports.values() for name in one.digests))
    )
    usual = {name: _usual(name, reports) for name in subjects}
    for worker, report in reports.items():
        parts: list[str] = []
        others: list[str] = []
        for subject, group in usual.items():
            if worker in group or not group:
                continue
            if subject == _PROGRAMS and any(one.startswith(_PACKAGES) for one in parts):
                continue
            parts.append(_part(subject, report, reports[group[0]]))
            others = others or list(group)
        if parts:
            than = others[0] if len(others) == 1 else f"{len(others)} others"
            yield f"{worker} from {than} in {', '.join(parts)}"


def _usual(subject: str, reports: Mapping[str, RootReport]) -> Sequence[str]:
    """The largest group of workers with the same digest; the first one of equal groups."""
    groups: dict[str, list[str]] = {}
    for worker, report in reports.items():
        if (digest := report.digests.get(subject)) is not None:
            groups.setdefault(digest, []).append(worker)
    return max(groups.values(), key=len, default=())


def _part(subject: str, report: RootReport, usual: RootReport) -> str:
    if subject == _IMAGE:
        return "image (filled from another one)"
    own, other = (one.changes.get(subject, ()) for one in (report, usual))
    words = [one for one in own if one not in other and one != _MORE]
    words += [_inverted(one) for one in other if one not in own and one != _MORE]
    if _MORE in own or _MORE in other:
        words.append("and more")
    return f"{subject} ({', '.join(words)})" if words else subject


def _inverted(change: str) -> str:
    return f"{'-' if change.startswith('+') else '+'}{change[1:]}"
