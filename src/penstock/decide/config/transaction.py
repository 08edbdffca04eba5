"""A changed configuration as a transaction: tried, delivered, acknowledged, put back when refused.

Three ConfigMaps keep how far it is, so that whoever looks next goes on from there:

- the candidate has what is declared; slurmctld's pod shows it to the reconfigure container only,
- the real one is what slurmctld reads when it starts: it gets what a trial start has taken,
- the alias has the last known good configuration, with which slurmctld has served.

Each step is the same when it is done twice. What is not known (no pod, no answer, a trial without
a verdict) leaves the real one as it is. Only a slurmctld that never worked, or a reconfigure
container that is not ours, gets the declared files without a trial.

A slurmctld that does not come up with the real one, while the alias has another one, gets that
back: after a restart for keys that need one, and as well when its pod went in the middle of a
reconfigure. The real ConfigMap carries the verdict beside the files (`marks.CONFIG_REFUSED`):
both are written at once, and nobody tries the same configuration again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from penstock.api.cluster import marks as own_marks
from penstock.decide.config.acknowledgement import Acks
from penstock.slurm.conf.apply_method import Force, Plan, Table, needs
from penstock.slurm.conf.apply_method_table import TABLE

Files = Mapping[str, str]
_JOINED = frozenset({"authaltparameters", "authinfo", "slurmctldparameters"})


class Stage(Enum):
    """How far a configuration is."""

    STARTING = "slurmctld has not worked yet, or cannot be asked"
    TRYING = "a trial start is waited for"
    REFUSED = "the trial start refused it"
    DELIVERING = "slurmctld is to take it over"
    UNDONE = "slurmctld refused it at the reconfigure, or did not come up with it"
    RESTARTING = "slurmctld is restarted for it now"
    RETURNING = "slurmctld was restarted for it and does not serve yet"
    EFFECTIVE = "slurmctld runs with it"


@dataclass(frozen=True, slots=True)
class Version:
    """The files of one of our ConfigMaps, and the hash of /etc/slurm with them.

    `own` is the hash of what the Controller itself brings, without partitions.
    """

    data: Files
    hash: str
    own: str = ""


def _no_marks() -> dict[str, str]:
    return {}


@dataclass(frozen=True, slots=True)
class ConfigView:
    """All that the decision depends on.

    `real` and `alias` are None when they are absent or not as they were written. `effective` is
    what the status says. `marks` are the annotations of slurmctld's pod, None without a pod. `acks`
    is None when the reconfigure container could not be asked, for the reason in `why`.
    """

    wanted: Version
    real: Version | None
    alias: Version | None
    worked: bool
    serves: bool
    speaks: bool
    effective: str = ""
    marks: Mapping[str, str] | None = None
    acks: Acks | None = None
    why: str = ""
    persistent: bool = True
    applied_live: bool = False
    held: bool = False
    """Whether slurmctld's pod is as another operator made it: nobody in it can be asked."""
    down: str = ""
    """Why slurmctld does not come up with the configuration that its pod was handed; empty while
    that may just take its time."""
    hung: str = ""
    """Why a slurmctld that was started before its files were delivered does not serve; empty while
    that may just take its time."""
    starting: str = ""
    """What keeps slurmctld's pod from serving; empty when it serves or nothing is known."""
    refused: Mapping[str, str] = field(default_factory=dict[str, str])
    """Slurmctld's words by `Version.hash` or `Version.own` with which it did not come up before."""
    unfit: str = ""
    """Why the declared configuration cannot work in our pods, whatever a trial says."""
    whole: bool = True
    """Whether `wanted` has all that is declared, and none of it is left out as refused."""

    @property
    def first(self) -> bool:
        """Whether slurmctld has never worked, and does not now."""
        return not self.worked and not self.serves

    table: Table = TABLE
    """What each key needs with the Slurm that runs."""
    unknown: str = ""
    """Why the Slurm that runs cannot read what is declared, if that is known beforehand."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What the ConfigMaps are to hold, and what slurmctld's pods are to be marked with.

    Contents that are None are left as they are. A mark of "" is taken away. `effective` is the hash
    that slurmctld runs with, empty while it is not known.
    """

    stage: Stage
    real: Files | None
    alias: Files | None
    marks: Mapping[str, str] = field(default_factory=_no_marks)
    plan: Plan = field(default_factory=Plan)
    effective: str = ""
    words: str = ""
    told: bool = True
    """Whether EFFECTIVE is slurmctld's own word."""
    reads: bool = False
    """Whether slurmctld is about to read its files, and to forget what it was told since."""
    refused: Mapping[str, str] = field(default_factory=dict[str, str])
    """Verdicts to keep beside the real files, as `ConfigView.refused`."""
    wrong: bool = False
    """Whether STARTING cannot end with these files: somebody has to correct them."""
    recreate: str = ""
    """Why slurmctld's pod is to be recreated although no key needs it; empty when it is not."""

    @property
    def restart(self) -> bool:
        """Whether slurmctld is to be restarted now."""
        return self.stage is Stage.RESTARTING


