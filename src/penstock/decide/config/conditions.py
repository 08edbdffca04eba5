"""Conditions ConfigValid and ConfigApplied, and the messages of events about a configuration."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from penstock.api.kubernetes.conditions import Finding, find
from penstock.api.kubernetes.meta import Condition
from penstock.base.text import list_some
from penstock.decide.config.transaction import restarts_slurmctld
from penstock.decide.config.view import ConfigStep, Stage
from penstock.slurm.conf.apply_method import Force, Item, Plan
from penstock.slurm.conf.includes import SLURM_CONF, included
from penstock.slurm.conf.similar_key import similar_key

VALID = "ConfigValid"
APPLIED = "ConfigApplied"

_KEEPS = "slurmctld rejects the configuration and keeps the one it has: "
_SHORTEST = 3
_WORD = re.compile(r"[\w./-]+")
_REPEATED = re.compile(r"\S+ \d+ specified more than once, latest value used")
"""slurmctld's remark on a key that is in a file twice. It rejects nothing for it."""
_OF_PAM = re.compile(r"If using PrologFlags=Contain for pam_slurm_adopt, .*? please ignore error\.")
"""Its remark on each configuration with that flag and without proctrack/cgroup."""
_INCLUDED = re.compile(r'"Include" failed in file \S+ line \d+')
"""Its remark after a fault in an included file, about the line of the Include."""


def has_worked(conditions: Sequence[Condition]) -> bool:
    """Return whether slurmctld has ever served: the condition ConfigApplied exists from then on."""
    return find(conditions, APPLIED) is not None


def findings(
    decision: ConfigStep, declared: Mapping[str, str], draining: Collection[str] = ()
) -> list[Finding]:
    """Return ConfigValid and ConfigApplied, once slurmctld has served.

    `draining` are removed partitions whose lines stay in slurm.conf until their jobs end.
    """
    words = decision.words
    match decision.stage:
        case Stage.STARTING if decision.needs_correction:
            message = (
                "slurmctld does not start, and there is no earlier configuration to put back: "
            )
            message += f"{words}{place(words, declared)}"
            return [Finding(False, "ConfigRefused", message, type=VALID)]
        case Stage.STARTING:
            return []
        case Stage.EFFECTIVE if not decision.is_acknowledged:
            message = (
                "The configuration was handed over without a trial, and slurmctld is not asked"
            )
            return [Finding(True, "ConfigDelivered", message + _because(words), type=APPLIED)]
        case Stage.EFFECTIVE:
            return [
                Finding(True, "ConfigAccepted", type=VALID),
                Finding(True, "ConfigInEffect", type=APPLIED),
            ]
        case Stage.TRYING:
            message = "The changed configuration waits for its trial start" + _because(words)
            return [
                Finding(None, "ConfigTrying", message, type=VALID),
                Finding(None, "ConfigTrying", message, type=APPLIED),
            ]
        case Stage.DELIVERING:
            message = "The changed configuration waits for slurmctld to take it over"
            return [
                Finding(True, "ConfigAccepted", type=VALID),
                Finding(None, "ConfigDelivering", message + _because(words), type=APPLIED),
            ]
        case Stage.RESTARTING:
            message = f"slurmctld is restarted for {_named(decision.plan, Force.RESTART)}"
            return [
                Finding(True, "ConfigAccepted", type=VALID),
                Finding(None, "ConfigRestarting", message, type=APPLIED),
            ]
        case Stage.RETURNING:
            message = f"slurmctld was restarted for {_named(decision.plan, Force.RESTART)}"
            message += " and does not serve yet"
            return [
                Finding(True, "ConfigAccepted", type=VALID),
                Finding(None, "ConfigRestarting", message + _because(words), type=APPLIED),
            ]
        case Stage.REJECTED:
            return rejected_findings(words, declared, draining)
        case Stage.ROLLED_BACK:
            return rejected_findings(words, declared, draining, tried=True)


def with_delay(found: list[Finding]) -> list[Finding]:
    """Return the findings, with the remark in ConfigApplied that a restart waits."""
    words = (
        "slurmctld's restart waits for it, at most a minute, as jobs of partitions that the "
        "files lack would end"
    )
    return [
        replace(one, message=f"{one.message}. {words}") if one.type == APPLIED else one
        for one in found
    ]


def rejected_findings(
    words: str, declared: Mapping[str, str], draining: Collection[str] = (), *, tried: bool = False
) -> list[Finding]:
    """Return ConfigValid and ConfigApplied of a rejected configuration.

    `tried` is true when the trial start accepted it. `draining` as in `findings`.
    """
    at = place(words, declared)
    hint = _similar_hint(words, declared) + _retained_hint(words, at, draining)
    message = f"{_KEEPS}{words}{at}{hint}"
    valid = Finding(True, "ConfigAccepted") if tried else Finding(False, "ConfigRefused", message)
    return [replace(valid, type=VALID), Finding(False, "ConfigRefused", message, type=APPLIED)]


