"""Chains of declarations on a stage: each is declared, looked at, and taken back at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from declarations import effects, samples
from declarations.check import asks
from declarations.values import Case, Verdict
from penstock.api.cluster.marks import (
    CONFIG_CANDIDATE,
    CONFIG_LIVE,
    CONFIG_REFRESH,
    CONFIG_RESTART,
    CORDONED_FOR,
)
from penstock.api.kubernetes.meta import Json
from support.stage import Observed, RestlessError, Stage
from support.verdicts import by_rule

MARKS = frozenset({CORDONED_FOR, CONFIG_CANDIDATE, CONFIG_LIVE, CONFIG_REFRESH, CONFIG_RESTART})
"""Annotations of pods that mark the progress of a change, and stay when it is done."""

MOST_WRITES = 60
"""After one declaration. The most that one takes is a new pod for each workload."""


KUBERNETES_DEFAULTS = {"terminationMessagePolicy": "File", "type": "RollingUpdate"}
"""What the API server writes of itself where nothing is asked for."""


@dataclass
class Account:
    """What was tried and what came of it."""

    tried: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    findings: list[str] = field(default_factory=list[str])
    writes: int = 0
    most: int = 0

    def count(self, kind: str, what: str) -> None:
        self.tried[kind, what] += 1


class Play:
    """Plays chains on one stage."""

    def __init__(self, stage: Stage, account: Account, logs: Sequence[Mapping[str, Any]]) -> None:
        self._stage = stage
        self._account = account
        self._logs = logs
        self._base = Observed({}, {})

    async def begin(self) -> None:
        """Build the stage and remember what it is like."""
        await self._stage.build()
        await self._stage.rest()
        self._base = self._stage.seen()

    async def chain(self, kind: str, cases: Iterable[Case]) -> None:
        """Declare one after the other; then the first state again, which must come back whole."""
        names: list[str] = []
        for case in cases:
            names.append(case.name)
            try:
                await self._step(case)
            except RestlessError as error:
                self._find(case.name, str(error))
        await self._revert(kind, " | ".join(names))

    async def _step(self, case: Case) -> None:
        stage = self._stage
        before, writes, logged = stage.seen(), stage.writes(), len(self._logs)
        self._account.count(case.kind, "declared")
        words = await stage.declare(case.kind, case.spec)
        if words:
            self._account.count(case.kind, "refused")
            if case.verdict is Verdict.TAKEN and not by_rule(case.kind, words):
                self._find(case.name, f"refused: {words}")
            if stage.seen() != before:
                self._find(case.name, "refused, and something changed all the same")
            return
        self._account.count(case.kind, "taken")
        if case.verdict is Verdict.REFUSED:
            self._find(case.name, "should be refused")
        await stage.rest()
        self._bounded(case.name, writes)
        self._crashes(case.name, logged)
        await self._judge(case, before)

    async def _judge(self, case: Case, before: Observed) -> None:
        after, told = self._stage.seen(), self._stage.conditions(case.kind)
        ready = told.get("Ready")
        if ready is None or not ready.reason:
            self._find(case.name, "no condition")
            return
        if "Stalled" in told:
            self._account.count(case.kind, "stalled")
            if not ready.message:
                self._find(case.name, f"{ready.reason} without words")
            gone = {name for name, uid in before.pods.items() if after.pods.get(name) != uid}
            if ready.reason in ("Invalid", "Refused") and gone & set(self._base.pods):
                # A pod of a former step may go; what ran from the start may not.
                self._find(case.name, f"{ready.reason}, and pods were replaced: {sorted(gone)}")
            return
        if case.what == "misshapen":
            self._account.count(case.kind, "taken as it is")
        if not asks(case) or case.value == KUBERNETES_DEFAULTS.get(case.path[-1]):
            return
        served = told.get("Served")
        said = served is not None and effects.reported(served.message, case.path)
        acts = effects.of(case.kind, case.path) is not None
        if not said and not acts:
            await self._stage.eventually(lambda: self._answered(case.kind))
            if not self._answered(case.kind):
                self._find(case.name, "accepted and silently ignored")

    async def _revert(self, kind: str, name: str) -> None:
        stage = self._stage
        writes, logged = stage.writes(), len(self._logs)
        words = await stage.declare(kind, samples.BASE[kind])
        if words:
            self._find(name, f"the revert is refused: {words}")
            return
        try:
            await stage.rest()
            await stage.well(kind)
        except RestlessError as error:
            self._find(name, f"after the revert: {error}")
            return
        self._account.count(kind, "reverted")
        self._bounded(f"revert of {name}", writes)
        self._crashes(f"revert of {name}", logged)
        await stage.eventually(lambda: self._changed(stage.seen()) == [])
        after = stage.seen()
        for key in self._changed(after):
            one, other = _kept(self._base.objects.get(key)), _kept(after.objects.get(key))
            self._find(name, f"not as before after the revert: {key}: {differs(one, other)}")
        self._base = after

    def _answered(self, kind: str) -> bool:
        """Whether objects of the declaration exist, or Slurm's rejection is reported."""
        ready = self._stage.conditions(kind).get("Ready")
        refused = ready is not None and ready.reason.endswith("Refused") and bool(ready.message)
        return refused or self._stage.seen().objects != self._base.objects

    def _changed(self, now: Observed) -> list[str]:
        """Names of the objects that are not as at first."""
        first = self._base.objects
        return [
            key
            for key in sorted(first.keys() | now.objects.keys())
            if _kept(first.get(key)) != _kept(now.objects.get(key))
        ]

    def _bounded(self, name: str, before: int) -> None:
        count = self._stage.writes() - before
        self._account.writes += count
        self._account.most = max(self._account.most, count)
        if count > MOST_WRITES:
            self._find(name, f"{count} writes")

    def _crashes(self, name: str, before: int) -> None:
        for entry in self._logs[before:]:
            mine = str(entry.get("key", "")).startswith(f"{self._stage.namespace}/")
            if mine and entry.get("log_level") == "error":
                self._find(name, f"the operator fails: {entry.get('exc_info')!r}")

    def _find(self, name: str, what: str) -> None:
        self._account.findings.append(f"{name}: {what}")


def _kept(one: Json | None) -> Json | None:
    """An object without what Kubernetes itself does not take back.

    The number of a revision only grows; a Service keeps its `ipFamilyPolicy` when the field is not
    applied any more.
    """
    if one is None:
        return None
    kept = {key: value for key, value in one.items() if key != "revision"}
    notes = {k: v for k, v in kept["metadata"].get("annotations", {}).items() if k not in MARKS}
    kept["metadata"] = {**kept["metadata"], "annotations": notes}
    if kept["kind"] == "Service":
        kept["spec"] = {k: v for k, v in kept["spec"].items() if k != "ipFamilyPolicy"}
    return kept


def differs(one: Json | None, other: Json | None, path: str = "") -> str:
    """The first path at which two objects differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted(one.keys() | other.keys()):
            if one.get(key) != other.get(key):
                return differs(one.get(key), other.get(key), f"{path}.{key}")
    lines = [str(each).splitlines() for each in (one, other)]
    new = [line for line in lines[1] if line not in lines[0]][:3]
    old = [line for line in lines[0] if line not in lines[1]][:3]
    return f"{path}: {' / '.join(old)[:200]} became {' / '.join(new)[:200]}"