def settled(view: ConfigView) -> bool:
    """Whether nothing is under way, so that nobody has to be asked."""
    wanted, marks = view.wanted, view.marks or {}
    return (
        view.worked
        and view.effective == wanted.hash == marks.get(own_marks.CONFIG_HASH)
        and _holds(view.real, wanted)
        and _holds(view.alias, wanted)
        and not marks.get(own_marks.CONFIG_RESTART)
    )


def decide(view: ConfigView) -> Decision:
    """The next step."""
    view = _judged(view)
    found = _step(view)
    over = found.stage is Stage.EFFECTIVE and view.whole
    return replace(
        found,
        reads=_reads(view, found),
        refused={} if over else view.refused,
        recreate=_recreate(view, found),
    )


def _recreate(view: ConfigView, found: Decision) -> str:
    """Why slurmctld's pod has to be recreated: it has rejected files, or takes no others."""
    if not view.persistent:
        return ""
    handed = (view.marks or {}).get(own_marks.CONFIG_HASH)
    if handed in view.refused and found.marks.get(own_marks.CONFIG_HASH, handed) != handed:
        words = "slurmctld did not come up with its configuration"
        return f"{words}, and gets the last known good one back"
    return "" if view.held or not view.speaks else view.hung


def _judged(view: ConfigView) -> ConfigView:
    """The view after the verdict on real files with which slurmctld does not come up.

    They are taken for refused, and the last known good ones for real.
    """
    if not view.down or view.held or view.first or not view.speaks:
        return view
    if view.real is None or view.alias is None or view.alias.data == view.real.data:
        return view
    words = f"when slurmctld was started with it, it did not come up: {view.down}"
    # What differs from the last good one in the Controller's own lines is refused for these,
    # whatever partitions change meanwhile.
    hashes = [view.real.hash] + ([view.real.own] if view.real.own != view.alias.own else [])
    refused = dict.fromkeys(hashes, words)
    return replace(view, real=view.alias, refused=refused, down="")


def _step(view: ConfigView) -> Decision:
    wanted, acks = view.wanted, view.acks or Acks()
    if view.held:
        return _held(view)
    known = (one for one in (wanted, view.real, view.alias) if one is not None)
    before = {one.hash: words for one in known if (words := _refused_before(view, one))}
    acks = replace(acks, refused={**before, **acks.refused})
    good = _good(view, acks)
    plan = _plan(view, good, acks)
    if view.unfit and not view.first and view.effective != wanted.hash:
        return _unfit(view, good, acks, plan, view.unfit)
    if view.first or not view.speaks:
        return _direct(view, acks)
    if view.unknown and (good is None or good.data != wanted.data):
        return _unfit(view, good, acks, plan, view.unknown)
    if wanted.hash in acks.refused:
        return _undone(view, good, acks, plan)
    if good is not None and good.data == wanted.data:
        if view.down and view.effective != wanted.hash:
            return _lost(view, acks, plan)
        return _delivering(view, acks, plan)
    if good is not None and _comes_live(view, good, acks):
        # Another mark now would have slurmctld read it, for nothing. The candidates are tried
        # meanwhile.
        return _delivering(replace(view, wanted=good), acks, plan)
    return _trying(view, good, acks, plan)


def _refused_before(view: ConfigView, version: Version) -> str:
    return view.refused.get(version.hash) or view.refused.get(version.own, "")


def _plan(view: ConfigView, good: Version | None, acks: Acks) -> Plan:
    """What it needs to get to the wanted one.

    While it is not known with which of two slurmctld runs, as it is being restarted, a restart that
    one of them needs is needed: a slurmctld on another port could not even be asked.
    """
    wanted = view.wanted
    has = good if _runs_with(view, good, acks) else view.alias
    plan = needs((has or good or wanted).data, wanted.data, view.table)
    if good is not None and has is not good and not restarts_slurmctld(plan):
        other = needs(good.data, wanted.data, view.table)
        return other if restarts_slurmctld(other) else plan
    return plan


