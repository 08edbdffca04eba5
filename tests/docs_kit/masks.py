"""What differs from run to run in the output of commands: times, addresses, generated names."""

from __future__ import annotations

import re
from collections.abc import Iterable

from support.kubernetes_minor import MINOR

_NAMED = re.compile(r'(?<=" deleted) from \S+ namespace$')
"""kubectl before 1.34 names no namespace."""
MASKS = (
    *(((_NAMED, ""),) if MINOR < 34 else ()),
    # A condition's message may end with the address of its runbook.
    (re.compile(r"\. See https://penstock\.dev/r/\w+$"), ""),
    (re.compile(r"\x1b\[[0-9;]*m"), ""),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?(Z|[+-]\d\d:?\d\d)?"), "TIME"),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"), "UID"),
    (re.compile(r"\b\d+\.\d+\.\d+\.\d+(:\d+)?\b"), "IP"),
    (re.compile(r"(?<=-)[0-9a-f]{6,10}-[bcdf-hj-np-tv-z2-9]{5}\b"), "POD"),
    (re.compile(r"(?<=-)[bcdf-hj-np-tv-z2-9]{5}\b"), "POD"),
    (re.compile(r"\b(\d+-)?\d{1,2}:\d\d(:\d\d)?\b"), "AGE"),
    (re.compile(r"\b\d+(\.\d+)? ?(s|ms|seconds)\b"), "AGE"),
    (
        re.compile(r"\b(\d+d)?(\d+h)?(\d+m)?(\d+s)\b|\b\d+d(\d+h)?\b|\b\d+h(\d+m)?\b|\b\d+m\b"),
        "AGE",
    ),
    (re.compile(r"(?i)\b(job|JobId=|slurm-|hello-|job_)(:? ?)\d+"), r"\1\2N"),
    (re.compile(r"(?<=:)\d{5}(?=/TCP)"), "PORT"),
    (re.compile(r"\bnode/\S+"), "node/NAME"),
)
COLUMNS = {
    "AGE", "CPUS", "CPU", "FREE_MEM", "IP", "JOBID", "LAST", "MEMORY", "NODE", "RESTARTS", "S:C:T",
    "TIME", "TMP_DISK", "CPUS(A/I/O/T)",
}  # fmt: skip
"""Columns of tables whose values depend on the computer, the time or earlier jobs."""
ANY = "..."


def masked(lines: Iterable[str]) -> list[str]:
    """Return lines with masks in place of what differs, and single blanks between words."""
    found: list[str] = []
    hidden: dict[int, int] = {}
    """Columns to mask in the rows of the present table, and their number of words."""
    width = 0
    for line in lines:
        words = _columns(line)
        if words and all(word == word.upper() for word in words) and set(words) & COLUMNS:
            hidden = {at: at for at, word in enumerate(words) if word in COLUMNS}
            width = len(words)
        elif hidden and len(words) == width:
            words = ["*" if at in hidden else word for at, word in enumerate(words)]
        elif not words:
            hidden = {}
        text = " ".join(words)
        for pattern, mask in MASKS:
            text = pattern.sub(mask, text)
        found.append(text.rstrip())
    while found and not found[-1]:
        found.pop()
    return found


def matches(shown: Iterable[str], printed: Iterable[str], *, unordered: bool = False) -> bool:
    """Return whether a command printed what the page shows. `...` stands for any lines."""
    left, right = masked(shown), masked(printed)
    if unordered:
        left, right = sorted(left), sorted(right)
        if ANY in left:
            return all(line in right for line in left if line != ANY)
    return _same(left, right)


def _same(left: list[str], right: list[str]) -> bool:
    if not left:
        return not right
    if left[0] == ANY:
        return any(_same(left[1:], right[at:]) for at in range(len(right) + 1))
    return bool(right) and left[0] == right[0] and _same(left[1:], right[1:])


def _columns(line: str) -> list[str]:
    """Split a line into words; kubectl's `4 (2m ago)` of RESTARTS is one word."""
    return re.sub(r"(\d+) \((\S+) ago\)", r"\1", line).split()
