"""The differences from objects of the original that we want, each with its reason."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Difference:
    """`pattern` matches `KIND PATH` as a whole; the kind of a worker's pod is Worker."""

    name: str
    pattern: str
    reason: str

    def covers(self, text: str) -> bool:
        """Whether it is about that path."""
        return re.fullmatch(self.pattern, text) is not None


_POD = r"(StatefulSet|Deployment|Job|Worker) .*"

OBJECTS: Final = (
    Difference(
        "passwords of MariaDB",
        r"Secret .*mariadb-(password|root)",
        "mariadb-operator creates them; the operator's own database is not served yet",
    ),
    Difference(
        "files of Slurm",
        r"ConfigMap .*(-slurm-configs|topology-config)",
        "render.nebius.config has them; topology.conf is not served yet",
    ),
    Difference("scripts", r"ConfigMap .*slurm-scripts", "the chart created it"),
    Difference(
        "rights of workers",
        r"(Role|RoleBinding|ServiceAccount) .*-(nodeset-.*|worker-sa)",
        "jobs run in these pods; the engine makes every change of a pod itself",
    ),
    Difference(
        "Service of the chart",
        r"Service .*-sconfigcontroller-metrics",
        "the chart created it, not the operator",
    ),
)
"""Objects of the original that we do not create."""

