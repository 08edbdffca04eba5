"""May an object be stored as it is: what refuses it, and what its user is told.

What is refused is wrong whatever happens next. What another object may put right later (a
Controller that does not exist yet) is a warning, as manifests come in any order. A fault that the
stored object has already is a warning too, and an object that is being deleted is never refused:
nobody is kept from changing something else, or from getting rid of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from penstock.api.kubernetes.meta import KubeObject
from penstock.api.slinky import names
from penstock.api.slinky.accounting import Accounting
from penstock.api.slinky.common import LONGEST_CONF
from penstock.api.slinky.controller import Controller
from penstock.api.slinky.loginset import LoginSet
from penstock.api.slinky.neighbours import Neighbours, conflicts, farewell, hints
from penstock.api.slinky.nodeset import NodeSet
from penstock.api.slinky.restapi import RestApi
from penstock.api.slinky.validation import MOST_PROBLEMS, Problem, not_served, problems
from penstock.slurm.conf import slurmctld_port as slurmctld_ports
from penstock.slurm.conf.document import Document
from penstock.slurm.versions import OLDEST, of_image, parse, refusal, unsupported

FIXED = frozenset(
    {
        "authalttypes",
        "authtype",
        "clustername",
        "credtype",
        "slurmctldhost",
        "slurmctldport",
        "slurmdport",
        "slurmuser",
        "statesavelocation",
    }
)
"""Keys of slurm.conf, in lower case, that pods, Services and keys are made to fit."""
_OPERATOR = re.compile(r"[\w.]+\s*[-+*/]=")
_VALUELESS = re.compile(r"(?:^|\s)([^\s=]+)=(?=\s|$)")


@dataclass(frozen=True, slots=True)
class Judgement:
    """What keeps an object from being stored, and what is told besides."""

    problems: tuple[Problem, ...] = ()
    warnings: tuple[str, ...] = ()


def judge(new: KubeObject, old: KubeObject | None, around: Neighbours) -> Judgement:
    """A create (`old` is None) or an update."""
    if new.metadata.deleting:
        return Judgement()
    if old is not None and getattr(old, "spec", None) == getattr(new, "spec", None):
        # Somebody writes a label or a finalizer: no reason to say all of it once more.
        return Judgement()
    found = [*_alone(new), *conflicts(new, around)]
    before: set[Problem] = set()
    if old is not None:
        found += _changed(new, old)
        before = {*_alone(old), *conflicts(old, around)}
    warnings = [
        *(f"{one} (it was so before)" for one in found if one in before),
        *_told(new),
        *hints(new, around),
        *not_served(new),
    ]
    return Judgement(
        tuple(dict.fromkeys(one for one in found if one not in before)),
        tuple(dict.fromkeys(warnings)),
    )


def part(obj: KubeObject, around: Neighbours) -> Judgement:
    """A delete: always allowed."""
    return Judgement(warnings=tuple(farewell(obj, around)))


def _alone(obj: KubeObject) -> Iterator[Problem]:
    """What is wrong with an object by itself."""
    yield from problems(obj)
    yield from _releases(obj)
    match obj:
        case Controller() | Accounting():
            yield from _lines("spec.extraConf", obj.spec.extra_conf)
            ours = isinstance(obj, Controller) and not obj.spec.external
            if ours and (wrong := slurmctld_ports.unfit(obj.spec.extra_conf)):
                yield Problem("spec.extraConf", wrong)
        case NodeSet():
            for found in islice(_VALUELESS.finditer(obj.spec.extra_conf), MOST_PROBLEMS):
                key = found[1][:80]
                yield Problem(
                    "spec.extraConf",
                    f"{key}= has no value, and Slurm takes the next word for it: write {key}=VALUE "
                    "without a blank, or leave it out",
                )
            if obj.spec.partition:
                yield from _lines("spec.partition.config", obj.spec.partition.config)
        case _:
            pass


def _releases(obj: KubeObject) -> Iterator[Problem]:
    """Images of a Slurm that is not supported, as far as their tags say so."""
    daemons: dict[str, dict[str, Any]]
    match obj:
        case Controller():
            daemons = {"slurmctld": obj.spec.slurmctld}
        case NodeSet():
            daemons = {"slurmd": obj.spec.slurmd}
        case RestApi():
            daemons = {"slurmrestd": obj.spec.slurmrestd}
        case Accounting():
            daemons = {"slurmdbd": obj.spec.slurmdbd}
        case LoginSet():
            daemons = {"login": obj.spec.login}
        case _:
            return
    for name, container in daemons.items():
        version = of_image(str(container.get("image") or ""))
        if version is not None and (why := unsupported(version)):
            yield Problem(f"spec.{name}.image", why)


def _state(new: Controller, old: Controller) -> Iterator[Problem]:
    """A slurmctld that could not read its state."""
    image = str(new.spec.slurmctld.get("image") or "")
    if image == str(old.spec.slurmctld.get("image") or "") or new.spec.external:
        return
    state = parse(old.status.state_version)
    why = refusal(of_image(image), state, persistent=new.spec.persistent)
    if why and not unsupported(of_image(image) or state or OLDEST):
        yield Problem("spec.slurmctld.image", why)


def _lines(path: str, text: str) -> Iterator[Problem]:
    """Lines that no daemon of Slurm can read, whatever their keys are."""
    if len(text) > LONGEST_CONF:
        # That is a problem of its own, and the rest of it is not read.
        return
    for one in islice(Document.parse(text).problems(), MOST_PROBLEMS):
        rest = one.message.partition(": ")[2]
        if _OPERATOR.match(rest):
            continue
        where = f"line {one.line}, " if "\n" in text.strip() else ""
        yield Problem(
            path,
            f"{where}Slurm cannot read {rest!r}: write Key=Value words, in double quotes what has "
            "blanks, and # before a comment",
        )


def _changed(new: KubeObject, old: KubeObject) -> Iterator[Problem]:
    """Changes that cannot be made. CEL has most; a rule of it does not see the namespace."""
    if isinstance(new, Controller) and isinstance(old, Controller):
        yield from _state(new, old)
        before, now = names.cluster_name(old), names.cluster_name(new)
        if before != now:
            yield Problem(
                "spec.clusterName",
                f"the ClusterName cannot change from {before} to {now}, as slurmctld's state and "
                f"accounting records carry it: write {before}",
            )


def _told(obj: KubeObject) -> Iterator[str]:
    if isinstance(obj, Controller) and len(obj.spec.extra_conf) <= LONGEST_CONF:
        document = Document.parse(obj.spec.extra_conf)
        given = {
            one.key: None for line in document.lines for one in line.settings[:1] if line.settings
        }
        for key in given:
            if key.lower() in FIXED:
                yield (
                    f"spec.extraConf: {key} is set by the operator, and pods and Services fit "
                    "that; yours comes last and wins"
                )
