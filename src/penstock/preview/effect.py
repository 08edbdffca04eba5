"""The parts of what a change would do, in the words of no API."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from penstock.api.kubernetes.kinds import Pod
from penstock.preview.state import Key
from penstock.slurm.conf.apply_method import Plan


class How(Enum):
    """Who restarts a pod."""

    OPERATOR = "the operator restarts it"
    TEMPLATE = "its template changes"
    ROTATION = "it is replaced in the course of a key rotation"
    ENDS = "it ends for good"
    YOURS = "nobody restarts it but the user"


@dataclass(frozen=True, slots=True)
class Restart:
    """Pods of one daemon that restart, or are to be restarted, for the same reason.

    `of` is the object that creates them, as `Kind namespace/name`. `why` are paths of the template
    or keys of Slurm's configuration, `cure` is how the user restarts them. With `loses_state`
    slurmctld's state, with all jobs, is in the pod.
    """

    how: How
    namespace: str
    pods: tuple[str, ...]
    daemon: str
    of: str
    why: tuple[str, ...] = ()
    cure: str = ""
    loses_state: bool = False

    @property
    def by_itself(self) -> bool:
        """Whether it happens without the user."""
        return self.how is not How.YOURS


@dataclass(frozen=True, slots=True)
class Touched:
    """An object that is created, updated or deleted; `paths` are what changes in it."""

    verb: str
    kind: str
    key: Key
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Files:
    """A cluster whose configuration changes, and what that needs."""

    key: Key
    plan: Plan
    ours: Plan
    """The part in files that the operator writes: for those of the user's it restarts nothing."""


@dataclass(frozen=True, slots=True)
class Workload:
    """A StatefulSet or Deployment whose pods are replaced, since their template changes."""

    kind: str
    key: Key
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WorkerPods:
    """The workers that one object declares, as they are after the run.

    `cluster` is the key of their cluster, `hashes` has that of the template of each pod by name,
    `current` those that need no new pod.
    """

    key: Key
    cluster: str
    pods: tuple[Pod, ...]
    hashes: Mapping[str, str | None]
    current: frozenset[str]
    strategy: str


@dataclass(frozen=True, slots=True)
class Workers:
    """What happens to the pods of a NodeSet, or of a SlurmCluster's own workers.

    `deleted` are deleted at once, since their Slurm nodes are drained and empty; `drained` are
    deleted when their jobs have ended, `jobs` by pod; `outdated` have an older template than the
    declared one and stay (`strategy` is the update strategy).
    """

    key: Key
    created: tuple[str, ...]
    deleted: tuple[str, ...]
    drained: tuple[str, ...]
    outdated: tuple[str, ...]
    strategy: str
    changed: tuple[str, ...]
    """Those whose Slurm nodes get other features, weight or GRES, and nothing else happens."""
    jobs: Mapping[str, tuple[int, ...]]
    """Job ids by pod, of those that are named above; empty when Slurm is not known."""

    @property
    def happens(self) -> bool:
        """Whether any pod is concerned."""
        gone = self.deleted or self.drained or self.outdated
        return bool(self.created or gone or self.changed)


@dataclass(frozen=True, slots=True)
class Effects:
    """Everything that a change would do."""

    objects: tuple[Touched, ...]
    files: tuple[Files, ...]
    workloads: tuple[Workload, ...]
    workers: tuple[Workers, ...]
    restarts: tuple[Restart, ...]
    unknown: tuple[str, ...]
    """Clusters whose Slurm could not be asked, and why; their jobs are unknown."""
    failed: tuple[str, ...] = ()
    """Message for each object whose reconcile failed: the result is incomplete."""

    @property
    def nothing(self) -> bool:
        """Whether nothing at all would happen."""
        known = self.objects or self.files or self.workers or self.restarts
        return not (known or self.failed)

    def beside(self, other: Effects) -> Effects:
        """These and those of another API; an object that both touch is named once."""
        return Effects(
            tuple(dict.fromkeys((*self.objects, *other.objects))),
            (*self.files, *other.files),
            (*self.workloads, *other.workloads),
            (*self.workers, *other.workers),
            (*self.restarts, *other.restarts),
            (*self.unknown, *other.unknown),
            (*self.failed, *other.failed),
        )