def _effective(view: ConfigView, acks: Acks) -> str:
    """The hash that slurmctld runs with.

    The container of a new pod says so of what slurmctld is about to read: it has to serve first.
    """
    return acks.effective if acks.effective and view.serves else view.effective


def _last_good(view: ConfigView) -> Files | None:
    """What the alias is to have, as long as slurmctld has not served with anything else."""
    if view.alias is not None:
        return view.alias.data
    # It was deleted or edited: only what is known to have served may stand there.
    real = view.real
    return real.data if real is not None and real.hash == view.effective else None


def _runs_with(view: ConfigView, good: Version | None, acks: Acks) -> bool:
    """Whether slurmctld is known to run with it; what was told just now is not written yet."""
    if good is None:
        return False
    written = good.hash == view.effective and _holds(view.alias, good)
    return written or (view.serves and good.hash == acks.effective)


def _comes_live(view: ConfigView, good: Version, acks: Acks) -> bool:
    """Whether it is on its way to a pod whose slurmctld has all of it already."""
    marks = view.marks or {}
    return (
        view.serves
        and good is view.real
        and bool(acks.effective)
        and acks.effective != good.hash
        and not acks.waits
        and marks.get(own_marks.CONFIG_LIVE) == good.hash
        and marks.get(own_marks.CONFIG_RESTART) != good.hash
    )


def _reads(view: ConfigView, found: Decision) -> bool:
    """Whether slurmctld reads what it is handed, or is about to."""
    if found.restart:
        return True
    marks = {**(view.marks or {}), **found.marks}
    handed = marks.get(own_marks.CONFIG_HASH)
    effective = view.acks.effective if view.acks else view.effective
    live = handed == marks.get(own_marks.CONFIG_LIVE)
    return view.speaks and view.serves and bool(handed) and handed != effective and not live


def _holds(found: Version | None, wanted: Version) -> bool:
    return found is not None and found.data == wanted.data


def _good(view: ConfigView, acks: Acks) -> Version | None:
    """What slurmctld may start with: the real one, unless it was refused or edited by somebody."""
    known = [one for one in (view.real, view.alias) if one is not None]
    fit = [one for one in known if one.hash not in acks.refused]
    return next(iter(fit or known), None)


def same_meaning(one: Files, other: Files) -> bool:
    """Whether files differ at most in remarks, and in how lists of options are written.

    slurm-operator writes the options that it joins to a user's in small letters.
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


def _direct(view: ConfigView, acks: Acks) -> Decision:
    wanted = view.wanted
    told = wanted.hash in (acks.effective, view.effective)
    done = view.serves and (told or not view.speaks)
    wrong = (view.unfit or view.down) if view.first else ""
    return Decision(
        Stage.EFFECTIVE if done else Stage.STARTING,
        wanted.data,
        wanted.data if done or not view.speaks else _last_good(view),
        {own_marks.CONFIG_HASH: wanted.hash},
        needs((view.alias or wanted).data, wanted.data, view.table),
        wanted.hash if told and view.serves else "",
        wrong or view.why or acks.waits,
        told,
        wrong=bool(wrong),
    )


def _held(view: ConfigView) -> Decision:
    """What takes effect without the pod is written; for anything else the pod has to go first.

    slurmctld goes on with the file that it has, and the new pod starts with that.
    """
    wanted, before = view.wanted, view.real or view.wanted
    plan = needs(before.data, wanted.data, view.table)
    live = plan.force is Force.NOTHING or (plan.force is Force.REST and view.applied_live)
    if live or same_meaning(before.data, wanted.data):
        words = "its pod is as slurm-operator made it"
        return Decision(Stage.EFFECTIVE, wanted.data, wanted.data, {}, plan, "", words, told=False)
    words = "slurmctld's pod, which slurm-operator made, has to be replaced first"
    if not view.persistent:
        words += (
            f". slurmctld's state is in it, and all jobs would be lost: the annotation "
            f"{own_marks.ADOPTED_PODS}: {own_marks.REPLACE} of the Controller has it replaced"
        )
    alias = (view.alias or before).data
    return Decision(Stage.TRYING, before.data, alias, {}, plan, view.effective, words)


def _undone(view: ConfigView, good: Version | None, acks: Acks, plan: Plan) -> Decision:
    """Back to what slurmctld had; a file of the user's own cannot be put back."""
    back = good if good is not None and good.data != view.wanted.data else view.wanted
    marks = {own_marks.CONFIG_HASH: back.hash, own_marks.CONFIG_RESTART: ""}
    words = acks.refused[view.wanted.hash]
    effective = _effective(view, acks)
    return Decision(Stage.UNDONE, back.data, _last_good(view), marks, plan, effective, words)


