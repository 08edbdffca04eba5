"""The operator with one guard switched off: what the plans must notice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from penstock.api.core import Pod
from penstock.api.meta import Json
from penstock.api.resource import Resource
from penstock.api.slinky.nodeset import NodeSet
from penstock.controllers import act
from penstock.decide import drain_reason, guard, nodeset, remake, rollout
from penstock.decide.action import Ground
from penstock.decide.guard import Verdict
from penstock.decide.slurm_view import SlurmView
from penstock.kube import Applied, Applier, Client
from penstock.slurm.mirror import Mirror
from penstock.slurm.snapshot import Snapshot

Mutation = Callable[[pytest.MonkeyPatch], None]
real = guard.may_delete


def _judge(patch: pytest.MonkeyPatch, blind_to: frozenset[str]) -> None:
    def judge(pod: Pod, slurm: SlurmView, *, abandoned: bool = False) -> Verdict:
        verdict = real(pod, slurm, abandoned=abandoned)
        if verdict.why.reason in blind_to:
            return Verdict(Ground.DRAINED, verdict.why)
        return verdict

    for module in (act, nodeset, remake):
        patch.setattr(module, "may_delete", judge)


def unknown_counts_as_drained(patch: pytest.MonkeyPatch) -> None:
    """Silence of Slurm is taken for consent."""
    _judge(patch, frozenset({"SlurmUnknown"}))


def jobs_are_not_looked_at(patch: pytest.MonkeyPatch) -> None:
    """Only the node's state counts, which is IDLE under a suspended job."""
    _judge(patch, frozenset({"JobsRunning"}))


def drain_is_not_waited_for(patch: pytest.MonkeyPatch) -> None:
    """An idle node counts as a drained one."""
    _judge(patch, frozenset({"NotDrained"}))


def deletes_name_no_uid(patch: pytest.MonkeyPatch) -> None:
    """Whatever pod has the name now is deleted, in whatever state."""
    delete = Client.delete

    async def bare(self: Client, *args: Any, **kwargs: Any) -> None:
        await delete(self, *args, **{**kwargs, "uid": None, "resource_version": None})

    patch.setattr(Client, "delete", bare)


def slurm_is_not_asked_again(patch: pytest.MonkeyPatch) -> None:
    """The last answer, however old, serves as a fresh one."""

    async def last(self: Mirror) -> Snapshot:
        return self.snapshot

    patch.setattr(Mirror, "fresh", last)


def every_drain_is_ours(patch: pytest.MonkeyPatch) -> None:
    """Drains of others are undone and reworded."""

    def ours(_: str) -> bool:
        return True

    patch.setattr(drain_reason, "is_ours", ours)


def edits_are_left(patch: pytest.MonkeyPatch) -> None:
    """What is there is taken to be as it should be."""
    ensure = Applier.ensure

    async def once(
        self: Applier, resource: Resource[Any], manifest: Json, live: Json | None
    ) -> Applied:
        if live is not None:
            return Applied("unchanged", live)
        return await ensure(self, resource, manifest, live)

    patch.setattr(Applier, "ensure", once)


def budget_is_dropped(patch: pytest.MonkeyPatch) -> None:
    """An update takes all pods at once."""

    def all_of_them(_: NodeSet) -> int:
        return 99

    patch.setattr(rollout, "max_unavailable", all_of_them)


def gone_pods_are_not_counted(patch: pytest.MonkeyPatch) -> None:
    """An update goes on while a pod is terminating or not made again."""

    def none(*_: object) -> int:
        return 0

    patch.setattr(rollout, "absent", none)


MUTATIONS: tuple[Mutation, ...] = (
    unknown_counts_as_drained,
    jobs_are_not_looked_at,
    drain_is_not_waited_for,
    deletes_name_no_uid,
    slurm_is_not_asked_again,
    every_drain_is_ours,
    edits_are_left,
    budget_is_dropped,
    gone_pods_are_not_counted,
)