def findings_beside_rejection(
    decision: ConfigStep,
    words: str,
    declared: Mapping[str, str],
    draining: Collection[str],
    old: Sequence[Condition],
    *,
    kind: str,
) -> list[Finding]:
    """Return ConfigValid and ConfigApplied while an object's own lines are rejected in these words.

    The step is that of a configuration without these lines. `declared` has them; `old` are the
    conditions of now. `kind` is that of the object.
    """
    valid = find(old, VALID)
    tried = valid is not None and valid.status == "True"
    if decision.stage in {Stage.REJECTED, Stage.ROLLED_BACK}:
        words += f"; and without the {kind}'s changed lines: {decision.words}"
    return rejected_findings(words, declared, draining, tried=tried)


def step(decision: ConfigStep, pod: str, *, kind: str, live: bool, persistent: bool) -> str:
    """Return the event message for the step by which a pod's slurmctld applies a configuration.

    `kind` is that of the cluster's object. `live` means that no reconfigure is needed.
    """
    plan = decision.plan
    if restarts_slurmctld(plan) and persistent:
        message = f"slurmctld of {pod} is restarted: {_named(plan, Force.RESTART)} needs it"
    elif live and plan.force is Force.REST:
        message = (
            f"In effect by REST calls: {_named(plan, Force.REST)}; slurmctld is not reconfigured"
        )
    elif live:
        message = f"The files of {pod} changed, but nothing that slurmctld would have to take over"
    else:
        named = (
            list_some([_with_change(item) for item in plan.items]) or f"files that the {kind} names"
        )
        message = f"{pod} is reconfigured for {named}; slurmctld is not restarted"
    return message + "".join(f". {part}" for part in _remarks(plan, persistent))


def _remarks(plan: Plan, persistent: bool) -> list[str]:
    found = [f"Warning: {one}" for one in plan.beware]
    if plan.unknown:
        found.append(
            f"Unknown options, applied by reconfigure: {list_some([str(i) for i in plan.unknown])}"
        )
    left = [one for one in plan.daemons if one != "slurmctld" or not persistent]
    if left:
        named = _named(plan, Force.RESTART)
        found.append(f"{named} needs a restart of {', '.join(left)}, which is left to you")
    return found


def place(words: str, declared: Mapping[str, str]) -> str:
    """Return the line of slurm.conf that slurmctld rejects, if its error fits exactly one.

    slurmctld names the faulty value, not its line. The line may be in an included file.
    """
    found = _rejected_line(words, declared)
    if found is None:
        return ""
    file, number, line = found
    return f" (line {number} of {file}: {line.strip()})"


def _rejected_line(words: str, declared: Mapping[str, str]) -> tuple[str, int, str] | None:
    lines = [
        (file, number, line)
        for file in (SLURM_CONF, *included(declared))
        for number, line in enumerate(declared.get(file, "").split("\n"), 1)
    ]
    for remark in (_REPEATED, _OF_PAM, _INCLUDED):
        words = remark.sub("", words)
    named = {one.lower().rstrip(".") for one in _WORD.findall(words) if len(one) >= _SHORTEST}
    scores = [len(named & _words_of(line)) for _, _, line in lines]
    best = max(scores, default=0)
    found = [one for one, score in zip(lines, scores, strict=True) if score == best]
    return found[0] if best and len(found) == 1 else None


def _similar_hint(words: str, declared: Mapping[str, str]) -> str:
    """Return the known key that the rejected one is most like."""
    found = _rejected_line(words, declared)
    key = similar_key(found[2], words) if found is not None else ""
    return f". The nearest key that Slurm has is {key}" if key else ""


def _retained_hint(words: str, at: str, draining: Collection[str]) -> str:
    """Return a hint that the rejected line may be one that the user has removed."""
    if not draining:
        return ""
    quoted = {one.rstrip(".") for one in _WORD.findall(words + at)}
    named = [one for one in sorted(draining) if one in quoted]
    stays = "is removed from the declaration and its line stays for its jobs"
    if not named:
        return f". Partition {list_some(sorted(draining))} {stays}, which this may be about"
    ends = f"`scancel --partition={','.join(named)}`"
    return (
        f". Partition {list_some(named)} {stays}: undo the other change, or end the jobs by {ends}"
    )


def _words_of(line: str) -> set[str]:
    text = "" if line.lstrip().startswith("#") else line
    return {one.lower() for one in _WORD.findall(text) if len(one) >= _SHORTEST}


def _because(words: str) -> str:
    return f": {words}" if words else ""


def _named(plan: Plan, force: Force) -> str:
    return list_some([_with_change(item) for item in plan.of(force)]) or "it"


def _with_change(item: Item) -> str:
    """Return a key or line, and whether it is removed; for named lines also whether it is new."""
    return f"{item} ({item.turn})" if item.turn and (item.name or item.gone) else str(item)
