"""What a ControllerRevision records of a NodeSet's spec, and the patch that declares it again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from penstock.api.cluster.marks import SAME_REVISIONS
from penstock.api.kubernetes.kinds import ControllerRevision
from penstock.api.kubernetes.meta import Json
from penstock.api.slinky.nodeset import NodeSet
from penstock.model.recorded_revision import RecordedRevision
from penstock.slurm.node_parameters import fixed_words
from penstock.translate.rollback_note import noted

_EMPTY_SAYS = frozenset({"emptyDir", "labelSelector", "namespaceSelector"})
"""Fields whose empty value has a meaning."""
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


def recorded_revision(
    nodeset: NodeSet, record: ControllerRevision, form: Callable[[Json], bytes]
) -> RecordedRevision:
    """What a ControllerRevision of a NodeSet records.

    `form` gives what the data of one mean: the same bytes for the same pod.
    """
    meta = record.metadata
    same = meta.annotations.get(SAME_REVISIONS, "")
    return RecordedRevision(
        name=meta.name,
        uid=meta.uid,
        number=record.revision,
        hash=meta.name.removeprefix(f"{nodeset.metadata.name}-"),
        equal_hashes=tuple(sorted(filter(None, same.split(",")))),
        parameters=_extra_conf(record.data),
        fixed_form=form(_without_live_words(record.data)),
        read_form=lambda: form(record.data),
        read_spec=lambda: recorded(record.data),
    )


def recorded(data: Json) -> Json | None:
    """The fields that a ControllerRevision records, in the form of a NodeSet's spec."""
    found = _spec(data)
    if "template" not in found:
        return None
    fields: Json = _plain(found)
    template: Json = fields["template"] or {}
    # Written out in every record, and hardly ever declared.
    metadata = _without_empty(template.get("metadata") or {})
    fields["template"] = _without_empty({**template, "metadata": metadata})
    return {name: fields[name] for name in FIELDS if name in fields and not _empty(fields[name])}


def patch(nodeset: NodeSet, live: Json, value: str, spec: Json | None) -> list[Json]:
    """The JSON patch; `live` is the NodeSet's spec as the API server has it.

    A field that means what is recorded is left as it is written.
    """
    steps = noted(nodeset.metadata, value)
    if spec is None:
        return steps
    for name in FIELDS:
        wanted, have = spec.get(name), live.get(name)
        if (_empty(wanted) and _empty(have)) or _bare(wanted) == _bare(have):
            continue
        if wanted is None:
            steps.append({"op": "remove", "path": f"/spec/{name}"})
        else:
            steps.append({"op": "add", "path": f"/spec/{name}", "value": wanted})
    return steps


def _extra_conf(data: Json) -> str:
    return str(_spec(data).get("extraConf") or "")


def _without_live_words(data: Json) -> Json:
    if data.get("spec") and not _spec(data):
        # Somebody else's record, which is equal to none of ours.
        return data
    return {**data, "spec": {**_spec(data), "extraConf": fixed_words(_extra_conf(data))}}


def _spec(data: Json) -> Json:
    found: Any = data.get("spec")
    return cast("Json", found) if isinstance(found, dict) else {}


def _without_empty(fields: Json) -> Json:
    return {key: one for key, one in fields.items() if one}


def _plain(value: Any) -> Any:
    """Without the marks of strategic merge patches, and without fields that are null."""
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
