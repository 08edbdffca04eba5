"""A cluster of the user's whose kubectl only remembers, for tests of the demos."""

from __future__ import annotations

import json

import yaml

from penstock.local import install
from penstock.local.target import Images, Target

IMAGES = Images("registry.example/{role}:1", "registry.example/operator:abc")


class Remembering(Target):
    """A cluster of the user's in which some objects exist before."""

    title = "a test"

    def __init__(self, *existing: str, marked: tuple[str, ...] = ()) -> None:
        self.existing = set(existing) | set(marked)
        self.marked = set(marked)
        self.calls: list[tuple[str, ...]] = []
        self.applied: list[install.Document] = []
        self.live: dict[str, install.Document] = {}
        """Objects by kind and name, as `get -o json` shows them."""

    def up(self) -> None: ...

    def load(self) -> Images:
        return IMAGES

    def down(self) -> bool:
        return False

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        self.calls.append(arguments)
        if arguments[0] == "apply":
            self.applied += [one for one in yaml.safe_load_all(stdin or "") if one]
        if arguments[0] == "get":
            name = "/".join(a for a in arguments[1:3] if not a.startswith("-"))
            if arguments[-2:] == ("-o", "json"):
                return json.dumps(self.live[name]) if name in self.live else ""
            if any(a.startswith("jsonpath") for a in arguments):
                return f'{{"{install.MARK}":"true"}}' if name in self.marked else ""
            return name if name in self.existing else ""
        return ""

    def deleted(self) -> list[str]:
        return [" ".join(call[1:]) for call in self.calls if call[0] == "delete"]


def marked(objects: list[install.Document]) -> set[str]:
    return {
        one["metadata"]["name"]
        for one in objects
        if one["metadata"].get("labels", {}).get(install.MARK) == "true"
    }
