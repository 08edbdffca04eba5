"""A changed configuration as a transaction: tried, delivered, acknowledged, rolled back.

Three ConfigMaps record its progress, so that the next reconcile continues from there:

- the candidate configuration is the desired one; slurmctld's pod mounts it for the reconfigure
  container only,
- the startup configuration is read by slurmctld when it starts: a trial start accepted it,
- the last known good configuration is the one with which slurmctld became ready.

Each step is idempotent. Whatever is unknown (no pod, no answer, a trial without a verdict) leaves
the startup configuration as it is. Only a slurmctld that never started, or a foreign reconfigure
container, gets the candidate without a trial.

A slurmctld that does not start with its startup configuration gets the last known good one back,
if that differs: after a restart for keys that need one, and also when its pod ended during a
reconfigure. The startup ConfigMap records the verdict beside the files (`marks.CONFIG_REFUSED`):
both are written at once, and the same configuration is not tried again.
"""

from __future__ import annotations

from dataclasses import replace

from penstock.api.cluster import marks as own_marks
from penstock.decide.config.reconfigure_log import Acknowledgements
from penstock.decide.config.view import ConfigStep, ConfigView, Files, Stage, Version
from penstock.slurm.conf.apply_method import Force, Plan, needs

_PARTITION = "partitionname"
_JOINED = frozenset({"authaltparameters", "authinfo", "slurmctldparameters"})


def is_settled(view: ConfigView) -> bool:
    """Return whether the candidate is in effect, so that no log has to be read."""
    wanted, marks = view.candidate, view.marks or {}
    return (
        view.has_started
        and view.active == wanted.hash == marks.get(own_marks.CONFIG_HASH)
        and _has_files_of(view.startup, wanted)
        and _has_files_of(view.last_known_good, wanted)
        and not marks.get(own_marks.CONFIG_RESTART)
    )


def next_step(view: ConfigView) -> ConfigStep:
    """Return the next step of the transaction."""
    view = _with_verdict(view)
    found = _step(view)
    over = found.stage is Stage.EFFECTIVE and view.is_complete
    return replace(
        found,
        reloads=_reloads(view, found),
        rejected={} if over else view.rejected,
        recreate=_recreate(view, found),
        is_unsaved=_is_unsaved(view, found),
    )


def _is_unsaved(view: ConfigView, found: ConfigStep) -> bool:
    """Return whether slurmctld has partitions whose file is still on its way to its folder.

    slurmctld ends the jobs of a partition that its file lacks. One that does not serve has no
    partitions by REST calls, and only the operator's own reconfigure container reports the files.
    """
    if not view.is_ready or view.is_adopted or own_marks.TRIES_CONFIG not in (view.marks or {}):
        return False
    if found.stage not in {Stage.TRYING, Stage.DELIVERING}:
        return False
    # Once the startup ConfigMap has them, only the way to the folder is left.
    return view.has_unsaved or any(one.key.lower() == _PARTITION for one in found.plan.items)


def _recreate(view: ConfigView, found: ConfigStep) -> str:
    """Why slurmctld's pod has to be recreated: it has rejected files, or takes no others."""
    if not view.persistent:
        return ""
    handed = (view.marks or {}).get(own_marks.CONFIG_HASH)
    if handed in view.rejected and found.marks.get(own_marks.CONFIG_HASH, handed) != handed:
        words = "slurmctld did not come up with its configuration"
        return f"{words}, and gets the last known good one back"
    return "" if view.is_adopted or not view.has_own_sidecar else view.hung


def _with_verdict(view: ConfigView) -> ConfigView:
    """Return the view with startup files marked as rejected when slurmctld does not come up.

    The last known good files take their place.
    """
    if not view.down or view.is_adopted or view.is_first_start or not view.has_own_sidecar:
        return view
    if (
        view.startup is None
        or view.last_known_good is None
        or view.last_known_good.data == view.startup.data
    ):
        return view
    words = f"when slurmctld was started with it, it did not come up: {view.down}"
    # The Controller's own lines are rejected as well if they differ from the last known good ones,
    # whatever partitions change meanwhile.
    hashes = [view.startup.hash] + (
        [view.startup.own] if view.startup.own != view.last_known_good.own else []
    )
    rejected = dict.fromkeys(hashes, words)
    return replace(view, startup=view.last_known_good, rejected=rejected, down="")


