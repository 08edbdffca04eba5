"""A changed configuration as a transaction: tried, delivered, acknowledged, put back when refused.

Three ConfigMaps keep how far it is, so that whoever looks next goes on from there:

- the candidate has what is declared; slurmctld's pod shows it to the reconfigure container only,
- the real one is what slurmctld reads when it starts: it gets what a trial start has taken,
- the alias has what slurmctld was last seen to run with: it is what a refusal leads back to.

Each step is the same when it is done twice. What is not known (no pod, no answer) leaves the real
one as it is. Only a slurmctld that never worked, or a reconfigure container that is not ours, gets
the declared files without a trial.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from penstock.api.slinky import wellknown
from penstock.decide.config_acks import Acks
from penstock.slurm.force import Force, Plan, needs
from penstock.slurm.force_table import TABLE

Files = Mapping[str, str]
_JOINED = frozenset({"authaltparameters", "authinfo", "slurmctldparameters"})


class Stage(Enum):
    """How far a configuration is."""

    STARTING = "slurmctld has not worked yet, or cannot be asked"
    TRYING = "a trial start is waited for"
    REFUSED = "the trial start refused it"
    DELIVERING = "slurmctld is to take it over"
    UNDONE = "slurmctld refused it at the reconfigure"
    RESTARTING = "slurmctld is restarted for it"
    EFFECTIVE = "slurmctld runs with it"


@dataclass(frozen=True, slots=True)
class Version:
    """The files of one of our ConfigMaps, and the hash of /etc/slurm with them."""

    data: Files
    hash: str


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

    @property
    def restart(self) -> bool:
        """Whether slurmctld is to be restarted now."""
        return self.stage is Stage.RESTARTING


def settled(view: ConfigView) -> bool:
    """Whether nothing is under way, so that nobody has to be asked."""
    wanted, marks = view.wanted, view.marks or {}
    return (
        view.worked
        and view.effective == wanted.hash == marks.get(wellknown.CONFIG_HASH)
        and _holds(view.real, wanted)
        and _holds(view.alias, wanted)
        and not marks.get(wellknown.CONFIG_RESTART)
    )


def decide(view: ConfigView) -> Decision:
    """The next step."""
    found = _step(view)
    return replace(found, reads=_reads(view, found))


def _step(view: ConfigView) -> Decision:
    wanted, acks = view.wanted, view.acks or Acks()
    if view.held:
        return _held(view)
    if not view.worked or not view.speaks:
        return _direct(view, acks)
    good = _good(view, acks)
    has = good if _runs_with(view, good, acks) else view.alias
    plan = needs((has or good or wanted).data, wanted.data, TABLE)
    if wanted.hash in acks.refused:
        return _undone(view, good, acks.refused[wanted.hash], plan)
    if good is not None and good.data == wanted.data:
        return _delivering(view, acks, plan)
    if good is not None and _comes_live(view, good, acks):
        # Another mark now would have slurmctld read it, for nothing. The candidates are tried
        # meanwhile.
        return _delivering(replace(view, wanted=good), acks, plan)
    return _trying(view, good, acks, plan)


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
        and marks.get(wellknown.CONFIG_LIVE) == good.hash
        and marks.get(wellknown.CONFIG_RESTART) != good.hash
    )


def _reads(view: ConfigView, found: Decision) -> bool:
    """Whether slurmctld reads what it is handed, or is about to."""
    if found.restart:
        return True
    marks = {**(view.marks or {}), **found.marks}
    handed = marks.get(wellknown.CONFIG_HASH)
    effective = view.acks.effective if view.acks else view.effective
    live = handed == marks.get(wellknown.CONFIG_LIVE)
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
    return Decision(
        Stage.EFFECTIVE if done else Stage.STARTING,
        wanted.data,
        wanted.data,
        {wellknown.CONFIG_HASH: wanted.hash},
        needs((view.alias or wanted).data, wanted.data, TABLE),
        wanted.hash if told else "",
        view.why or acks.waits,
        told,
    )


def _held(view: ConfigView) -> Decision:
    """What takes effect without the pod is written; for anything else the pod has to go first.

    slurmctld goes on with the file that it has, and the new pod starts with that.
    """
    wanted, before = view.wanted, view.real or view.wanted
    plan = needs(before.data, wanted.data, TABLE)
    live = plan.force is Force.NOTHING or (plan.force is Force.REST and view.applied_live)
    if live or same_meaning(before.data, wanted.data):
        words = "its pod is as slurm-operator made it"
        return Decision(Stage.EFFECTIVE, wanted.data, wanted.data, {}, plan, "", words, told=False)
    words = "slurmctld's pod, which slurm-operator made, has to be replaced first"
    if not view.persistent:
        words += (
            f". slurmctld's state is in it, and all jobs would be lost: the annotation "
            f"{wellknown.ADOPTED_PODS}: {wellknown.REPLACE} of the Controller has it replaced"
        )
    alias = (view.alias or before).data
    return Decision(Stage.TRYING, before.data, alias, {}, plan, view.effective, words)


def _undone(view: ConfigView, good: Version | None, words: str, plan: Plan) -> Decision:
    """Back to what slurmctld had; a file of the user's own cannot be put back."""
    back = good if good is not None and good.data != view.wanted.data else view.wanted
    marks = {wellknown.CONFIG_HASH: back.hash, wellknown.CONFIG_RESTART: ""}
    effective = view.acks.effective if view.acks else view.effective
    return Decision(Stage.UNDONE, back.data, back.data, marks, plan, effective, words)


