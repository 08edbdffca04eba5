"""Log of slurmdbd's container: the lines of render/shell/slurmdbd.sh, not the script.

It sees each change of the Secrets at once. It rejects a slurmdbd.conf with a line that begins with
`Bogus`. In namespaces in `deaf` it does not read its files; in `lost` its database is away.
"""

from __future__ import annotations

import base64
from collections.abc import Callable

from penstock.api.kubernetes.meta import Json
from penstock.render.parts.digest import digest

Find = Callable[[str, str, str], "Json | None"]
"""An object by resource, namespace and name."""
CONTAINERS = frozenset({"slurmdbd", "accounting"})
"""Names of its container, in pods of each API."""
LOST = "Can't connect to MySQL server on 'db' (111)"
_FILES = ("jwt.key", "slurmdbd.conf")


class Slurmdbds:
    """Those of an API server, with what each was given before."""

    def __init__(self, find: Find) -> None:
        self._find = find
        self._had: dict[str, str] = {}
        self.deaf: set[str] = set()
        self.lost: set[str] = set()

    def log(self, namespace: str, name: str) -> str | None:
        """The log of a pod's slurmdbd; None when there is no such pod."""
        pod = self._find("/pods", namespace, name)
        if pod is None:
            return None
        text = self._text(pod, namespace)
        return f"{text}penstock: database lost: {LOST}\n" if namespace in self.lost else text

    def _text(self, pod: Json, namespace: str) -> str:
        if namespace in self.deaf:
            return self._had.get(pod["metadata"]["uid"], "")
        files = [self._file(pod, namespace, path) for path in _FILES]
        wanted, uid = digest(b"".join(files)), pod["metadata"]["uid"]
        bogus = next((one for one in files[1].decode().splitlines() if one[:5] == "Bogus"), None)
        if bogus is None:
            self._had[uid] = f"penstock: effective {wanted}\npenstock: database ok\n"
            return self._had[uid]
        words = f"error: unrecognized key: {bogus.partition('=')[0]}"
        return f"{self._had.get(uid, '')}penstock: refused {wanted}: {words}\n"

    def _file(self, pod: Json, namespace: str, path: str) -> bytes:
        for volume in pod["spec"].get("volumes", ()):
            for source in volume.get("projected", {}).get("sources", ()):
                secret: Json = source.get("secret", {})
                for item in secret.get("items", ()):
                    if item["path"] == path:
                        found = self._find("/secrets", namespace, secret["name"]) or {}
                        return base64.b64decode(found.get("data", {}).get(item["key"], ""))
        return b""
