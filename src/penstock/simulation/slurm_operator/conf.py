"""slurm.conf and slurmdbd.conf as slurm-operator writes them."""

from __future__ import annotations

from penstock.simulation.slurm_operator.base import Cluster
from penstock.simulation.slurm_operator.parts import feature, sub


class Files(Cluster):
    """The files of a cluster."""

    def slurm_conf(self) -> str:
        """The text of slurm.conf."""
        name, space, cluster = self.name, self.namespace, self.cluster_name()
        host = f"{name}-controller-0"
        sections: list[tuple[str, list[str]]] = [
            (
                "GENERAL",
                [
                    f"ClusterName={cluster}",
                    "SlurmUser=slurm",
                    f"SlurmctldHost={host}({host}.{name}-controller-internal.{space})",
                    "SlurmctldPort=6817",
                    f"SlurmctldAddr={name}-controller.{space}",
                    f"StateSaveLocation=/var/spool/slurmctld/{cluster}",
                    "SlurmdUser=root",
                    "SlurmdPort=6818",
                    "SlurmdSpoolDir=/var/spool/slurmd",
                    "MaxNodeCount=1024",
                ],
            ),
            (
                "LOGGING",
                [
                    "SlurmctldLogFile=/var/log/slurm/slurmctld.log",
                    "SlurmSchedLogFile=/var/log/slurm/slurmctld.log",
                    "SlurmdLogFile=/var/log/slurm/slurmd.log",
                ],
            ),
            (
                "PLUGINS & PARAMETERS",
                [
                    "AuthType=auth/slurm",
                    "CredType=cred/slurm",
                    "AuthAltTypes=auth/jwt",
                    "AuthAltParameters=jwt_key=/etc/slurm/jwt.key",
                    "AuthInfo=use_client_ids",
                    "SlurmctldParameters=enable_configless,reconfig_on_restart",
                ],
            ),
            ("ACCOUNTING", self._accounting_lines()),
            ("NODESET & PARTITION", self._nodeset_lines()),
        ]
        extra: str = self.controller["spec"].get("extraConf") or ""
        if extra := extra.rstrip("\n"):
            sections.append(("EXTRA CONFIG", extra.split("\n")))
        return "".join(
            f"#\n### {title} ###\n" + "".join(f"{line}\n" for line in lines)
            for title, lines in sections
            if lines
        )

    def _accounting_lines(self) -> list[str]:
        """Where slurmctld accounts."""
        ref = self.controller["spec"].get("accountingRef")
        if not ref:
            return ["AccountingStorageType=accounting_storage/none"]
        return [
            "AccountingStorageType=accounting_storage/slurmdbd",
            f"AccountingStorageHost={ref['name']}-accounting",
            "AccountingStoragePort=6819",
        ]

    def _nodeset_lines(self) -> list[str]:
        """A node set for each NodeSet, and its partition."""
        lines: list[str] = []
        for one in sorted(self.of("NodeSet"), key=lambda found: found["metadata"]["name"]):
            name = feature(one)
            lines.append(f"NodeSet={name} Feature={name}")
            partition = sub(one["spec"], "partition")
            if partition.get("enabled"):
                config = partition.get("config") or ""
                lines.append(f"PartitionName={name} Nodes={name} {config}".rstrip())
        return lines