def _step(view: ConfigView) -> ConfigStep:
    wanted, acks = view.candidate, view.acks or Acknowledgements()
    if view.is_adopted:
        return _adopted(view)
    known = (one for one in (wanted, view.startup, view.last_known_good) if one is not None)
    before = {one.hash: words for one in known if (words := _rejected_before(view, one))}
    acks = replace(acks, rejected={**before, **acks.rejected})
    good = _good(view, acks)
    plan = _plan(view, good, acks)
    if view.unfit and not view.is_first_start and view.active != wanted.hash:
        return _unfit(view, good, acks, plan, view.unfit)
    if view.is_first_start or not view.has_own_sidecar:
        return _direct(view, acks)
    if view.unknown and (good is None or good.data != wanted.data):
        return _unfit(view, good, acks, plan, view.unknown)
    if wanted.hash in acks.rejected:
        return _rolled_back(view, good, acks, plan)
    if good is not None and good.data == wanted.data:
        if view.down and view.active != wanted.hash:
            return _lost(view, acks, plan)
        return _delivering(view, acks, plan)
    if good is not None and _comes_live(view, good, acks):
        # Another mark now would have slurmctld read it, for nothing. The candidates are tried
        # meanwhile.
        return _delivering(replace(view, candidate=good), acks, plan)
    return _trying(view, good, acks, plan)


def _rejected_before(view: ConfigView, version: Version) -> str:
    return view.rejected.get(version.hash) or view.rejected.get(version.own, "")


def _plan(view: ConfigView, good: Version | None, acks: Acknowledgements) -> Plan:
    """Return how slurmctld gets from its configuration to the candidate.

    During a restart it is unknown which of two configurations slurmctld runs with. A restart that
    one of them needs is planned then: a slurmctld on another port does not answer.
    """
    wanted = view.candidate
    has = good if _runs_with(view, good, acks) else view.last_known_good
    plan = needs((has or good or wanted).data, wanted.data, view.table)
    if good is not None and has is not good and not restarts_slurmctld(plan):
        other = needs(good.data, wanted.data, view.table)
        return other if restarts_slurmctld(other) else plan
    return plan


def _active(view: ConfigView, acks: Acknowledgements) -> str:
    """Return the hash of the active configuration.

    The container of a new pod reports the files that slurmctld is about to read as active, so this
    counts only once slurmctld serves.
    """
    return acks.active if acks.active and view.is_ready else view.active


def _last_good(view: ConfigView) -> Files | None:
    """Return the last known good files, as long as slurmctld has not served with others."""
    if view.last_known_good is not None:
        return view.last_known_good.data
    # It was deleted or edited: only files with which slurmctld has served may replace it.
    real = view.startup
    return real.data if real is not None and real.hash == view.active else None


def _runs_with(view: ConfigView, good: Version | None, acks: Acknowledgements) -> bool:
    """Return whether slurmctld runs with a version, by the status or by a newer log line."""
    if good is None:
        return False
    written = good.hash == view.active and _has_files_of(view.last_known_good, good)
    return written or (view.is_ready and good.hash == acks.active)


def _comes_live(view: ConfigView, good: Version, acks: Acknowledgements) -> bool:
    """Return whether files are on their way to a slurmctld that has their values already."""
    marks = view.marks or {}
    return (
        view.is_ready
        and good is view.startup
        and bool(acks.active)
        and acks.active != good.hash
        and not acks.blocked_by
        and marks.get(own_marks.CONFIG_LIVE) == good.hash
        and marks.get(own_marks.CONFIG_RESTART) != good.hash
    )


def _reloads(view: ConfigView, found: ConfigStep) -> bool:
    """Return whether slurmctld is reading new files, or is about to."""
    if found.restart:
        return True
    marks = {**(view.marks or {}), **found.marks}
    handed = marks.get(own_marks.CONFIG_HASH)
    effective = view.acks.active if view.acks else view.active
    live = handed == marks.get(own_marks.CONFIG_LIVE)
    return (
        view.has_own_sidecar and view.is_ready and bool(handed) and handed != effective and not live
    )


