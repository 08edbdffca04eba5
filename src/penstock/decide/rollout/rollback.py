"""Going back to a recorded template, as an annotation of the NodeSet asks for, once a value.

The value is the number or the name of a ControllerRevision; `0` and `previous` mean the newest one
that means another template than the NodeSet declares now. The recorded fields are written back to
the spec by one JSON patch, in which nothing else changes but the annotation that says which value
was done. So a process that ends anywhere does it once or not at all, and what cannot be done is
told once and is not tried later, when a revision of that number may have come to be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from penstock.api.cluster import marks
from penstock.api.kubernetes.kinds import ControllerRevision
from penstock.api.kubernetes.meta import Json
from penstock.api.slinky.nodeset import NodeSet
from penstock.base.text import list_some

_EMPTY_SAYS = frozenset({"emptyDir", "labelSelector", "namespaceSelector"})
"""Fields whose empty value says something."""
PREVIOUS = ("0", "previous")
FIELDS = (
    "template",
    "slurmd",
    "logfile",
    "ssh",
    "extraConf",
    "ordinalPadding",
    "oversubscribeNode",
)
"""What a ControllerRevision of a NodeSet records of its spec."""


@dataclass(frozen=True, slots=True)
class Rollback:
    """What to write for the annotation's `value`, and what to tell; `why` it is not possible."""

    value: str
    number: int = 0
    name: str = ""
    spec: Json | None = None
    """The recorded fields, as they are to be declared; None when it is not possible."""
    why: str = ""


def asked(nodeset: NodeSet) -> str | None:
    """The value that was not done yet."""
    notes = nodeset.metadata.annotations
    value = notes.get(marks.ROLLBACK, "").strip()
    done = notes.get(marks.ROLLED_BACK)
    return value if value and value != done and not nodeset.metadata.deleting else None


def rollback(
    nodeset: NodeSet,
    value: str,
    declared: Json,
    records: Sequence[ControllerRevision],
    means: Callable[[Json], bytes],
) -> Rollback:
    """Decide; `declared` is the data of a revision of what is declared now.

    `means` gives what such data mean: the same bytes for the same pods.
    """
    ordered = sorted(records, key=lambda one: (-one.revision, one.metadata.name))
    now = means(declared)
    if value in PREVIOUS:
        others = (one for one in ordered if means(one.data) != now)
        found = next(others, None)
        if found is None:
            return Rollback(value, why=f"no older template is recorded{_limit(nodeset)}")
    else:
        named = (one for one in ordered if value in {str(one.revision), one.metadata.name})
        found = next(named, None)
        if found is None:
            there = list_some([f"{one.revision} ({one.metadata.name})" for one in ordered])
            told = f"there is no revision {value}, but {there or 'none at all'}"
            return Rollback(value, why=f"{told}{_limit(nodeset)}")
    spec = recorded(found.data)
    number, name = found.revision, found.metadata.name
    if spec is None:
        return Rollback(value, number, name, why=f"{name} does not record a template")
    return Rollback(value, number, name, spec)


def recorded(data: Json) -> Json | None:
    """The fields that a ControllerRevision records, as they are declared."""
    found: Any = data.get("spec")
    if not isinstance(found, dict) or "template" not in found:
        return None
    fields: Json = _plain(found)
    template: Json = fields["template"] or {}
    # Written out in every record, and hardly ever declared.
    fields["template"] = _said({**template, "metadata": _said(template.get("metadata") or {})})
    return {name: fields[name] for name in FIELDS if name in fields and not _empty(fields[name])}


def patch(nodeset: NodeSet, live: Json, back: Rollback) -> list[Json]:
    """The JSON patch; `live` is the NodeSet's spec as the API server has it.

    A field that means what is recorded is left as it is written.
    """
    meta = nodeset.metadata
    steps: list[Json] = [
        # A replaced one that is another meanwhile is a conflict, a failed test an invalid request.
        {"op": "replace", "path": "/metadata/uid", "value": meta.uid},
        {"op": "replace", "path": "/metadata/resourceVersion", "value": meta.resource_version},
        {
            "op": "add",
            "path": f"/metadata/annotations/{marks.ROLLED_BACK.replace('/', '~1')}",
            "value": back.value,
        },
    ]
    if back.spec is None:
        return steps
    for name in FIELDS:
        wanted, have = back.spec.get(name), live.get(name)
        if (_empty(wanted) and _empty(have)) or _bare(wanted) == _bare(have):
            continue
        if wanted is None:
            steps.append({"op": "remove", "path": f"/spec/{name}"})
        else:
            steps.append({"op": "add", "path": f"/spec/{name}", "value": wanted})
    return steps


def _said(fields: Json) -> Json:
    return {key: one for key, one in fields.items() if one}


def _limit(nodeset: NodeSet) -> str:
    limit = nodeset.spec.revision_history_limit
    return f"; spec.revisionHistoryLimit is {limit}: so many are kept besides those that pods have"


def _plain(value: Any) -> Any:
    """Without the marks of strategic merge patches, and without fields that say nothing."""
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, Any]", value)
        found = {key: _plain(one) for key, one in fields.items() if key != "$patch"}
        return {key: one for key, one in found.items() if one is not None}
    if isinstance(value, list):
        return [_plain(one) for one in cast("list[Any]", value)]
    return value


def _bare(value: Any) -> Any:
    """For comparing: without what is empty at any depth of mappings."""
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, Any]", value)
        found = {key: _bare(one) for key, one in fields.items()}
        return {key: one for key, one in found.items() if key in _EMPTY_SAYS or not _void(one)}
    if isinstance(value, list):
        return [_bare(one) for one in cast("list[Any]", value)]
    return value


def _void(value: Any) -> bool:
    return value is None or value in ("", {}, [])


def _empty(value: Any) -> bool:
    return _void(value) or value is False or value == 0
