"""From an ActiveCheck to what decisions about it read."""

from __future__ import annotations

from penstock.api.nebius.active_check import ActiveCheck, Reactions
from penstock.decide.check.gate import Before
from penstock.decide.check.reaction import CheckPolicy, Marks


def policy(check: ActiveCheck) -> CheckPolicy:
    """How its results change Slurm nodes."""
    spec = check.spec
    if spec.check_type != "slurmJob":
        return CheckPolicy(check.metadata.name)
    return CheckPolicy(
        check.metadata.name,
        _prefix(spec.failure_reactions),
        _prefix(spec.success_reactions),
        _marks(spec.failure_reactions),
        _marks(spec.success_reactions),
    )


def before(name: str, check: ActiveCheck | None) -> Before:
    """A check that another one depends on, by name."""
    if check is None:
        return Before(name, exists=False)
    status = check.status
    if check.spec.check_type == "slurmJob":
        found = status.slurm_jobs_status.last_run_status if status.slurm_jobs_status else ""
    else:
        found = status.k8s_jobs_status.last_job_status if status.k8s_jobs_status else ""
    return Before(name, runs_at_creation=check.spec.run_after_creation, result=found)


def _prefix(given: Reactions | None) -> str:
    """The prefix of a drain; without one there is no drain, as in the original."""
    if given is None or given.drain_slurm_node is None:
        return ""
    return given.drain_slurm_node.drain_reason_prefix.strip()


def _marks(given: Reactions | None) -> Marks:
    """The other reactions, of which each needs a prefix too."""
    if given is None:
        return Marks()
    comment, add, remove = (
        given.comment_slurm_node,
        given.add_reservation,
        given.remove_reservation,
    )
    return Marks(
        comment.comment_prefix.strip() if comment is not None else "",
        add.prefix if add is not None else "",
        remove.prefix if remove is not None else "",
    )