def _has_files_of(found: Version | None, wanted: Version) -> bool:
    return found is not None and found.data == wanted.data


def _good(view: ConfigView, acks: Acknowledgements) -> Version | None:
    """Return files for slurmctld's start: the startup ones unless they were rejected or edited."""
    known = [one for one in (view.startup, view.last_known_good) if one is not None]
    fit = [one for one in known if one.hash not in acks.rejected]
    return next(iter(fit or known), None)


def equal_meaning(one: Files, other: Files) -> bool:
    """Return whether files differ only in comments and in the form of option lists.

    slurm-operator writes a user's options in lower case when it adds its own.
    """
    return {k: _lines(v) for k, v in one.items()} == {k: _lines(v) for k, v in other.items()}


def _lines(text: str) -> list[tuple[str, list[str]]]:
    found: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        key, _, value = line.strip().partition("=")
        if key and not key.startswith("#"):
            joined = key.lower() in _JOINED
            found.append((key.lower(), sorted(value.lower().split(",")) if joined else [value]))
    return found


def _direct(view: ConfigView, acks: Acknowledgements) -> ConfigStep:
    wanted = view.candidate
    confirmed = wanted.hash in (acks.active, view.active)
    done = view.is_ready and (confirmed or not view.has_own_sidecar)
    wrong = (view.unfit or view.down) if view.is_first_start else ""
    return ConfigStep(
        Stage.EFFECTIVE if done else Stage.STARTING,
        wanted.data,
        wanted.data if done or not view.has_own_sidecar else _last_good(view),
        {own_marks.CONFIG_HASH: wanted.hash},
        needs((view.last_known_good or wanted).data, wanted.data, view.table),
        wanted.hash if confirmed and view.is_ready else "",
        wrong or view.why or acks.blocked_by,
        confirmed,
        needs_correction=bool(wrong),
    )


def _adopted(view: ConfigView) -> ConfigStep:
    """Write changes that need no pod of ours; anything else waits until the pod is replaced.

    slurmctld keeps its file until then, and the new pod starts with that file.
    """
    wanted, before = view.candidate, view.startup or view.candidate
    plan = needs(before.data, wanted.data, view.table)
    live = plan.force is Force.NOTHING or (plan.force is Force.REST and view.applied_live)
    if live or equal_meaning(before.data, wanted.data):
        words = "its pod is as another operator made it"
        return ConfigStep(
            Stage.EFFECTIVE, wanted.data, wanted.data, {}, plan, "", words, is_acknowledged=False
        )
    words = "slurmctld's pod, which another operator made, has to be replaced first"
    if not view.persistent:
        words += (
            f". slurmctld's state is in it, and all jobs would be lost: the annotation "
            f"{own_marks.ADOPTED_PODS}: {own_marks.REPLACE} of the Controller has it replaced"
        )
    good = (view.last_known_good or before).data
    return ConfigStep(Stage.TRYING, before.data, good, {}, plan, view.active, words)


def _rolled_back(
    view: ConfigView, good: Version | None, acks: Acknowledgements, plan: Plan
) -> ConfigStep:
    """Return to slurmctld's former files; a file of the user's own cannot be restored."""
    back = good if good is not None and good.data != view.candidate.data else view.candidate
    marks = {own_marks.CONFIG_HASH: back.hash, own_marks.CONFIG_RESTART: ""}
    words = acks.rejected[view.candidate.hash]
    effective = _active(view, acks)
    return ConfigStep(Stage.ROLLED_BACK, back.data, _last_good(view), marks, plan, effective, words)


def _lost(view: ConfigView, acks: Acknowledgements, plan: Plan) -> ConfigStep:
    """Report that slurmctld does not come up and that no earlier files are left."""
    words = f"it does not come up with it, and no earlier files are left to put back: {view.down}"
    marks = {own_marks.CONFIG_HASH: view.candidate.hash}
    effective = _active(view, acks)
    return ConfigStep(
        Stage.ROLLED_BACK, view.candidate.data, _last_good(view), marks, plan, effective, words
    )


