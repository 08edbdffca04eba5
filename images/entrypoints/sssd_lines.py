"""Which of sssd's lines are shown.

At its own level sssd does not say that a search base does not exist, nor with which words a bind
was refused: both are traces (0x0400), of which there are dozens for each user who is looked up. So
it is started with traces, and of these only the ones are shown that tell of the directory, and
only when they tell something new. Source: sssd.conf(5), debug_level; SSSD's src/providers/ldap.
"""

from __future__ import annotations

import re
from pathlib import Path

LEVEL = "0x0470"
"""What sssd says by itself, and the traces."""
_TRACE = re.compile(r"\(0x0400\)|^\[RID#\d+\] ")
"""Several processes write at once: the second half of a line may stand alone."""
_REQUEST = re.compile(r"\[RID#(\d+)\]")
_SEARCH = re.compile(r"ldap_search_ext called: .* base: \[(.*)\]; msgid")
_RESULT = re.compile(r"(Bind|Search) result: .*?\((\d+)\)")
_REFUSED = re.compile(r"Unable to establish connection")
_CONNECTED = "Connection established."
_BASE = re.compile(r"^\s*ldap_(?:user_|group_)?search_base\s*=\s*([^?\n]*)", re.MULTILINE)
_OWN_LEVEL = re.compile(r"^\s*debug_level\s*=", re.MULTILINE)
_OPTION = re.compile(r"^(-d|--debug-level)")


def asks_for_level(conf: str, options: list[str]) -> bool:
    """Tell whether the user says which lines sssd writes."""
    return bool(_OWN_LEVEL.search(conf)) or any(_OPTION.match(one) for one in options)


def bases(conf: str) -> frozenset[str]:
    """Return where sssd.conf has users and groups searched for.

    Others (of sudo, automounts) may be missing in a directory that is well, and so may an entry
    that a group names.
    """
    return frozenset(one.strip().casefold() for one in _BASE.findall(conf))


class Lines:
    """Leaves out the traces that tell nothing new of the directory."""

    def __init__(self, conf: Path) -> None:
        self._conf = conf
        self._searched: dict[str, str] = {}
        self._missing: set[str] = set()
        self._refused = False

    def __call__(self, line: str) -> str | None:
        """Return the line as it is to be shown, or None."""
        if not _TRACE.search(line):
            self._refused = self._refused or _REFUSED.search(line) is not None
            return line
        if _CONNECTED in line:
            was, self._refused = self._refused, False
            return line if was else None
        request = _REQUEST.search(line)
        number = request[1] if request else ""
        if searched := _SEARCH.search(line):
            self._searched[number] = searched[1]
        found = _RESULT.search(line)
        if found is None:
            return None
        if found[1] == "Bind":
            return line if found[2] != "0" else None
        base = self._searched.pop(number, "")
        return f"{line}, base: [{base}]" if self._news(base, found[2] == "32") else None

    def _news(self, base: str, missing: bool) -> bool:
        """Tell whether a search base has gone, or come."""
        key = base.casefold()
        if missing == (key in self._missing) or key not in bases(self._read()):
            return False
        (self._missing.add if missing else self._missing.discard)(key)
        return True

    def _read(self) -> str:
        try:
            return self._conf.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""
