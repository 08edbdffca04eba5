"""Overridden fields: a declaration, such as a Helm release, overwrote a field of someone else.

metadata.managedFields names the manager of each field, so the object's last version is enough to
compare with. Source: Kubernetes API reference, ManagedFieldsEntry and "Server-Side Apply": `f:` is
a field; a list is compared as a whole here.
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
"""Characters of a value that the message quotes."""


@dataclass(frozen=True, slots=True)
class OverriddenField:
    """One field of the spec: former value and manager, present value and manager."""

    path: str
    was: Any
    of: str
    now: Any
    by: str

    def __str__(self) -> str:
        return f"{self.path}={_value(self.was)} (set by {self.of}) is now {_value(self.now)}"


def find_overridden(old: Json, new: Json) -> tuple[OverriddenField, ...]:
    """Return the fields of `new` that a declaration took from other managers, sorted by path.

    A change by hand (kubectl patch, edit, scale) or by the operator overrides nothing: it is the
    latest desired state.
    """
    before, after = dict(_owners(old)), dict(_owners(new))
    took = {path: _took(owners, before.get(path, {})) for path, owners in after.items()}
    every = sorted({name for names in took.values() for name in names})
    found: list[OverriddenField] = []
    for path in sorted(before.keys() | after.keys()):
        had = before.get(path, {})
        # A removed field has no manager: one of those who took another field removed it.
        by = next((one for one in took.get(path, every) if one not in had), "")
        of = next((name for name in sorted(had) if name != by), "")
        was, now = _at(old, path), _at(new, path)
        if by and of and was != now:
            found.append(OverriddenField(".".join(path), was, of, now, by))
    return tuple(found)


def describe(found: tuple[OverriddenField, ...]) -> str:
    """Return one sentence that names all overridden fields."""
    by = ", ".join(sorted({one.by for one in found}))
    return (
        f"{by} overwrote fields of other managers: {list_some([str(one) for one in found], '; ')}"
    )


def _took(owners: dict[str, bool], had: dict[str, bool]) -> list[str]:
    """Return the declaring managers of a field that they did not have before."""
    return [name for name, declares in owners.items() if declares and name not in had]


def _owners(obj: Json) -> Iterator[tuple[Path, dict[str, bool]]]:
    """Yield each path of the spec with its managers and whether each of them declares."""
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
