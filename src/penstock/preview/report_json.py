"""The effects of a change, for programs: one JSON object, whose names stay as they are."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.api.kubernetes.meta import Json
from penstock.preview.effect import Effects, Files, Restart, Touched, Workers
from penstock.slurm.conf.apply_method import Item


def report_object(effects: Effects, not_compared: Sequence[str] = ()) -> Json:
    """`not_compared` are kinds of the file that the operator does not read."""
    return {
        "nothing": effects.nothing,
        "objects": [_touched(one) for one in effects.objects],
        "configuration": [_files(one) for one in effects.files],
        "restarts": [_restart(one) for one in effects.restarts],
        "workers": [_workers(one) for one in effects.workers],
        "slurmUnknown": list(effects.unknown),
        "failed": list(effects.failed),
        "notCompared": list(not_compared),
    }


def _touched(one: Touched) -> Json:
    space, name = one.key
    found = {"action": one.verb, "kind": one.kind, "namespace": space, "name": name}
    return {**found, "paths": list(one.paths)}


def _files(one: Files) -> Json:
    space, name = one.key
    return {
        "namespace": space,
        "name": name,
        "changes": [_item(item) for item in one.plan.items],
        "warnings": list(one.plan.beware),
    }


def _item(item: Item) -> Json:
    return {
        "file": item.file,
        "key": item.key,
        "name": item.name,
        "takesEffectBy": item.need.force.name.lower(),
        "daemons": list(item.need.daemons),
        "known": item.known,
    }


def _restart(one: Restart) -> Json:
    return {
        "how": one.how.name.lower(),
        "namespace": one.namespace,
        "pods": list(one.pods),
        "daemon": one.daemon,
        "of": one.of,
        "why": list(one.why),
        "command": one.cure,
        "losesState": one.loses_state,
    }


def _workers(one: Workers) -> Json:
    space, name = one.key
    return {
        "namespace": space,
        "name": name,
        "created": list(one.created),
        "deleted": list(one.deleted),
        "drained": list(one.drained),
        "outdated": list(one.outdated),
        "changedInSlurm": list(one.changed),
        "updateStrategy": one.strategy,
        "jobs": {pod: list(jobs) for pod, jobs in one.jobs.items()},
    }
