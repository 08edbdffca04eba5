"""What a user is told of partitions that stay for their jobs."""

from __future__ import annotations

from penstock.decide.partition.retention import DRAINING, finding
from penstock.slurm.known import Unknown

NOBODY = Unknown("no RestApi refers to Controller slurm")


def test_without_a_restapi_the_next_step_is_to_create_one() -> None:
    told = finding({"gpu"}, NOBODY, {}, restapi=False)
    assert told is not None
    assert (told.type, told.ok, told.reason) == (DRAINING, True, "JobsUnknown")
    assert "Partition gpu is removed from the declaration and stays, drained" in told.message
    assert (
        "no RestApi lists its jobs. Create one; you may delete it once the partition is gone"
        in told.message
    )


def test_with_a_restapi_that_does_not_answer_its_reason_is_told() -> None:
    told = finding({"gpu"}, Unknown("connection refused"), {})
    assert told is not None
    assert told.reason == "JobsUnknown"
    assert "jobs are not known: connection refused" in told.message
    assert "Create a RestApi" not in told.message
