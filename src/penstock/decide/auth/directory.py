"""State of the directory service that sssd of a login pod uses, read from sssd's log.

Local users work without the directory, so the pods stay ready and no other signal exists. The lines
are those of SSSD's src/providers/ldap. The search bases are added by our image
(`images/entrypoints/sssd_lines.py`) and by the sidecar of SlurmClusters
(`render/shell/sssd_sidecar.sh`); sssd itself has them as traces.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from penstock.api.kubernetes.conditions import Finding, find
from penstock.api.kubernetes.meta import Condition

FAILING = "DirectoryFailing"
"""The condition's type. It does not affect Ready."""
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
_OTHER_FILE = "sssd.conf or a certificate has changed; starting again with it"
"""The sidecar's own line: search bases of the former file count no more."""


def asks(conf: str) -> bool:
    """Return whether an sssd.conf names a directory service; users in files need none."""
    return _BACKENDS.search(conf) is not None


class _Search(NamedTuple):
    """The result of one search in a line of the log."""

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
    words = f"{mark}{rest[: code.end()]}{words}"
    return _Search(words, code[1], f"base: [{base[: end + 1]}")


@dataclass(frozen=True, slots=True)
class DirectoryState:
    """Last known state of one sssd: error of the connection, and error of each search base."""

    connection: str = ""
    bases: Mapping[str, str] = field(default_factory=dict[str, str])

    def after(self, log: str) -> DirectoryState:
        """Return the state after more lines of the log; lines may be repeated."""
        connection, bind, bases = self.connection, "", dict(self.bases)
        # Only a line feed ends a line: a name in it may have any other separator of Unicode.
        for whole in log.split("\n")[-MOST_LINES:]:
            line = whole[:LONGEST_LINE]
            if words := _bound(line):
                code = _CODE.search(words)
                bind = words
                if code is not None and code[1] == _SUCCESS:
                    connection, bind = "", ""
            elif found := _REFUSED.search(line):
                # The number is sssd's own for the words that follow.
                words = found[1] + found[2]
                connection, bind = f"{bind}; {words}" if bind else words, ""
            elif _CONNECTED in line:
                connection, bind = "", ""
            elif line.endswith(_OTHER_FILE):
                bases.clear()
            elif (search := _searched(line)) is not None:
                bases.pop(search.base, None)
                if search.code != _SUCCESS and len(bases) < MOST_BASES:
                    bases[search.base] = f"{search.words}, {search.base}"
        return DirectoryState(connection, bases)

    @property
    def words(self) -> str:
        """Return the errors in sssd's words; empty while none is known."""
        return "; ".join(filter(None, (self.connection, *self.bases.values())))


def findings(secret: str, every: Mapping[str, str], old: Iterable[Condition]) -> list[Finding]:
    """Return the condition from the first error on. `every` has the errors of each pod."""
    pods = {words: pod for pod, words in sorted(every.items(), reverse=True) if words}
    if pods:
        # One pod is enough of those with the same errors.
        errors = "; ".join(f"sssd of {pod} reports: {words}" for words, pod in pods.items())
        message = f"{errors}. Directory users are not known here; correct Secret {secret}"
        return [Finding(True, "SssdFails", message, type=FAILING)]
    if find(old, FAILING) is None:
        return []
    return [Finding(True, "SssdWorks", type=FAILING, inverted=True)]


def news(findings: Iterable[Finding], old: Iterable[Condition]) -> str:
    """Return the message of the event to emit: an error that the condition does not have yet."""
    before = find(old, FAILING)
    for one in findings:
        if one.type == FAILING and not one.inverted:
            known = (before.status, before.message) if before is not None else None
            return "" if known == ("True", one.message) else one.message
    return ""
