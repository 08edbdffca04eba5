"""A configuration transaction as data: its stages, what it depends on, and its next step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from penstock.decide.config.reconfigure_log import Acknowledgements
from penstock.slurm.conf.apply_method import Plan, Table
from penstock.slurm.conf.apply_method_table import TABLE

Files = Mapping[str, str]


class Stage(Enum):
    """Progress of a candidate configuration."""

    STARTING = "slurmctld has not worked yet, or cannot be asked"
    TRYING = "a trial start is waited for"
    REJECTED = "the trial start rejected it"
    DELIVERING = "slurmctld is to take it over"
    ROLLED_BACK = "slurmctld rejected it at the reconfigure, or did not come up with it"
    RESTARTING = "slurmctld is restarted for it now"
    RETURNING = "slurmctld was restarted for it and does not serve yet"
    EFFECTIVE = "slurmctld runs with it"


@dataclass(frozen=True, slots=True)
class Version:
    """The files of one of our ConfigMaps, and the hash of /etc/slurm with them.

    `own` is the hash of what the Controller itself brings, without partitions.
    """

    data: Files
    hash: str
    own: str = ""


def _no_marks() -> dict[str, str]:
    return {}


@dataclass(frozen=True, slots=True)
class ConfigView:
    """Observed state that the decision depends on.

    `startup` and `last_known_good` are None when they are absent or were edited. `active` is the
    hash in the status. `marks` are the annotations of slurmctld's pod, None without a pod. `acks`
    is None when the reconfigure container could not be asked, for the reason in `why`.
    """

    candidate: Version
    startup: Version | None
    last_known_good: Version | None
    has_started: bool
    is_ready: bool
    has_own_sidecar: bool
    active: str = ""
    startup_at: str = ""
    """The resourceVersion of the startup ConfigMap; empty when it is absent."""
    marks: Mapping[str, str] | None = None
    acks: Acknowledgements | None = None
    why: str = ""
    persistent: bool = True
    applied_live: bool = False
    has_unsaved: bool = False
    """Whether REST calls changed partitions since the startup configuration."""
    is_adopted: bool = False
    """Whether slurmctld's pod is as another operator made it: nobody in it can be asked."""
    down: str = ""
    """Why slurmctld does not come up with the configuration that its pod was handed; empty while
    that may just take its time."""
    hung: str = ""
    """Why a slurmctld that was started before its files were delivered does not serve; empty while
    that may just take its time."""
    starting: str = ""
    """What keeps slurmctld's pod from serving; empty when it serves or nothing is known."""
    rejected: Mapping[str, str] = field(default_factory=dict[str, str])
    """Slurmctld's words by `Version.hash` or `Version.own` with which it did not start before."""
    unfit: str = ""
    """Why the candidate cannot work in our pods, even when a trial start accepts it."""
    is_complete: bool = True
    """Whether `candidate` has all that is declared: no rejected part is left out."""

    @property
    def is_first_start(self) -> bool:
        """Whether slurmctld has never worked, and does not now."""
        return not self.has_started and not self.is_ready

    table: Table = TABLE
    """What each key needs with the Slurm that runs."""
    unknown: str = ""
    """Why the running release of Slurm cannot read the candidate, if that is known beforehand."""


@dataclass(frozen=True, slots=True)
class ConfigStep:
    """Desired contents of the ConfigMaps, and desired annotations of slurmctld's pods.

    Contents that are None stay as they are. A mark of "" is removed. `active` is the hash of the
    active configuration, empty while it is unknown.
    """

    stage: Stage
    startup: Files | None
    last_known_good: Files | None
    marks: Mapping[str, str] = field(default_factory=_no_marks)
    plan: Plan = field(default_factory=Plan)
    active: str = ""
    words: str = ""
    is_acknowledged: bool = True
    """Whether slurmctld itself confirmed EFFECTIVE."""
    reloads: bool = False
    """Whether slurmctld is about to read its files, and to lose changes made by REST calls."""
    rejected: Mapping[str, str] = field(default_factory=dict[str, str])
    """Verdicts to record beside the startup files, as `ConfigView.rejected`."""
    is_unsaved: bool = False
    """Whether a restart or a reconfigure now would undo partitions that REST calls made."""
    needs_correction: bool = False
    """Whether STARTING cannot end with these files: somebody has to correct them."""
    recreate: str = ""
    """Why slurmctld's pod is to be recreated although no key needs it; empty when it is not."""

    @property
    def restart(self) -> bool:
        """Whether slurmctld is to be restarted now."""
        return self.stage is Stage.RESTARTING
