"""Objects of a demo: applied with the changes that users made of them since."""

import json
from collections.abc import Iterable

from penstock.local import install, user_changes
from penstock.local.target import Target

DECLARED = "penstock.dev/demo-declared"
"""Annotation with what the demo declared of an object when it applied it last."""
_IDENTITY = ("apiVersion", "kind", "metadata")


def apply(
    target: Target,
    namespace: str,
    declared: Iterable[install.Document],
    *,
    mark: str = install.SLINKY_DEMO,
    reset: bool = False,
) -> list[str]:
    """Apply objects, and their namespace before them.

    Returns the fields that stay as somebody changed them: none with `reset`.
    """
    objects: list[install.Document] = []
    kept: list[str] = []
    for one in declared:
        placed = {**one, "metadata": {**one["metadata"], "namespace": namespace}}
        found, paths = _as_changed(target, namespace, placed, reset=reset)
        objects.append(found)
        kept += [f"{one['kind'].lower()}/{one['metadata']['name']} {path}" for path in paths]
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    install.apply(target, [space], mark=mark)
    install.apply(target, objects, force=reset)
    return kept


def _as_changed(
    target: Target, namespace: str, declared: install.Document, *, reset: bool
) -> tuple[install.Document, tuple[str, ...]]:
    """An object to apply, with what users changed of it, and the paths of that."""
    kind, meta = declared["kind"].lower(), declared["metadata"]
    body = {key: declared[key] for key in declared if key not in _IDENTITY}
    noted = {DECLARED: json.dumps(body, sort_keys=True, separators=(",", ":"))}
    out = {
        **declared,
        "metadata": {**meta, "annotations": {**meta.get("annotations", {}), **noted}},
    }
    if reset:
        return out, ()
    query = (kind, meta["name"], "-n", namespace, "--ignore-not-found", "-o", "json")
    said = target.kubectl("get", *query)
    if not said.strip():
        return out, ()
    live = json.loads(said)
    # One that an earlier version made has no note: what differs then was changed by somebody.
    last = json.loads(live["metadata"].get("annotations", {}).get(DECLARED, "{}"))
    merged = user_changes.merge(body, last, live)
    return {**out, **merged.document}, merged.kept
