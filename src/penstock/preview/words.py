"""The effects of a change, for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from penstock.decide.words import some
from penstock.preview.effects import Effects, Files, Touched, Workers
from penstock.slurm.force import Force, Item

HOW = {
    Force.NOTHING: "takes effect by itself",
    Force.REST: "takes effect at once, by a call to slurmctld",
    Force.RECONFIGURE: "takes effect by a reconfigure; nothing restarts",
}
SLURMDBD_CONF = "data.slurmdbd.conf"
WHEN = {
    "RollingUpdate": "they are replaced within maxUnavailable, each when its jobs have ended",
    "OnDelete": "they stay as they are until somebody deletes them",
    "ScheduledUpdate": "they are replaced in a reservation of Slurm, each when its jobs have ended",
}


def words(effects: Effects) -> str:
    """Text of several lines."""
    if effects.nothing:
        return "\n".join(["Nothing would change.", *_unknown(effects)])
    lines: list[str] = []
    for title, part in (
        ("Objects", [_touched(one) for one in effects.objects]),
        (
            "Slurm's configuration",
            [*(line for one in effects.files for line in _files(one)), *_slurmdbd(effects)],
        ),
        (
            "Pods that restart",
            [
                f"those of {one.kind} {'/'.join(one.key)}: {some(one.paths)} of the template"
                for one in effects.workloads
            ],
        ),
        ("Workers", [line for one in effects.workers for line in _workers(one)]),
    ):
        if part:
            lines += [f"{title}:", *(f"  {line}" for line in part)]
    if not effects.workloads and not any(one.deleted for one in effects.workers):
        lines.append("No pod restarts or ends at once.")
    if not any(one.jobs for one in effects.workers) and not effects.unknown:
        lines.append("No job is touched or waited for.")
    return "\n".join([*lines, *_unknown(effects)])


def _unknown(effects: Effects) -> list[str]:
    return [
        f"Slurm could not be asked, so its jobs are not known: {one}" for one in effects.unknown
    ]


def _touched(one: Touched) -> str:
    what = f"{one.verb} {one.kind} {'/'.join(filter(None, one.key))}"
    return f"{what}: {some(one.paths)}" if one.paths else what


def _slurmdbd(effects: Effects) -> Iterator[str]:
    """Whose slurmdbd.conf changes with no new pod."""
    restarted = {one.key for one in effects.workloads}
    for one in effects.objects:
        changed = one.kind == "Secret" and one.verb == "update" and SLURMDBD_CONF in one.paths
        if changed and one.key not in restarted:
            told = "slurmdbd.conf takes effect by a signal; slurmdbd runs on"
            yield f"{'/'.join(one.key)}: {told}"


def _files(one: Files) -> Iterator[str]:
    name = "/".join(one.key)
    for item in one.plan.items:
        yield f"{name}: {item} {_how(item)}"
    for note in one.plan.beware:
        yield f"{name}: beware: {note}"


def _how(item: Item) -> str:
    if item.need.force is Force.RESTART:
        return f"needs a restart of {' and '.join(item.need.daemons)}"
    unknown = "" if item.known else "is not known to this version; it most likely "
    return unknown + HOW[item.need.force]


def _workers(one: Workers) -> Iterator[str]:
    name = "/".join(one.key)
    if one.created:
        yield f"{name}: {_counted(one.created)} created"
    if one.deleted:
        yield f"{name}: {_counted(one.deleted)} deleted at once, their Slurm nodes being empty"
    if one.drained:
        yield f"{name}: {_counted(one.drained)} drained, and deleted when their jobs have ended"
    if one.outdated:
        when = WHEN.get(one.strategy, "")
        yield f"{name}: {_counted(one.outdated)} of an older template; {when}"
    if one.changed:
        told = "features, weight or GRES change in Slurm, while jobs run on"
        yield f"{name}: {_counted(one.changed)}: {told}"
    for pod, jobs in one.jobs.items():
        told = some([str(job) for job in jobs])
        yield f"{name}: {pod} has {'job' if len(jobs) == 1 else 'jobs'} {told}"


def _counted(pods: Sequence[str]) -> str:
    return f"{len(pods)} {'pod' if len(pods) == 1 else 'pods'} ({some(pods)})"
