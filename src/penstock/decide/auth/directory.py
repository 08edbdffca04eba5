"""What sssd of a login pod says of its directory.

sssd keeps local users working while it has no directory, so the pods stay ready and nothing else
tells. Its words are those of SSSD's src/providers/ldap; the search bases are shown by our image
only (`images/entrypoints/sssd_lines.py`), since sssd itself has them as traces.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from penstock.api.kubernetes.conditions import Finding, find
from penstock.api.kubernetes.meta import Condition

FAILING = "DirectoryFailing"
"""The condition's type. It leaves Ready alone."""
_BACKENDS = re.compile(r"^[ \t]*+id_provider[ \t]*+=[ \t]*+(?!proxy|files)\w", re.MULTILINE)
_BIND = "Bind result: "
_CODE = re.compile(r"\((\d{1,9})\)")
_REFUSED = re.compile(r"(Unable to establish connection)(?: \[\d+\])?(: [^\n]*)")
_CONNECTED = "Connection established."
_SEARCH = "Search result: "
_BASE = ", base: ["
LONGEST_LINE = 4096
"""Characters of a line that are read; sssd's own lines have a few hundred."""
MOST_LINES = 4096
"""Lines of a log that are read at once; the operator asks for fewer."""
MOST_BASES = 64
"""Search bases that are remembered; a domain of sssd has at most ten."""
_SUCCESS = "0"


def asks(conf: str) -> bool:
    """Whether an sssd.conf has users who are elsewhere: what is in files cannot refuse anybody."""
    return _BACKENDS.search(conf) is not None


class _Search(NamedTuple):
    """What a line says of one search."""

    words: str
    code: str
    base: str


def _bound(line: str) -> str:
    """The result of a bind, to the end of the line; empty when the line has none."""
    _, mark, rest = line.partition(_BIND)
    return f"{mark}{rest.rstrip()}" if mark and _CODE.search(rest) else ""


def _searched(line: str) -> _Search | None:
    _, mark, rest = line.partition(_SEARCH)
    code = _CODE.search(rest) if mark else None
    if code is None:
        return None
    words, _, base = rest[code.end() :].partition(_BASE)
    end = base.rfind("]")
    if end < 0:
        return None
    told = f"{mark}{rest[: code.end()]}{words}"
    return _Search(told, code[1], f"base: [{base[: end + 1]}")


@dataclass(frozen=True, slots=True)
class Said:
    """What is still true of what one sssd said: its last connection, and each search base."""

    connection: str = ""
    bases: Mapping[str, str] = field(default_factory=dict[str, str])

    def after(self, log: str) -> Said:
        """The same, once it has said more; lines that were counted may come again."""
        connection, bind, bases = self.connection, "", dict(self.bases)
        # Only a line feed ends a line: a name in it may have any other separator of Unicode.
        for whole in log.split("\n")[-MOST_LINES:]:
            line = whole[:LONGEST_LINE]
            if told := _bound(line):
                bind = told
            elif found := _REFUSED.search(line):
                # The number is sssd's own for the words that follow.
                told = found[1] + found[2]
                connection, bind = f"{bind}; {told}" if bind else told, ""
            elif _CONNECTED in line:
                connection, bind = "", ""
            elif (search := _searched(line)) is not None:
                bases.pop(search.base, None)
                if search.code != _SUCCESS and len(bases) < MOST_BASES:
                    bases[search.base] = f"{search.words}, {search.base}"
        return Said(connection, bases)

    @property
    def words(self) -> str:
        """What is wrong, in sssd's words; empty when nothing is known to be."""
        return "; ".join(filter(None, (self.connection, *self.bases.values())))


def findings(secret: str, every: Mapping[str, str], old: Iterable[Condition]) -> list[Finding]:
    """The condition: there from the first trouble on. `every` has the words by pod."""
    told = {words: pod for pod, words in sorted(every.items(), reverse=True) if words}
    if told:
        # One pod of those that say the same is enough.
        said = "; ".join(f"sssd of {pod} says: {words}" for words, pod in told.items())
        message = f"{said}. Directory users are not known here; correct Secret {secret}"
        return [Finding(True, "SssdFails", message, type=FAILING)]
    if find(old, FAILING) is None:
        return []
    return [Finding(True, "SssdWorks", type=FAILING, inverted=True)]


def news(findings: Iterable[Finding], old: Iterable[Condition]) -> str:
    """What is to be told by an event: trouble that the condition does not have already."""
    before = find(old, FAILING)
    for one in findings:
        if one.type == FAILING and not one.inverted:
            known = (before.status, before.message) if before is not None else None
            return "" if known == ("True", one.message) else one.message
    return ""
