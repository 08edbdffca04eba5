"""Rules of Slinky's kinds that apply to writes only.

A stored object that breaks them is still reconciled: the daemon that reads the field rejects it,
and its words are reported.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from penstock.api.admission import MOST_PROBLEMS, Problem
from penstock.api.kubernetes.meta import Json
from penstock.api.slinky import names
from penstock.api.slinky.accounting import Accounting
from penstock.api.slinky.common import LONGEST_CONF, LONGEST_LINE
from penstock.api.slinky.controller import Controller
from penstock.api.slinky.loginset import LoginSet
from penstock.api.slinky.nodeset import NodeSet
from penstock.api.slinky.restapi import RestApi
from penstock.slurm.conf import slurmctld_port as slurmctld_ports
from penstock.slurm.conf.document import Document
from penstock.slurm.versions import OLDEST, of_image, parse, release_problem, unsupported

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


def controller_problems(obj: Controller) -> Iterator[Problem]:
    """Releases that are not supported, lines and a port with which slurmctld cannot work."""
    yield from _release("slurmctld", obj.spec.slurmctld)
    yield from _lines("spec.extraConf", obj.spec.extra_conf)
    if obj.spec.external or len(obj.spec.extra_conf) > LONGEST_CONF:
        return
    if wrong := slurmctld_ports.unfit(obj.spec.extra_conf):
        yield Problem("spec.extraConf", wrong)


def controller_changes(new: Controller, old: Controller) -> Iterator[Problem]:
    """Changes that slurmctld's state forbids. CEL has most; a rule of it sees no namespace."""
    yield from _state(new, old)
    before, now = names.cluster_name(old), names.cluster_name(new)
    if before != now:
        yield Problem(
            "spec.clusterName",
            f"the ClusterName cannot change from {before} to {now}, as slurmctld's state and "
            f"accounting records carry it: write {before}",
        )


def controller_advice(obj: Controller) -> Iterator[str]:
    """Keys of slurm.conf that the operator sets as well."""
    if len(obj.spec.extra_conf) > LONGEST_CONF:
        return
    document = Document.parse(obj.spec.extra_conf)
    given = {one.key: None for line in document.lines for one in line.settings[:1] if line.settings}
    for key in given:
        if key.lower() in FIXED:
            yield (
                f"spec.extraConf: {key} is set by the operator, and pods and Services fit "
                "that; yours comes last and wins"
            )


def nodeset_problems(obj: NodeSet) -> Iterator[Problem]:
    """Releases that are not supported, and words that slurmd or slurmctld cannot read."""
    yield from _release("slurmd", obj.spec.slurmd)
    words = obj.spec.extra_conf
    for found in islice(_VALUELESS.finditer(words[:LONGEST_LINE]), MOST_PROBLEMS):
        key = found[1][:80]
        yield Problem(
            "spec.extraConf",
            f"{key}= has no value, and Slurm takes the next word for it: write {key}=VALUE "
            "without a blank, or leave it out",
        )
    if obj.spec.partition:
        yield from _lines("spec.partition.config", obj.spec.partition.config)


def restapi_problems(obj: RestApi) -> Iterator[Problem]:
    """Releases that are not supported."""
    yield from _release("slurmrestd", obj.spec.slurmrestd)


def loginset_problems(obj: LoginSet) -> Iterator[Problem]:
    """Releases that are not supported."""
    yield from _release("login", obj.spec.login)


def accounting_problems(obj: Accounting) -> Iterator[Problem]:
    """Releases that are not supported, and lines that slurmdbd cannot read."""
    yield from _release("slurmdbd", obj.spec.slurmdbd)
    yield from _lines("spec.extraConf", obj.spec.extra_conf)


def _release(name: str, container: Json) -> Iterator[Problem]:
    """An image of a Slurm release that is not supported, as far as its tag has one."""
    version = of_image(str(container.get("image") or ""))
    if version is not None and (why := unsupported(version)):
        yield Problem(f"spec.{name}.image", why)


def _state(new: Controller, old: Controller) -> Iterator[Problem]:
    """A slurmctld that could not read its state."""
    image = str(new.spec.slurmctld.get("image") or "")
    if image == str(old.spec.slurmctld.get("image") or "") or new.spec.external:
        return
    state = parse(old.status.state_version)
    why = release_problem(of_image(image), state, persistent=new.spec.persistent)
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
