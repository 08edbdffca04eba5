"""sshd_config of login pods and workers. Source: sshd_config(5)."""

from __future__ import annotations

from collections.abc import Iterable

_FIRST = ("Include /etc/ssh/sshd_config.d/*.conf", "UsePAM yes")
_LAST = ("Subsystem sftp internal-sftp",)
LOGIN = (*_FIRST, "X11Forwarding yes", *_LAST)
WORKER = (*_FIRST, *_LAST, "AuthenticationMethods publickey password")


def sshd_config(ours: Iterable[str], extra: str) -> str:
    """The file's text: the user's lines, then ours, then the user's Match blocks.

    sshd takes the first value of a keyword, so the user's come first and a line of ours whose
    keyword the user set is left out. A Match block lasts to the end of the file, so it goes last.
    """
    head: list[str] = []
    blocks: list[str] = []
    for line in extra.splitlines():
        (blocks if blocks or _keyword(line) == "match" else head).append(line.rstrip())
    given = {_keyword(line) for line in head}
    kept = [line for line in ours if _keyword(line) == "include" or _keyword(line) not in given]
    return "".join(f"{line}\n" for line in [*head, *kept, *blocks])


def _keyword(line: str) -> str:
    words = line.replace("=", " ", 1).split(maxsplit=1)
    return words[0].lower() if words else ""