def _unfit(
    view: ConfigView, good: Version | None, acks: Acknowledgements, plan: Plan, words: str
) -> ConfigStep:
    """Reject the candidate without a trial start, which could not detect the fault."""
    kept = good.data if good else None
    marks = {own_marks.CONFIG_HASH: good.hash, own_marks.CONFIG_RESTART: ""} if good else {}
    effective = _active(view, acks)
    return ConfigStep(Stage.REJECTED, kept, _last_good(view), marks, plan, effective, words)


def _delivering(view: ConfigView, acks: Acknowledgements, plan: Plan) -> ConfigStep:
    wanted, marks = view.candidate, view.marks or {}
    handed = marks.get(own_marks.CONFIG_HASH) == wanted.hash
    active = acks.active if view.acks else view.active
    works = view.is_ready or view.active == wanted.hash
    words = view.why or acks.blocked_by
    if marks.get(own_marks.CONFIG_RESTART) == wanted.hash:
        there = handed and wanted.hash in (acks.pending, acks.active)
        stage = Stage.RESTARTING if there else Stage.DELIVERING
    elif handed and works and active == wanted.hash:
        stage = Stage.EFFECTIVE
    elif not view.is_ready and view.persistent and restarts_slurmctld(plan):
        stage, words = Stage.RETURNING, view.starting
    else:
        stage = Stage.DELIVERING
    done = stage is Stage.EFFECTIVE
    return ConfigStep(
        stage,
        wanted.data,
        wanted.data if done else _last_good(view),
        {own_marks.CONFIG_HASH: wanted.hash},
        plan,
        wanted.hash if done else _not_yet(view, acks),
        words,
    )


def _not_yet(view: ConfigView, acks: Acknowledgements) -> str:
    """Return the hash of the active configuration while the candidate is not active."""
    found = _active(view, acks)
    return view.active if found == view.candidate.hash else found


def _trying(
    view: ConfigView, good: Version | None, acks: Acknowledgements, plan: Plan
) -> ConfigStep:
    wanted, marks = view.candidate, view.marks
    kept, last_good = good.data if good else None, _last_good(view)
    effective = _active(view, acks)
    shown = marks is not None and marks.get(own_marks.CONFIG_CANDIDATE) == wanted.hash
    if shown and wanted.hash in acks.tried:
        words = acks.tried[wanted.hash]
        if words is None:
            handed = {own_marks.CONFIG_HASH: wanted.hash}
            return ConfigStep(
                Stage.DELIVERING, wanted.data, last_good, handed, plan, effective, acks.blocked_by
            )
        stage = Stage.REJECTED
    elif marks is None and good is None:
        # No files are left for a start, and no pod that could try the candidate.
        return _direct(view, acks)
    else:
        stage, words = Stage.TRYING, view.why or _without_verdict(acks, wanted)
    requested = _request_trial(view, good, plan)
    return ConfigStep(stage, kept, last_good, requested, plan, effective, words)


def _without_verdict(acks: Acknowledgements, wanted: Version) -> str:
    why = acks.untried.get(wanted.hash, "")
    return f"it gave no verdict and runs again ({why})" if why else ""


def _request_trial(view: ConfigView, good: Version | None, plan: Plan) -> dict[str, str]:
    """Return annotations that request a trial start, and how the candidate takes effect.

    slurmctld needs no reconfigure only if it is known to run with the files compared to.
    """
    wanted = view.candidate
    same = _runs_with(view, good, view.acks or Acknowledgements())
    restart = restarts_slurmctld(plan) and view.persistent
    live = same and (
        plan.force is Force.NOTHING or (plan.force is Force.REST and view.applied_live)
    )
    marks = {
        own_marks.CONFIG_CANDIDATE: wanted.hash,
        own_marks.CONFIG_LIVE: wanted.hash if live and not restart else "",
        own_marks.CONFIG_RESTART: wanted.hash if restart else "",
    }
    return marks | ({own_marks.CONFIG_HASH: good.hash} if good else {})


def restarts_slurmctld(plan: Plan) -> bool:
    """Return whether a change in the plan needs a restart of slurmctld."""
    return "slurmctld" in plan.daemons
