"""Accounting of a SlurmCluster, as its users see it in the jail of a login."""

from __future__ import annotations

from dataclasses import dataclass

from e2e_kit.api import Json
from e2e_kit.site import eventually
from e2e_kit.slurmcluster import SlurmClusterSite

LONG_S = 120.0


@dataclass(frozen=True)
class ClusterRecords:
    """A SlurmCluster with accounting; `login` is its login pod, `images` are by role."""

    cluster: SlurmClusterSite
    login: str
    images: dict[str, str]

    def in_jail(self, command: str) -> str:
        """Output of a command of a login."""
        return self.cluster.run(self.login, "sshd", f"chroot /mnt/jail {command}")

    def submit(self, script: str, options: str = "") -> str:
        """Id of a job."""
        command = f"sbatch --parsable --output=/dev/null {options} --wrap '{script}'"
        return self.in_jail(command).strip()

    def recorded(self, job: str, state: str = "COMPLETED") -> None:
        """Wait until the database has a job in a state."""

        def found() -> bool:
            return self.in_jail(f"sacct -X -n -P -j {job} -o State").strip() == state

        eventually(f"job {job} is recorded as {state}", found, LONG_S, every=1)

    def has_ended(self, job: str) -> bool:
        """Whether slurmctld has the job as completed."""
        return "JobState=COMPLETED" in self.cluster.scontrol("show", "job", job)

    def enable(self, **database: Json) -> None:
        """Have the cluster keep records in a database: a field of accounting, and its value."""
        fields: Json = {"externalDB": None, "mariadbOperator": None, "embeddedDB": None}
        accounting = {
            "enabled": True,
            "slurmdbd": {"image": self.images["slurmdbd"]},
            "munge": {"image": self.images["munge"]},
            **fields,
            **database,
        }
        self.cluster.patch({"slurmNodes": {"accounting": accounting}})

    def available(self, status: str, words: str = "") -> None:
        """Wait for the condition AccountingAvailable."""

        def found() -> bool:
            return self.cluster.status("AccountingAvailable") == status and words in (
                self.cluster.condition("AccountingAvailable")
            )

        eventually(f"AccountingAvailable is {status}: {words}", found, LONG_S)

    def registered(self) -> None:
        """Wait until slurmdbd has the cluster."""
        eventually(
            "the cluster is registered",
            lambda: self.cluster.status("AccountingRegistered") == "True",
            LONG_S,
        )

    def slurmdbd(self) -> str:
        """The pod of slurmdbd, and how often its container restarted."""
        path = "{range .items[*]}{.metadata.name} {.status.containerStatuses[0].restartCount}{end}"
        selector = "app.kubernetes.io/component=accounting"
        return self.cluster.kubectl("get", "pods", "-l", selector, "-o", f"jsonpath={path}")
