"""Environment variables that the programs and images read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Variable:
    """One variable. `read_by` names programs or images; an empty default is none."""

    name: str
    read_by: str
    default: str
    meaning: str


VARIABLES: Final = (
    Variable(
        "PENSTOCK_APIS",
        "operator",
        "slinky.slurm.net,slurm.nebius.ai",
        "API groups whose clusters it leads, separated by commas; `--apis` wins.",
    ),
    Variable(
        "PENSTOCK_SLURM_IMAGE",
        "operator",
        "localhost/penstock/{role}:...",
        "Image for containers that name none; `--slurm-image` wins.",
    ),
    Variable(
        "PENSTOCK_OPERATOR_IMAGE",
        "operator",
        "localhost/penstock/operator:...",
        "Image of sconfigcontroller where a SlurmCluster names none.",
    ),
    Variable(
        "TOPOLOGY_LABEL_PREFIX",
        "operator",
        "topology.nebius.com",
        "Prefix of the labels `<prefix>/tier-N` of Kubernetes nodes, for topology.conf.",
    ),
    Variable(
        "REBOOTER_COMMAND",
        "rebooter",
        "systemctl reboot",
        "The command that reboots the Kubernetes node, run in the root of its first process.",
    ),
    Variable(
        "REBOOTER_NODE_NAME",
        "rebooter",
        "",
        "The Kubernetes node; the operator sets it.",
    ),
    Variable(
        "REBOOTER_EVICTION_METHOD",
        "rebooter",
        "evict",
        "How pods leave the node: only `evict`. The operator sets it.",
    ),
    Variable(
        "PENSTOCK_WEBHOOK_PORT",
        "operator",
        "0",
        "Port of the admission webhooks; `--webhook-port` wins.",
    ),
    Variable(
        "PENSTOCK_WEBHOOK_NAME",
        "operator",
        "penstock-operator-webhook",
        "Name of their Service and configurations; `--webhook-name` wins.",
    ),
    Variable(
        "PENSTOCK_WEBHOOK_SECRET",
        "operator",
        "",
        "Secret of their certificate; `--webhook-secret` wins.",
    ),
    Variable(
        "PENSTOCK_WEBHOOK_CERTIFICATES",
        "operator",
        "own",
        "Who makes their certificate, `own` or `given`; `--webhook-certificates` wins.",
    ),
    Variable(
        "PENSTOCK_WEBHOOK_HOSTS",
        "operator",
        "",
        "More names in their certificate; `--webhook-hosts` wins.",
    ),
    Variable(
        "PENSTOCK_WEBHOOK_CLIENT_CA",
        "operator",
        "",
        "File with the authorities of the API server's certificate; `--webhook-client-ca` wins.",
    ),
    Variable(
        "PENSTOCK_WEBHOOK_CLIENT_NAMES",
        "operator",
        "",
        "Names, one of which that certificate has; `--webhook-client-names` wins.",
    ),
    Variable(
        "POD_NAME",
        "operator, sconfigcontroller",
        "host name and process id",
        "Identity in the Lease and in events.",
    ),
    Variable(
        "POD_NAMESPACE",
        "operator",
        "default",
        "Namespace of the operator, its Lease and its webhooks.",
    ),
    Variable(
        "KUBERNETES_SERVICE_HOST",
        "operator, sconfigcontroller",
        "",
        "Address of the API server; Kubernetes sets it in pods.",
    ),
    Variable(
        "SLURM_CONF",
        "power-manager",
        "/etc/slurm/slurm.conf",
        "slurm.conf of the slurmctld that calls it; slurmctld sets it.",
    ),
    Variable(
        "KUBERNETES_SERVICE_PORT",
        "operator, sconfigcontroller",
        "443",
        "Port of the API server; Kubernetes sets it in pods.",
    ),
    Variable(
        "KUBECONFIG",
        "penstock",
        "~/.kube/config",
        "Kubeconfig files, separated by colons.",
    ),
    Variable(
        "PENSTOCK_REGISTRY_PLAIN_HTTP",
        "penstock images",
        "false",
        "The registry serves plain HTTP; as `--plain-http`.",
    ),
    Variable(
        "PENSTOCK_REGISTRY_USERNAME",
        "penstock images",
        "",
        "User of the registry; as `--username`.",
    ),
    Variable(
        "PENSTOCK_REGISTRY_PASSWORD",
        "penstock images",
        "",
        "Password of that user.",
    ),
    Variable(
        "REGISTRY_AUTH_FILE",
        "penstock images",
        "",
        "File with logins of registries, as podman reads it.",
    ),
    Variable(
        "DOCKER_CONFIG",
        "penstock images",
        "~/.docker",
        "Folder with logins of registries, as docker reads it.",
    ),
    Variable(
        "PENSTOCK_DEBIAN_MIRROR",
        "penstock local, penstock images",
        "that of the system",
        "Debian mirror for packages of the built-in node and of images.",
    ),
    Variable(
        "PENSTOCK_STATE",
        "penstock local",
        "/var/lib/penstock",
        "Folder of the built-in nodes.",
    ),
    Variable(
        "PENSTOCK_KUBERNETES",
        "penstock local",
        "1.34",
        "Minor version of Kubernetes that new built-in nodes get.",
    ),
    Variable(
        "XDG_CACHE_HOME",
        "penstock local, penstock images",
        "~/.cache",
        "Folder in which the cache is.",
    ),
    Variable(
        "PATH",
        "penstock local",
        "",
        "Programs of the system.",
    ),
    Variable(
        "PENSTOCK_PYTHON",
        "make",
        "/usr/bin/python3",
        "Interpreter of the virtual environment.",
    ),
    Variable(
        "SLURMCTLD_OPTIONS",
        "image slurmctld",
        "",
        "More options of slurmctld, before the container's arguments.",
    ),
    Variable(
        "SLURMD_OPTIONS",
        "image slurmd",
        "",
        "More options of slurmd, before the container's arguments.",
    ),
    Variable(
        "SACKD_OPTIONS",
        "image login",
        "",
        "More options of sackd, before the container's arguments.",
    ),
    Variable(
        "SSHD_OPTIONS",
        "images login, slurmd",
        "",
        "More options of sshd.",
    ),
    Variable(
        "SSSD_OPTIONS",
        "images login, slurmd",
        "",
        "More options of sssd.",
    ),
    Variable(
        "PAM_SLURM_ADOPT_OPTIONS",
        "image slurmd",
        "action_adopt_failure=deny action_generic_failure=deny",
        "Options of pam_slurm_adopt for ssh to a worker.",
    ),
    Variable(
        "POD_CPUS",
        "image slurmd",
        "",
        "CPUs that slurmd may use; the operator sets it from the limits.",
    ),
    Variable(
        "POD_MEMORY",
        "image slurmd",
        "",
        "Memory in MiB that slurmd may use; the operator sets it from the limits.",
    ),
    Variable(
        "POD_TOPOLOGY",
        "image slurmd",
        "",
        "Topology of the node; the operator sets it from the pod's annotation.",
    ),
    Variable(
        "PENSTOCK_SLURM_USER",
        "image slurmctld of a SlurmCluster",
        "slurm",
        "SlurmUser of adopted clusters; the operator sets it.",
    ),
    Variable(
        "PENSTOCK_JOB_MOUNTS",
        "image slurmd of a SlurmCluster",
        "",
        "Mounts of each job; the operator sets it.",
    ),
    Variable(
        "AUTH_TYPE",
        "images of a SlurmCluster",
        "auth/munge",
        "spec.authType; the operator sets it.",
    ),
    Variable(
        "ACTIVE_CHECK_NAME",
        "program of slurmJob checks",
        "",
        "Name of the ActiveCheck and of its Slurm jobs; the operator sets it.",
    ),
    Variable(
        "EACH_WORKER_JOBS",
        "program of slurmJob checks",
        "",
        "`true`: one job on each worker; spec.slurmJobSpec.eachWorkerJobs.",
    ),
    Variable(
        "ACTIVE_CHECK_MAX_NUMBER_OF_JOBS",
        "program of slurmJob checks",
        "0",
        "Most jobs of one run, 0 for any number; spec.slurmJobSpec.maxNumberOfJobs.",
    ),
    Variable(
        "ACTIVE_CHECK_NODE",
        "program of slurmJob checks",
        "",
        "The only Slurm node that gets a job; the operator sets it.",
    ),
    Variable(
        "ACTIVE_CHECK_RESERVATION_PREFIX",
        "program of slurmJob checks",
        "",
        "Begin of reservations in which nodes get a job too; spec.successReactions."
        "removeReservation.prefix.",
    ),
    Variable(
        "ACTIVE_CHECK_FAILURE_PREFIX",
        "program of slurmJob checks",
        "",
        "Begin of reservations of nodes that the check drained too; spec.failureReactions."
        "addReservation.prefix.",
    ),
    Variable(
        "JAIL_MODE",
        "images of a SlurmCluster",
        "Shared",
        "spec.jailMode; the operator sets it.",
    ),
    Variable(
        "JAIL",
        "image populate-jail and sidecars",
        "/mnt/jail",
        "Where the jail is mounted; the operator sets it.",
    ),
    Variable(
        "SHARED_ETC",
        "sidecar of a worker's root",
        "/mnt/jail.shared",
        "Where the shared jail is mounted; the operator sets it.",
    ),
    Variable(
        "READY",
        "sidecar of a worker's root",
        "/run/jail-root-ready",
        "File that shows that the root is complete.",
    ),
    Variable(
        "RESTIC_REPOSITORY",
        "image backup",
        "",
        "The repository of a Backup or Restore; the operator sets it.",
    ),
    Variable(
        "DATABASE_HOST",
        "image backup",
        "",
        "Host of slurmdbd's database; the operator sets it.",
    ),
    Variable(
        "DATABASE_PORT",
        "image backup",
        "3306",
        "Its port.",
    ),
    Variable(
        "DATABASE_USER",
        "image backup",
        "",
        "Its user.",
    ),
    Variable(
        "DATABASE_NAME",
        "image backup",
        "slurm_acct_db",
        "Its name.",
    ),
    Variable(
        "PENSTOCK_UPGRADE_ROOT",
        "image backup",
        "",
        "old or new: which image of a JailUpgrade a container has; the operator sets it.",
    ),
    Variable(
        "OVERWRITE",
        "image populate-jail",
        "0",
        "1 replaces files of a filled jail; the operator sets it.",
    ),
    Variable(
        "SNAPSHOT",
        "image populate-jail",
        "/jail",
        "Mount of a snapshot to copy in place of the image.",
    ),
    Variable(
        "SOURCE",
        "image populate-jail",
        "/",
        "Root to copy.",
    ),
    Variable(
        "FOLLOW",
        "image populate-jail",
        "",
        "Marker of another jail that this one follows; the operator sets it.",
    ),
    Variable(
        "MUNGE_SOCKET_FILE",
        "image munge and its users",
        "/run/munge/munge.socket.2",
        "Socket of munged.",
    ),
    Variable(
        "MUNGE_KEY_SOURCE",
        "image munge",
        "/mnt/munge-key/munge.key",
        "Key in the mount of the Secret.",
    ),
    Variable(
        "MUNGE_KEY_FILE",
        "image munge",
        "/etc/munge/munge.key",
        "Copy of the key that munged reads.",
    ),
    Variable(
        "MUNGE_PID_FILE",
        "image munge",
        "/run/munge/munged.pid",
        "Process id of munged.",
    ),
    Variable(
        "MUNGE_NUM_THREADS",
        "image munge",
        "10",
        "Threads of munged.",
    ),
    Variable(
        "MUNGE_FOLLOW_KEY",
        "image munge",
        "1",
        "Seconds between two checks whether the key changed; munged restarts with it. 0: none.",
    ),
)