def _delivering(view: ConfigView, acks: Acks, plan: Plan) -> Decision:
    wanted, marks = view.wanted, view.marks or {}
    handed = marks.get(wellknown.CONFIG_HASH) == wanted.hash
    told = acks.effective if view.acks else view.effective
    # The container says so of what slurmctld is about to read as well: it has to work with it once.
    works = view.serves or view.effective == wanted.hash
    confirmed = handed and works and told == wanted.hash
    if confirmed and marks.get(wellknown.CONFIG_RESTART) == wanted.hash:
        stage = Stage.RESTARTING
    else:
        stage = Stage.EFFECTIVE if confirmed else Stage.DELIVERING
    before = view.alias or wanted
    if stage is Stage.EFFECTIVE:
        effective = wanted.hash
    else:
        # In the status it would count as proof that slurmctld has worked with it.
        effective = acks.effective if works or acks.effective != wanted.hash else view.effective
    return Decision(
        stage,
        wanted.data,
        wanted.data if confirmed else before.data,
        {wellknown.CONFIG_HASH: wanted.hash},
        plan,
        effective,
        view.why or acks.waits,
    )


def _trying(view: ConfigView, good: Version | None, acks: Acks, plan: Plan) -> Decision:
    wanted, marks = view.wanted, view.marks
    kept = good.data if good else None
    alias = (view.alias or good or wanted).data if view.alias or good else None
    shown = marks is not None and marks.get(wellknown.CONFIG_CANDIDATE) == wanted.hash
    if shown and wanted.hash in acks.tried:
        words = acks.tried[wanted.hash]
        if words is None:
            handed = {wellknown.CONFIG_HASH: wanted.hash}
            return Decision(
                Stage.DELIVERING, wanted.data, alias, handed, plan, acks.effective, acks.waits
            )
        stage = Stage.REFUSED
    elif marks is None and good is None:
        # Nothing is left to start with, and nobody who could try.
        return _direct(view, acks)
    else:
        stage, words = Stage.TRYING, view.why
    return Decision(
        stage,
        kept,
        alias,
        _asking(view, good, plan),
        plan,
        acks.effective or view.effective,
        words,
    )


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
        wellknown.CONFIG_CANDIDATE: wanted.hash,
        wellknown.CONFIG_LIVE: wanted.hash if live or restart else "",
        wellknown.CONFIG_RESTART: wanted.hash if restart else "",
    }
    return marks | ({wellknown.CONFIG_HASH: good.hash} if good else {})


def restarts_slurmctld(plan: Plan) -> bool:
    """Whether something in it takes effect by a restart of slurmctld only."""
    return "slurmctld" in plan.daemons
