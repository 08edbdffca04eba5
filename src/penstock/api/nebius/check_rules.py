"""Faults of an ActiveCheck beyond its schema, by itself and beside the other checks.

Source of limits: Kubernetes documentation, "CronJob" (names of 52 characters) and "Object Names and
IDs" (labels of 63).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from penstock.api.admission import Problem, RelatedObjects
from penstock.api.kubernetes.cron_schedule import schedule_problem
from penstock.api.nebius.active_check import ActiveCheck, CheckContainer, Reactions
from penstock.api.nebius.names import initial_run
from penstock.api.nebius.rule_parts import ABSENT, duplicates, pod_fields
from penstock.api.nebius.size_rules import size_problems

LONGEST_CRON_JOB: Final = 52
LONGEST_LABEL: Final = 63
_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_LONGEST_PREFIX: Final = 100
_RESERVATION: Final = re.compile(rf"[A-Za-z0-9][-_.A-Za-z0-9]{{0,{_LONGEST_PREFIX - 1}}}")
_RECHECKS: Final = "activecheck."
"""Begin of the reservations that `decide.check.recheck` ends."""
_NO_CHECK: Final = ActiveCheck().spec
_RESERVED: Final = "munge"


def active_check_problems(obj: ActiveCheck) -> Iterator[Problem]:
    """Faults of an ActiveCheck."""
    spec = obj.spec
    if spec == _NO_CHECK:
        yield Problem("spec", ABSENT)
        return
    if sizes := list(size_problems(spec)):
        yield from sizes
        return
    yield from _names(obj)
    if wrong := schedule_problem(spec.schedule):
        yield Problem("spec.schedule", wrong)
    if spec.active_deadline_seconds < 1:
        yield Problem(
            "spec.activeDeadlineSeconds", f"is {spec.active_deadline_seconds}: write at least 1"
        )
    for path, limit in (
        ("spec.successfulJobsHistoryLimit", spec.successful_jobs_history_limit),
        ("spec.failedJobsHistoryLimit", spec.failed_jobs_history_limit),
    ):
        if limit < 0:
            yield Problem(path, f"is {limit}: write 0 or more")
    if spec.check_type == "k8sJob":
        yield from _kubernetes_job(obj)
    else:
        yield from _slurm_job(obj)
    for path, given in (
        ("spec.failureReactions", spec.failure_reactions),
        ("spec.successReactions", spec.success_reactions),
    ):
        yield from _reactions(path, given)
    yield from pod_fields("spec", {"affinity": spec.affinity, "tolerations": spec.tolerations})
    yield from duplicates("spec.dependsOn", spec.depends_on)
    if obj.metadata.name in spec.depends_on:
        yield Problem("spec.dependsOn", "names this check itself: it would never start")


def active_check_advice(obj: ActiveCheck) -> Iterator[str]:
    """Limits with which results may be lost: they are kept in the Jobs."""
    for path, limit in (
        ("spec.successfulJobsHistoryLimit", obj.spec.successful_jobs_history_limit),
        ("spec.failedJobsHistoryLimit", obj.spec.failed_jobs_history_limit),
    ):
        if limit == 0 and obj.spec.check_type == "slurmJob":
            yield f"{path}: with 0 the results of Slurm jobs may go with their Job"


def active_check_conflicts(obj: ActiveCheck, related: RelatedObjects) -> Iterator[Problem]:
    """A circle of checks, none of which would start, and a name of two of them."""
    others = related.of(ActiveCheck)
    depends = {one.metadata.name: one.spec.depends_on for one in others}
    if circle := _circle(obj.metadata.name, {**depends, obj.metadata.name: obj.spec.depends_on}):
        yield Problem(
            "spec.dependsOn",
            f"is a circle, so none of these checks would start: {' -> '.join(circle)}",
        )
    for one in others:
        if one.spec.name == obj.spec.name:
            yield Problem(
                "spec.name",
                f"{obj.spec.name!r} is that of ActiveCheck {one.metadata.name} too: their Jobs "
                "would have one name",
            )


def _circle(start: str, depends: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """The shortest way from a check through its dependencies back to it; empty without one."""
    if start in depends.get(start, ()):
        return ()
    ways: list[tuple[str, ...]] = [(start,)]
    seen = {start}
    while ways:
        way = ways.pop(0)
        for name in depends.get(way[-1], ()):
            if name == start:
                return (*way, start)
            if name not in seen:
                seen.add(name)
                ways.append((*way, name))
    return ()


def _names(obj: ActiveCheck) -> Iterator[Problem]:
    name, given = obj.metadata.name, obj.spec.name
    if len(name) > LONGEST_CRON_JOB:
        yield Problem(
            "metadata.name",
            f"has {len(name)} characters and a CronJob takes {LONGEST_CRON_JOB}: choose a shorter "
            "name",
        )
    longest = LONGEST_LABEL - len(initial_run(""))
    if not _LABEL.fullmatch(given) or len(given) > longest:
        yield Problem(
            "spec.name",
            f"{given[:60]!r} names the container and the Job: write small letters, digits and -, "
            f"at most {longest} characters",
        )
    elif given == _RESERVED:
        yield Problem("spec.name", f"{given!r} is a container of the operator's")
    if not obj.spec.slurm_cluster_ref_name:
        yield Problem("spec.slurmClusterRefName", ABSENT)


def _kubernetes_job(obj: ActiveCheck) -> Iterator[Problem]:
    given = obj.spec.k8s_job_spec
    if given is None:
        yield Problem("spec.k8sJobSpec", f"{ABSENT} for checkType k8sJob")
        return
    if not given.job_container.image:
        yield Problem("spec.k8sJobSpec.jobContainer.image", ABSENT)
    yield from _container("spec.k8sJobSpec.jobContainer", given.job_container)


def _slurm_job(obj: ActiveCheck) -> Iterator[Problem]:
    given = obj.spec.slurm_job_spec
    if given is None:
        yield Problem("spec.slurmJobSpec", f"{ABSENT} for checkType slurmJob")
        return
    if not given.sbatch_script and not given.sbatch_script_ref_name:
        yield Problem(
            "spec.slurmJobSpec", "write sbatchScript, or name a ConfigMap in sbatchScriptRefName"
        )
    if given.sbatch_script and not given.sbatch_script.startswith("#!"):
        yield Problem(
            "spec.slurmJobSpec.sbatchScript",
            "does not begin with #!, so sbatch rejects it: begin with #!/bin/bash",
        )
    if given.max_number_of_jobs < 0:
        yield Problem(
            "spec.slurmJobSpec.maxNumberOfJobs",
            f"is {given.max_number_of_jobs}: write 0 for any number, or more",
        )
    yield from _container("spec.slurmJobSpec.jobContainer", given.job_container)


def _container(path: str, given: CheckContainer) -> Iterator[Problem]:
    for field, found in (("env", given.env), ("volumes", given.volumes)):
        for index, one in enumerate(found):
            if not one.get("name"):
                yield Problem(f"{path}.{field}[{index}].name", ABSENT)
    for index, one in enumerate(given.volume_mounts):
        for field in ("name", "mountPath"):
            if not one.get(field):
                yield Problem(f"{path}.volumeMounts[{index}].{field}", ABSENT)


def _reactions(path: str, given: Reactions | None) -> Iterator[Problem]:
    if given is None:
        return
    drain, comment = given.drain_slurm_node, given.comment_slurm_node
    for field, noun, prefix in (
        ("drainSlurmNode.drainReasonPrefix", "reason", drain and drain.drain_reason_prefix),
        ("commentSlurmNode.commentPrefix", "comment", comment and comment.comment_prefix),
    ):
        if prefix and (len(prefix) > _LONGEST_PREFIX or not prefix.isprintable()):
            yield Problem(
                f"{path}.{field}",
                f"begins a {noun} of Slurm: write at most {_LONGEST_PREFIX} printable characters",
            )
    for field, one in (
        ("addReservation", given.add_reservation),
        ("removeReservation", given.remove_reservation),
    ):
        if one is None or not one.prefix:
            continue
        if not _RESERVATION.fullmatch(one.prefix) or one.prefix.startswith(_RECHECKS):
            yield Problem(
                f"{path}.{field}.prefix",
                f"{one.prefix[:60]!r} begins the name of a reservation: write at most "
                f"{_LONGEST_PREFIX} letters, digits, -, _ and dots, not {_RECHECKS} first",
            )
