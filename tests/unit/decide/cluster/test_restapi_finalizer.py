"""slurmrestd of an external slurmctld is there as long as a deleted NodeSet has to send to it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from penstock.api.cluster.external_slurm import ExternalSlurm
from penstock.base import times
from penstock.decide.cluster.restapi_finalizer import AGAIN_S, GRACE_S, needed_for
from penstock.model.worker_set import WorkerSet
from penstock.translate.slinky.worker_set import worker_set
from support import nodesets
from support.nodesets import NOW

EXTERNAL = ExternalSlurm(rest_api_url="http://r", jwt_secret="s", jwt_secret_key="k")


def workers(
    *, deleted: bool, external: ExternalSlurm | None = EXTERNAL, finalized: bool = True
) -> WorkerSet:
    made = nodesets.nodeset(deleted=NOW if deleted else None)
    meta = made.metadata if finalized else replace(made.metadata, finalizers=())
    status = replace(made.status, external_slurm=external)
    return worker_set(replace(made, metadata=meta, status=status))


@pytest.mark.parametrize("pods", [2, 0])
def test_it_is_kept_until_a_deleted_node_set_is_gone_with_its_records(pods: int) -> None:
    found = needed_for(times.write(NOW), [(workers(deleted=True), pods)], NOW + 1000)
    assert found == (AGAIN_S, "compute")


def test_a_node_set_that_another_finalizer_keeps_needs_it_no_more() -> None:
    gone = workers(deleted=True, finalized=False)
    assert needed_for(times.write(NOW), [(gone, 0)], NOW + 1) is None


def test_workers_that_stay_keep_it_for_a_moment_only() -> None:
    declared = [(workers(deleted=False), 1)]
    assert needed_for(times.write(NOW), declared, NOW + 1) == (GRACE_S - 1, "")
    assert needed_for(times.write(NOW), declared, NOW + GRACE_S) is None


def test_a_slurmctld_of_ours_needs_nobody() -> None:
    inside = [(workers(deleted=True, external=None), 1)]
    assert needed_for(times.write(NOW), inside, NOW + 1) is None
