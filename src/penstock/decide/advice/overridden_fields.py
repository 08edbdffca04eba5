"""Fields that somebody set and a declaration, such as a Helm release, then set to something else.

Who set which field stands in metadata.managedFields, so nothing has to be remembered but the object
as it was seen last. Source: Kubernetes API reference, ManagedFieldsEntry and "Server-Side Apply":
`f:` a field; a list is taken as a whole here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

from penstock.api.kubernetes.meta import Json
from penstock.base.text import list_some

Path = tuple[str, ...]
OURS = "penstock"
_APPLY = frozenset({"kubectl-client-side-apply", "kubectl-last-applied"})
_SHOWN = 80
"""Characters of a value that are told."""


@dataclass(frozen=True, slots=True)
class SetBack:
    """One field of the spec: its value and who had set it, its value now and who has set that."""

    path: str
    was: Any
    of: str
    now: Any
    by: str

    def __str__(self) -> str:
        return f"{self.path}={_value(self.was)} (set by {self.of}) is now {_value(self.now)}"


def set_back(old: Json, new: Json) -> tuple[SetBack, ...]:
    """The fields of `new` that a declaration has taken from others, sorted by path.

    What people do by hand (kubectl patch, edit, scale) and what the operator writes takes nothing
    back, it is the latest that is wanted.
    """
    before, after = dict(_owners(old)), dict(_owners(new))
    took = {path: _took(owners, before.get(path, {})) for path, owners in after.items()}
    every = sorted({name for names in took.values() for name in names})
    found: list[SetBack] = []
    for path in sorted(before.keys() | after.keys()):
        had = before.get(path, {})
        # Nobody owns what is gone: it was one of those who took something else.
        by = next((one for one in took.get(path, every) if one not in had), "")
        of = next((name for name in sorted(had) if name != by), "")
        was, now = _at(old, path), _at(new, path)
        if by and of and was != now:
            found.append(SetBack(".".join(path), was, of, now, by))
    return tuple(found)


def told(found: tuple[SetBack, ...]) -> str:
    """All of them in one sentence."""
    by = ", ".join(sorted({one.by for one in found}))
    return f"{by} has set what others had set: {list_some([str(one) for one in found], '; ')}"


def _took(owners: dict[str, bool], had: dict[str, bool]) -> list[str]:
    """Who declares a field that was not theirs."""
    return [name for name, declares in owners.items() if declares and name not in had]


def _owners(obj: Json) -> Iterator[tuple[Path, dict[str, bool]]]:
    """By path of the spec its managers, and whether each of them declares."""
    found: dict[Path, dict[str, bool]] = {}
    for entry in cast("list[Json]", obj.get("metadata", {}).get("managedFields") or []):
        fields = cast("Json", entry.get("fieldsV1") or {})
        spec = fields.get("f:spec")
        if entry.get("subresource") == "status" or spec is None:
            continue
        for path in _leaves(("spec",), spec):
            found.setdefault(path, {})[str(entry.get("manager", ""))] = _declares(entry)
    yield from found.items()


def _leaves(path: Path, node: Json) -> Iterator[Path]:
    named = [key for key in node if key.startswith("f:")]
    if not named:
        yield path
    for key in named:
        yield from _leaves((*path, key[2:]), node[key])


def _declares(entry: Json) -> bool:
    name = str(entry.get("manager", ""))
    if name == OURS or entry.get("subresource"):
        return False
    by_hand = name.startswith("kubectl") and name not in _APPLY
    return entry.get("operation") == "Apply" or not by_hand


def _at(obj: Any, path: Path) -> Any:
    for key in path:
        obj = cast("Json", obj).get(key) if isinstance(obj, dict) else None
    return obj


def _value(value: Any) -> str:
    if value is None:
        return "unset"
    text = json.dumps(value, sort_keys=True)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