def _lost(view: ConfigView, acks: Acks, plan: Plan) -> Decision:
    """Slurmctld does not come up, and there is nothing else with which it is known to."""
    words = f"it does not come up with it, and no earlier files are left to put back: {view.down}"
    marks = {own_marks.CONFIG_HASH: view.wanted.hash}
    effective = _effective(view, acks)
    return Decision(Stage.UNDONE, view.wanted.data, _last_good(view), marks, plan, effective, words)


def _unfit(view: ConfigView, good: Version | None, acks: Acks, plan: Plan, words: str) -> Decision:
    """Refused without a trial, which could not see it."""
    kept = good.data if good else None
    marks = {own_marks.CONFIG_HASH: good.hash, own_marks.CONFIG_RESTART: ""} if good else {}
    effective = _effective(view, acks)
    return Decision(Stage.REFUSED, kept, _last_good(view), marks, plan, effective, words)


def _delivering(view: ConfigView, acks: Acks, plan: Plan) -> Decision:
    wanted, marks = view.wanted, view.marks or {}
    handed = marks.get(own_marks.CONFIG_HASH) == wanted.hash
    told = acks.effective if view.acks else view.effective
    works = view.serves or view.effective == wanted.hash
    words = view.why or acks.waits
    if marks.get(own_marks.CONFIG_RESTART) == wanted.hash:
        there = handed and wanted.hash in (acks.pending, acks.effective)
        stage = Stage.RESTARTING if there else Stage.DELIVERING
    elif handed and works and told == wanted.hash:
        stage = Stage.EFFECTIVE
    elif not view.serves and view.persistent and restarts_slurmctld(plan):
        stage, words = Stage.RETURNING, view.starting
    else:
        stage = Stage.DELIVERING
    done = stage is Stage.EFFECTIVE
    return Decision(
        stage,
        wanted.data,
        wanted.data if done else _last_good(view),
        {own_marks.CONFIG_HASH: wanted.hash},
        plan,
        wanted.hash if done else _not_yet(view, acks),
        words,
    )


def _not_yet(view: ConfigView, acks: Acks) -> str:
    """The hash that slurmctld runs with while it does not have the wanted one."""
    found = _effective(view, acks)
    return view.effective if found == view.wanted.hash else found


def _trying(view: ConfigView, good: Version | None, acks: Acks, plan: Plan) -> Decision:
    wanted, marks = view.wanted, view.marks
    kept, alias = good.data if good else None, _last_good(view)
    effective = _effective(view, acks)
    shown = marks is not None and marks.get(own_marks.CONFIG_CANDIDATE) == wanted.hash
    if shown and wanted.hash in acks.tried:
        words = acks.tried[wanted.hash]
        if words is None:
            handed = {own_marks.CONFIG_HASH: wanted.hash}
            return Decision(
                Stage.DELIVERING, wanted.data, alias, handed, plan, effective, acks.waits
            )
        stage = Stage.REFUSED
    elif marks is None and good is None:
        # Nothing is left to start with, and nobody who could try.
        return _direct(view, acks)
    else:
        stage, words = Stage.TRYING, view.why or _without_verdict(acks, wanted)
    asked = _asking(view, good, plan)
    return Decision(stage, kept, alias, asked, plan, effective, words)


def _without_verdict(acks: Acks, wanted: Version) -> str:
    why = acks.untried.get(wanted.hash, "")
    return f"it gave no verdict and is made again ({why})" if why else ""


def _asking(view: ConfigView, good: Version | None, plan: Plan) -> dict[str, str]:
    """Marks that hand the candidate over, with what it needs when it is taken.

    It needs nothing of slurmctld only if slurmctld is known to run with all that it is compared to.
    """
    wanted = view.wanted
    same = _runs_with(view, good, view.acks or Acks())
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
    """Whether something in it takes effect by a restart of slurmctld only."""
    return "slurmctld" in plan.daemons
