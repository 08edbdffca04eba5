"""The effects of a change, for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from penstock.base.text import list_some
from penstock.preview.effect import Effects, Files, How, Restart, Touched, Workers
from penstock.slurm.conf.apply_method import Force, Item
from penstock.slurm.hostlist import compress

HOW = {
    Force.NOTHING: "takes effect by itself",
    Force.REST: "takes effect at once, by a call to slurmctld",
    Force.RECONFIGURE: "takes effect by a reconfigure; nothing restarts",
}
SLURMDBD_CONF = "data.slurmdbd.conf"
NAMED = 20
"""Up to so many pods are named one by one."""
_DAEMONS = {"sackd": "login"}
_WITH_JOBS = frozenset({"slurmd", "sackd", "login"})
"""Daemons with whose pods jobs or the sessions that wait for them end."""
WHEN = {
    "RollingUpdate": "they are replaced within maxUnavailable, each when its jobs have ended",
    "OnDelete": "they stay as they are until somebody deletes them",
    "ScheduledUpdate": "they are replaced in a reservation of Slurm, each when its jobs have ended",
}


def render_report(effects: Effects) -> str:
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
        ("Pods that restart", [_restart(one) for one in effects.restarts if one.by_itself]),
        (
            "Pods that you have to restart",
            [_restart(one) for one in effects.restarts if not one.by_itself],
        ),
        ("Workers", [line for one in effects.workers for line in _workers(one)]),
    ):
        if part:
            lines += [f"{title}:", *(f"  {line}" for line in part)]
    if effects.failed:
        return "\n".join([*lines, *_unknown(effects)])
    by_itself = any(one.by_itself for one in effects.restarts)
    if not by_itself and not any(one.deleted or one.drained for one in effects.workers):
        lines.append(
            "No pod restarts by itself." if effects.restarts else "No pod restarts or ends at once."
        )
    if not _touches_jobs(effects) and not effects.unknown:
        lines.append("No job is touched or waited for.")
    return "\n".join([*lines, *_unknown(effects)])


def _touches_jobs(effects: Effects) -> bool:
    """Whether a job is waited for, or may end or be lost."""
    return (
        any(one.jobs for one in effects.workers)
        or any(one.plan.beware for one in effects.files)
        or any(one.loses_state or one.daemon in _WITH_JOBS for one in effects.restarts)
    )


def _restart(one: Restart) -> str:
    """Pods by name, their daemon, and who restarts them why."""
    pods = ", ".join(f"{one.namespace}/{name}" for name in _names(one.pods))
    lost = "; its state is in the pod, and all jobs are lost with it" if one.loses_state else ""
    return f"{pods} ({_DAEMONS.get(one.daemon, one.daemon)}): {_who(one)}{lost}"


def _names(pods: Sequence[str]) -> list[str]:
    """Each by its name; a great many as Slurm writes node names."""
    return list(pods) if len(pods) <= NAMED else [compress(pods)]


def _who(one: Restart) -> str:
    match one.how:
        case How.OPERATOR:
            return f"restarted by the operator{f' for {list_some(one.why)}' if one.why else ''}"
        case How.TEMPLATE:
            return f"replaced, since {list_some(one.why)} of the template of {one.of} changes"
        case How.ROTATION:
            message = "replaced once slurmctld and all workers have the new key"
            return f"{message}, since {list_some(one.why)} changes"
        case How.ENDS:
            which = "end" if len(one.pods) > 1 else "ends"
            return f"{which}, since {one.of} {list_some(one.why)}"
        case _:
            return f"for {list_some(one.why)}: {one.cure}"


def _unknown(effects: Effects) -> list[str]:
    return [
        f"Slurm could not be asked, so its jobs are not known: {one}" for one in effects.unknown
    ]


def _touched(one: Touched) -> str:
    what = f"{one.verb} {one.kind} {'/'.join(filter(None, one.key))}"
    return f"{what}: {list_some(one.paths)}" if one.paths else what


def _slurmdbd(effects: Effects) -> Iterator[str]:
    """Whose slurmdbd.conf changes with no new pod."""
    restarted = {one.key for one in effects.workloads}
    for one in effects.objects:
        changed = one.kind == "Secret" and one.verb == "update" and SLURMDBD_CONF in one.paths
        if changed and one.key not in restarted:
            message = "slurmdbd.conf takes effect by a signal; slurmdbd runs on"
            yield f"{'/'.join(one.key)}: {message}"


def _files(one: Files) -> Iterator[str]:
    name = "/".join(one.key)
    for item in one.plan.items:
        yield f"{name}: {item} {_how(item)}"
    for note in one.plan.beware:
        yield f"{name}: warning: {note}"


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
        message = "features, weight or GRES change in Slurm, while jobs run on"
        yield f"{name}: {_counted(one.changed)}: {message}"
    for pod, jobs in one.jobs.items():
        message = list_some([str(job) for job in jobs])
        yield f"{name}: {pod} has {'job' if len(jobs) == 1 else 'jobs'} {message}"


def _counted(pods: Sequence[str]) -> str:
    return f"{len(pods)} {'pod' if len(pods) == 1 else 'pods'} ({list_some(pods)})"
