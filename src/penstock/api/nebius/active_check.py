"""ActiveCheck: a check of a SlurmCluster that runs as a Kubernetes Job or as Slurm jobs."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import field

from penstock.api.kubernetes.meta import Json, KubeObject, KubeStruct
from penstock.api.kubernetes.resource import Resource
from penstock.api.kubernetes.schema import (
    AGE,
    DATE_TIME,
    INT32,
    INT64,
    OPAQUE,
    UNSTORED,
    Column,
    KindInfo,
    about,
)
from penstock.api.nebius.common import (
    GROUP,
    UNCONFINED,
    VERSION,
    Affinity,
    AppArmorProfile,
    Env,
    HostUsers,
    ImagePullPolicy,
    NodeSelector,
    PullSecrets,
    Tolerations,
    Words,
)
from penstock.api.nebius.timed_condition import TimedStatus

_Time = Annotated[str, about("A time.", DATE_TIME)]
_Names = tuple[Annotated[str, about("One of them.")], ...]


class CheckContainer(KubeStruct, frozen=True):
    """A container of a check."""

    image: Annotated[str, about("The image.")] = ""
    image_pull_policy: ImagePullPolicy = "IfNotPresent"
    image_pull_secrets: PullSecrets = ()
    command: Annotated[Words, about("Command instead of the image's entrypoint.")] = ()
    args: Annotated[Words, about("Arguments of the command.")] = ()
    working_dir: Annotated[str, about("Working directory.")] = ""
    env: Env = ()
    volumes: Annotated[
        tuple[Annotated[Json, about("A Kubernetes Volume.", OPAQUE)], ...],
        about("Volumes of the pod."),
    ] = ()
    volume_mounts: Annotated[
        tuple[Annotated[Json, about("A Kubernetes VolumeMount.", OPAQUE)], ...],
        about("Mounts of the container."),
    ] = ()
    app_armor_profile: AppArmorProfile = UNCONFINED


class K8sJobSpec(KubeStruct, frozen=True):
    """A check in a Kubernetes Job."""

    job_container: Annotated[CheckContainer, about("The container of the check.")] = (
        CheckContainer()
    )
    munge_container: Annotated[CheckContainer | None, about("The munge container.")] = None
    script_ref_name: Annotated[str, about("ConfigMap with script.sh.")] = ""


class SlurmJobSpec(KubeStruct, frozen=True):
    """A check in Slurm jobs."""

    job_container: Annotated[CheckContainer, about("The container that submits.")] = (
        CheckContainer()
    )
    munge_container: Annotated[CheckContainer, about("The munge container.")] = CheckContainer()
    sbatch_script: Annotated[str, about("The script.")] = ""
    sbatch_script_ref_name: Annotated[str, about("ConfigMap with sbatch.sh.")] = ""
    each_worker_jobs: Annotated[bool, about("Whether each worker has a job of its own.")] = False
    each_worker_job_array: Annotated[
        bool, about("The same by a job array, up to version 1.22.", UNSTORED)
    ] = False
    max_number_of_jobs: Annotated[int, about("Most jobs at a time; 0 for any.", INT64)] = 0


class Drain(KubeStruct, frozen=True):
    """Drain the Slurm nodes of the job."""

    drain_reason_prefix: Annotated[str, about("Begin of the reason.")] = ""


class Comment(KubeStruct, frozen=True):
    """Comment the Slurm nodes of the job."""

    comment_prefix: Annotated[str, about("Begin of the comment.")] = ""


class ReservationReaction(KubeStruct, frozen=True):
    """Reserve the Slurm nodes of the job, or end that."""

    prefix: Annotated[str, about("Begin of the reservation's name.")] = ""


class Reactions(KubeStruct, frozen=True):
    """What follows a result. A reaction without fields is on as well."""

    drain_slurm_node: Annotated[Drain | None, about("Drain the Slurm nodes.")] = None
    comment_slurm_node: Annotated[Comment | None, about("Comment the Slurm nodes.")] = None
    add_reservation: Annotated[
        ReservationReaction | None, about("Reserve the Slurm nodes, up to version 4.1.")
    ] = None
    remove_reservation: Annotated[
        ReservationReaction | None, about("Delete the reservation, up to version 4.1.")
    ] = None


class OlderReactions(KubeStruct, frozen=True):
    """What follows a failure, up to version 1.22."""

    drain_slurm_node: Annotated[bool | None, about("Drain the Slurm node.")] = None
    drain_slurm_node_1_20: Annotated[bool | None, about("The same in version 1.20.")] = field(
        default=None, name="DrainSlurmNode"
    )
    comment_slurm_node: Annotated[bool | None, about("Comment the Slurm node.")] = None
    set_condition: Annotated[bool | None, about("Set a condition of the Kubernetes node.")] = None


class ActiveCheckSpec(KubeStruct, frozen=True, kw_only=True):
    """What a check should do."""

    name: Annotated[str, about("Name of the container and of the Job.")]
    slurm_cluster_ref_name: Annotated[str, about("SlurmCluster of the same namespace.")]
    check_type: Annotated[
        Literal["k8sJob", "slurmJob"], about("Which of the two specs is used.")
    ] = "k8sJob"
    depends_on: Annotated[_Names, about("ActiveChecks that must be complete before.")] = ()
    schedule: Annotated[str, about("Schedule of the CronJob.")] = "0 0 1 1 *"
    suspend: Annotated[bool, about("Whether the schedule is off.")] = True
    run_after_creation: Annotated[bool, about("Whether the check runs once at the start.")] = True
    active_deadline_seconds: Annotated[int, about("Time limit of the Job.", INT64)] = 1800
    successful_jobs_history_limit: Annotated[int, about("Finished Jobs to keep.", INT32)] = 3
    failed_jobs_history_limit: Annotated[int, about("Failed Jobs to keep.", INT32)] = 16
    node_selector: NodeSelector = None
    affinity: Affinity = None
    tolerations: Tolerations = ()
    host_users: HostUsers = None
    pod_template_name_ref: Annotated[str, about("A PodTemplate that is merged over the pod.")] = ""
    k8s_job_spec: Annotated[K8sJobSpec | None, about("For checkType k8sJob.")] = None
    slurm_job_spec: Annotated[SlurmJobSpec | None, about("For checkType slurmJob.")] = None
    success_reactions: Annotated[Reactions | None, about("What follows a success.")] = None
    failure_reactions: Annotated[Reactions | None, about("What follows a failure.")] = None
    reactions: Annotated[
        OlderReactions | None, about("What follows a failure, up to version 1.22.")
    ] = None


class JobReason(KubeStruct, frozen=True):
    """A Slurm job that failed, and why."""

    job_id: Annotated[str, about("Id of the job.")] = field(name="jobID")
    reason: Annotated[str, about("Why it failed.")]


_Reasons = tuple[Annotated[JobReason, about("One job.")], ...]


class K8sJobsStatus(KubeStruct, frozen=True, kw_only=True):
    """The last Kubernetes Job."""

    last_job_name: Annotated[str, about("Name of the Job.")]
    last_job_status: Annotated[
        str, about("Active, Pending, Complete, Failed, Suspended or Unknown.")
    ]
    last_job_schedule_time: Annotated[_Time, about("When the CronJob scheduled it.")] = ""
    last_job_successful_time: Annotated[_Time, about("When one succeeded last.")] = ""
    last_transition_time: Annotated[_Time, about("When the status changed.")] = ""


class SlurmJobsStatus(KubeStruct, frozen=True):
    """The Slurm jobs of the last run."""

    last_run_id: Annotated[str, about("Ids of the jobs, by commas.")] = ""
    last_run_name: Annotated[str, about("Name of the jobs.")] = ""
    last_run_status: Annotated[
        str, about("InProgress, Complete, Failed, Cancelled, Error or Skipped.")
    ] = ""
    last_run_submit_time: Annotated[_Time, about("When they were submitted.")] = ""
    last_run_fail_jobs_and_reasons: Annotated[_Reasons, about("Jobs that failed.")] = ()
    last_run_error_jobs_and_reasons: Annotated[_Reasons, about("Jobs that did not run.")] = ()
    last_run_cancelled_jobs: Annotated[_Names, about("Jobs that were cancelled.")] = ()
    last_transition_time: Annotated[_Time, about("When the status changed.")] = ""
    last_job_id: Annotated[int | str, about("Up to version 1.22.")] = ""
    last_job_name: Annotated[str, about("Up to version 1.22.")] = ""
    last_job_state: Annotated[str, about("Up to version 1.22.")] = ""
    last_job_state_reason: Annotated[str, about("In version 1.20.")] = ""
    last_job_fail_reasons: Annotated[_Names, about("Up to version 1.22.")] = ()
    last_job_submit_time: Annotated[_Time, about("Up to version 1.22.")] = ""
    last_job_start_time: Annotated[_Time, about("In version 1.20.")] = ""
    last_job_end_time: Annotated[_Time, about("Up to version 1.22.")] = ""


class ActiveCheckStatus(TimedStatus, frozen=True):
    """Results of a check."""

    k8s_jobs_status: Annotated[K8sJobsStatus | None, about("The last Kubernetes Job.")] = None
    slurm_jobs_status: Annotated[SlurmJobsStatus | None, about("The last Slurm jobs.")] = None


class ActiveCheck(KubeObject, frozen=True):
    """A check of a SlurmCluster."""

    spec: Annotated[ActiveCheckSpec, about("What the check should do.")] = ActiveCheckSpec(
        name="", slurm_cluster_ref_name=""
    )
    status: Annotated[ActiveCheckStatus, about("Its results.")] = ActiveCheckStatus()


ACTIVE_CHECKS = Resource(GROUP, VERSION, "ActiveCheck", "activechecks", ActiveCheck, optional=True)
INFO = KindInfo(
    ACTIVE_CHECKS,
    (),
    (
        Column("Type", ".spec.checkType"),
        Column("Init", ".spec.runAfterCreation", "boolean"),
        Column("Suspend", ".spec.suspend", "boolean"),
        Column("Schedule", ".spec.schedule"),
        Column("K8s Status", ".status.k8sJobsStatus.lastJobStatus"),
        Column("Slurm Status", ".status.slurmJobsStatus.lastRunStatus"),
        Column("Slurm Submit Time", ".status.slurmJobsStatus.lastRunSubmitTime"),
        Column("Slurm ID", ".status.slurmJobsStatus.lastRunId"),
        Column("Age", AGE.path, "date"),
    ),
)
