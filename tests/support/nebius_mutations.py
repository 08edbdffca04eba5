"""The operator with one guard of SlurmClusters switched off: what their plans must notice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from penstock.controllers.nebius import jail
from penstock.controllers.nebius.worker_source import ClusterWorkers
from penstock.decide.jail.populate import PopulateStep, PopulateView, next_step
from penstock.decide.observed.view import ControllerState
from penstock.translate.nebius import worker_set


def clusters_go_before_their_workers(patch: pytest.MonkeyPatch) -> None:
    """A deleted SlurmCluster counts as gone with its slurmctld, so nobody waits for jobs."""

    def state(self: ClusterWorkers) -> ControllerState:
        deleting = self.object.metadata.deleting
        return ControllerState.DELETING if deleting else ControllerState.PRESENT

    patch.setattr(ClusterWorkers, "cluster_state", state)


def templates_of_an_older_spec_count_as_equal(patch: pytest.MonkeyPatch) -> None:
    """The revision of the last status counts as that of the present spec."""
    real = worker_set.last_status

    def of_now(*args: Any, **kwargs: Any) -> Any:
        return replace(real(*args, **kwargs), is_revision_of_spec=True)

    patch.setattr(worker_set, "last_status", of_now)


def jails_in_use_are_overwritten(patch: pytest.MonkeyPatch) -> None:
    """Nobody asks which pods use a jail before a Job replaces its files."""

    def without_users(view: PopulateView) -> PopulateStep:
        return next_step(replace(view, users=()))

    patch.setattr(jail, "next_step", without_users)


OF_NEBIUS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    one.__name__: one
    for one in (
        clusters_go_before_their_workers,
        templates_of_an_older_spec_count_as_equal,
    )
}