PATHS: Final = (
    Difference(
        "workload API",
        r"StatefulSet (apiVersion|spec\.(updateStrategy|volumeClaimUpdateStrategy"
        r"|revisionHistoryLimit|template\.spec\.readinessGates))",
        "StatefulSets of apps/v1: no OpenKruise, whose condition no pod would get",
    ),
    Difference(
        "worker pod",
        r"Worker (metadata\.labels\.(controller-revision-hash|statefulset\.kubernetes\.io/pod-name)"
        r"|spec\.(hostname|subdomain|readinessGates|restartPolicy)"
        r"|spec\.volumes\[worker-spool\](\.emptyDir)?)",
        "the engine owns plain pods: it sets the fields that a StatefulSet's controller sets",
    ),
    Difference(
        "one volume for each PVC",
        r"(Worker|StatefulSet) .*(volumes\[scratch\]"
        r"|containers\[(slurmd|sshd)\]\.volumeMounts\[/mnt/jail\.upper/scratch\]\.name)",
        "the kubelet starts no pod with two volumes of one PVC",
    ),
    Difference(
        "role label",
        r"Worker metadata\.labels\.slurm\.nebius\.ai/worker",
        "one label finds the workers of both shapes",
    ),
    Difference(
        "last words",
        rf"{_POD}\.terminationMessagePolicy",
        "the status shows the last words of a daemon that ended",
    ),
    Difference(
        "service links",
        rf"{_POD}spec\.enableServiceLinks",
        "one variable for each Service of the namespace would reach the jobs of all users",
    ),
    Difference(
        "no token",
        rf"{_POD}spec\.(automountServiceAccountToken|serviceAccountName)",
        "pods that do not use the API server have no token",
    ),
    Difference(
        "old name of the account",
        r"StatefulSet spec\.template\.spec\.serviceAccount",
        "the API server writes it too, and takes the account from there again",
    ),
    Difference(
        "AppArmor",
        rf"{_POD}(annotations\.container\.apparmor\.security\.beta\.kubernetes\.io/.*"
        r"|securityContext(\.appArmorProfile)?)",
        "the field of Kubernetes 1.30 in place of the annotation that it replaced",
    ),
    Difference(
        "not privileged",
        r"(StatefulSet|Worker) .*securityContext\.(privileged|seccompProfile)",
        "SYS_ADMIN and no seccomp profile are enough to complete and enter the jail",
    ),
    Difference(
        "procMount",
        r"Worker .*securityContext\.procMount",
        "privileged containers have no masked paths; Kubernetes allows it with a user namespace",
    ),
    Difference(
        "munge answers",
        r"((StatefulSet|Deployment) .*|Worker )spec\.initContainers\[munge\]"
        r"\.(startup|liveness|readiness)Probe.*",
        "the next container starts once munged answers; then a socket needs no further probe",
    ),
    Difference(
        "daemon listens",
        r"(StatefulSet .*containers\[slurmctld\]|Worker .*containers\[slurmd\])"
        r"\.(startup|liveness|readiness)Probe",
        "a connection once at the start: scontrol each second costs more, and a liveness probe by "
        "DNS restarts a slurmctld that works",
    ),
    Difference(
        "port by name",
        r"(StatefulSet|Deployment) .*Probe\.tcpSocket\.port",
        "the declared port, without its number",
    ),
    Difference(
        "slurmrestd listens",
        r"Deployment .*containers\[slurmrestd\]\.readinessProbe",
        "the operator's first request comes as soon as it can be answered",
    ),
    Difference(
        "transaction",
        r"StatefulSet .*(initContainers\[reconfigure\]"
        r"|annotations\.controller\.penstock\.dev/tries-config"
        r"|volumes\[(reconfigure|slurm-candidate|trial-spool)\])",
        "a sidecar tries new files and has slurmctld reconfigure",
    ),
    Difference(
        "slurmctld waits for nobody",
        r"StatefulSet .*initContainers\[wait-for-accounting\]",
        "slurmctld is created once its accounting exists, and retries by itself",
    ),
    Difference(
        "slurmdbd waits by itself",
        r"Deployment .*initContainers\[wait-for-database\]|Secret data\.storage.*",
        "the original gives up after 300 s, and its client knows no TLS",
    ),
    Difference(
        "slurmdbd's script",
        r"Deployment .*containers\[accounting\]\.(command|env)",
        "slurmdbd takes over a changed file, and tells how its database is, in any image",
    ),
    Difference(
        "the database answers",
        r"Deployment .*containers\[accounting\]\.readinessProbe\.(exec|tcpSocket"
        r"|(period|timeout|initialDelay)Seconds|failureThreshold)",
        "slurmdbd keeps its port while its database is away",
    ),
    Difference(
        "rights of slurmdbd",
        r"Deployment .*containers\[accounting\]\.securityContext"
        r"\.(capabilities|runAs(User|Group))",
        "slurmdbd mounts nothing; its script starts as root in any image",
    ),
    Difference(
        "files of slurmdbd",
        r"Deployment .*volumes\[(slurm-configs\]\.projected\.sources|jail\])",
        "the JWT key and certificates are beside slurmdbd.conf, and nothing of the jail is read",
    ),
    Difference(
        "archive of records",
        r"Deployment .*volumes\[spool\]\.emptyDir\.sizeLimit",
        "a limit of 0 means none",
    ),
    Difference(
        "slurmd waits by itself",
        r"Worker spec\.initContainers\[(worker-init|wait-for-controller)\]",
        "slurmd registers as a dynamic node once slurmctld answers, with its own address",
    ),
    Difference(
        "dynamic node",
        r"Worker .*env\[SLURMD_OPTIONS\]",
        "the words with which slurmd registers",
    ),
    Difference(
        "topology",
        r"Worker .*(volumeMounts\[/tmp/slurm/topology-node-labels\]"
        r"|volumes\[topology-node-labels\])",
        "not served yet",
    ),
    Difference(
        "docker",
        r"Worker .*(containers\[docker-proxy\]|env\[SOPERATOR_DOCKER_ENABLED\]\.value)",
        "not served yet",
    ),
    Difference(
        "supervisord",
        r"Worker spec\.volumes\[supervisord-config\]\.configMap\.optional",
        "our image has none, and reads nothing there",
    ),
    Difference(
        "program of the exporter",
        r"Deployment .*containers\[exporter\]\.command",
        "the operator's image has several programs; the original's has this one too",
    ),
    Difference(
        "container that does nothing",
        r"Deployment spec\.template\.spec\.initContainers",
        "the exporter's container munge only replaced an older one of that name",
    ),
    Difference(
        "rights of the exporter",
        r"Role rules\[(configmaps|pods)\]",
        "durations outlive its pod, and the older shape has labels of NodeSets too",
    ),
    Difference(
        "init-dir",
        r"Deployment .*initContainers\[init-dir\]\.(args|command|image)",
        "an image that the cluster has anyway; the engine waits for the jail",
    ),
    Difference(
        "default container",
        r"(Deployment|Job) .*annotations(\.kubectl\.kubernetes\.io/default-container)?",
        "all pods have it, also in the older shape",
    ),
    Difference(
        "account's component",
        r"ServiceAccount metadata\.labels\.app\.kubernetes\.io/component",
        "the component of its Role",
    ),
    Difference(
        "events",
        r"Role rules\[events\]\.apiGroups",
        "our process writes events of events.k8s.io",
    ),
    Difference(
        "file capabilities",
        r"Job .*containers\[populate-jail\]\.securityContext\.capabilities\.add",
        "files of the jail have capabilities in both versions",
    ),
    Difference(
        "marks of the Job",
        r"Job metadata\.annotations",
        "the template and the mode that it was created for",
    ),
    Difference(
        "labels of the Job's controller",
        r"Job spec\.(selector|template\.metadata\.labels\..*(controller-uid|job-name))",
        "Kubernetes' controller writes them",
    ),
    Difference(
        "addresses of pods that start",
        r"Service spec\.publishNotReadyAddresses",
        "daemons find each other while they start, and while a container beside them restarts",
    ),
    Difference(
        "name of slurmctld's port",
        r"Service spec\.ports",
        "as in version 5.0, where probes and monitors find it",
    ),
)
"""Paths at which our objects differ."""
