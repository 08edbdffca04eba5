"""Hand-written objects of a Slurm cluster with a jail: the images without the operator."""

from __future__ import annotations

import base64
import secrets
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from e2e_kit.release import answers

Json = dict[str, Any]

SLURM_CONF = """\
ClusterName=jail
SlurmctldHost=controller-0
SlurmUser=slurm
AuthType=auth/munge
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
PrologFlags=Alloc,Contain
LaunchParameters=use_interactive_step
ReturnToService=2
PluginDir=/usr/lib/slurm
StateSaveLocation=/var/spool/slurmctld
SlurmdSpoolDir=/var/spool/slurmd
SlurmctldLogFile=/dev/null
SlurmdLogFile=/dev/null
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MaxNodeCount=16
MailProg=/bin/true
NodeSet=worker Feature=worker
PartitionName=main Nodes=ALL Default=YES OverSubscribe=FORCE:8
"""
CONFIGURATION = {
    "cgroup.conf": "CgroupPlugin=disabled\n",
    "plugstack.conf": "required chroot.so /mnt/jail\n",
    "slurm.conf": SLURM_CONF,
}
"""In the order in which they are written: daemons start when slurm.conf is there."""
SSHD_CONFIG = """\
Port 22
PermitRootLogin yes
PasswordAuthentication no
UsePAM yes
Subsystem sftp internal-sftp
HostKey /etc/ssh/sshd_keys/ssh_host_ed25519_key
ChrootDirectory /mnt/jail
LogLevel DEBUG3

Match User root
    AuthorizedKeysFile /root/.ssh/authorized_keys /mnt/jail/root/.ssh/authorized_keys

Match User *
    LogLevel INFO
"""
ADMIN = {"capabilities": {"add": ["SYS_ADMIN"]}, "seccompProfile": {"type": "Unconfined"}}
WORKERS = ("worker-0", "worker-1")
WRONG_KEY = "worker-9"
POPULATE = "/usr/local/libexec/penstock/populate-jail"

SSH_VOLUMES: list[Json] = [
    {"name": "sshd-keys", "secret": {"secretName": "sshd-keys", "defaultMode": 0o600}},
    {"name": "ssh-configs", "configMap": {"name": "ssh-configs", "defaultMode": 0o420}},
    {"name": "ssh-root-keys", "configMap": {"name": "ssh-root-keys", "defaultMode": 0o600}},
]


def mount(name: str, path: str, **more: Any) -> Json:
    """A mount of a volume."""
    return {"name": name, "mountPath": path, **more}


SSH_MOUNTS = [
    mount("sshd-keys", "/etc/ssh/sshd_keys", readOnly=True),
    mount("ssh-configs", "/mnt/ssh-configs", readOnly=True),
    mount(
        *("ssh-root-keys", "/root/.ssh/authorized_keys"),
        subPath="authorized_keys",
        readOnly=True,
    ),
]


class Manifests:
    """Objects of one namespace; `images` are the references of the images by role."""

    def __init__(self, namespace: str, images: Mapping[str, str], folder: Path) -> None:
        self._namespace, self._images = namespace, images
        self.key, self._host_key = folder / "user", folder / "host"
        for path in (self.key, self._host_key):
            command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)]
            subprocess.run(command, check=True)

    def shared(self) -> list[Json]:
        """Volume, Service, keys and files that the pods mount."""
        host = {
            "ssh_host_ed25519_key": self._host_key.read_text(),
            "ssh_host_ed25519_key.pub": self._host_key.with_suffix(".pub").read_text(),
        }
        public = self.key.with_suffix(".pub").read_text()
        munge = {name: secrets.token_bytes(1024) for name in ("munge", "other-munge")}
        return [
            _object(
                "PersistentVolumeClaim",
                "jail",
                spec={
                    "accessModes": ["ReadWriteMany"],
                    "resources": {"requests": {"storage": "2Gi"}},
                },
            ),
            _object(
                "Service",
                "nodes",
                spec={
                    "clusterIP": "None",
                    "selector": {"app": "jail"},
                    "publishNotReadyAddresses": True,
                },
            ),
            *(
                _object("Secret", name, data={"munge.key": base64.b64encode(key).decode()})
                for name, key in munge.items()
            ),
            _object("Secret", "sshd-keys", stringData=host),
            _object("ConfigMap", "ssh-configs", data={"sshd_config": SSHD_CONFIG}),
            _object("ConfigMap", "ssh-root-keys", data={"authorized_keys": public}),
        ]

    def populate(self, name: str, *, at_once: int = 1) -> Json:
        """The Job that fills the jail, with several pods at once."""
        container = {
            "name": "populate-jail",
            "image": self._images["populate-jail"],
            "env": [{"name": "OVERWRITE", "value": "0"}],
            "volumeMounts": [mount("jail", "/mnt/jail")],
        }
        template = {
            "metadata": {"labels": {"job": name}},
            "spec": {
                "restartPolicy": "Never",
                "automountServiceAccountToken": False,
                "containers": [container],
                "volumes": [jail_volume()],
            },
        }
        spec = {"parallelism": at_once, "completions": at_once, "backoffLimit": 0}
        return _object("Job", name, spec={**spec, "template": template}, api="batch/v1")

    def cut_off(self) -> Json:
        """A pod whose first container is killed with the copy half made; two more run after it."""
        script = (
            f"bash {POPULATE} & until [ -e /mnt/jail/.filling/root/usr/bin ]; do sleep 0.02; done"
        )
        rest = {
            "image": self._images["populate-jail"],
            "volumeMounts": [mount("volume", "/mnt/jail")],
        }
        killed = {"name": "killed", "command": ["bash", "-c", script], **rest}
        return self._pod(
            "cut-off",
            [{"name": "third", **rest}],
            [{"name": "volume", "emptyDir": {"medium": "Memory"}}],
            initContainers=[killed, {"name": "second", **rest}],
            restartPolicy="Never",
        )

    def full(self) -> Json:
        """A pod that fills a volume which is too small."""
        container = {
            "name": "populate-jail",
            "image": self._images["populate-jail"],
            "volumeMounts": [mount("volume", "/mnt/jail")],
        }
        small = {"name": "volume", "emptyDir": {"medium": "Memory", "sizeLimit": "32Mi"}}
        return self._pod("full", [container], [small], restartPolicy="Never")

    def administrator(self) -> Json:
        """Writes the configuration, as sconfigcontroller does: the volume, and no mounts."""
        container = {
            "name": "main",
            "image": self._images["populate-jail"],
            "command": ["sleep", "infinity"],
            "volumeMounts": [mount("jail", "/mnt/jail")],
        }
        return self._pod("administrator", [container], [jail_volume()])

    def controller(self) -> Json:
        """slurmctld, with the sidecar that runs another command as its user."""
        mounts = [mount("jail", "/mnt/jail"), mount("munge-socket", "/run/munge")]
        sidecar = {
            "name": "reconfigure",
            "image": self._images["jail-slurmctld"],
            "restartPolicy": "Always",
            "args": ["sh", "-c", "id -un; slurmctld -V; exec sleep infinity"],
            "volumeMounts": mounts,
        }
        main = {
            "name": "slurmctld",
            "image": self._images["jail-slurmctld"],
            "readinessProbe": {**answers("/livez", 6817), "periodSeconds": 1},
            "volumeMounts": [*mounts, mount("spool", "/var/spool/slurmctld")],
        }
        return self._daemon("controller-0", main, sidecars=[sidecar], volumes=[_empty("spool")])

    def worker(self, name: str, *, key: str = "munge", sshd: bool = False) -> Json:
        """slurmd, with a volume of the pod in the jail; sshd beside it when it has files for it."""
        main: Json = {
            "name": "slurmd",
            "image": self._images["jail-slurmd"],
            "args": ["-Z", "--conf", "Feature=worker CPUs=8 RealMemory=1000"],
            "securityContext": ADMIN,
            "readinessProbe": {"tcpSocket": {"port": 6818}, "periodSeconds": 1},
            "volumeMounts": [
                mount("spool", "/var/spool/slurmd"),
                mount("jail", "/mnt/jail"),
                mount("munge-socket", "/run/munge"),
                mount("scratch", "/mnt/jail.upper/scratch"),
                mount("jail", "/mnt/jail.upper"),
                mount("tmp-disk", "/tmp"),
            ],
        }
        volumes = [_empty("spool"), _empty("scratch"), _empty("tmp-disk")]
        if sshd:
            main["volumeMounts"] += SSH_MOUNTS
            volumes += SSH_VOLUMES
        return self._daemon(name, main, volumes=volumes, key=key)

    def login(self) -> Json:
        """sshd."""
        main = {
            "name": "sshd",
            "image": self._images["jail-login"],
            "securityContext": ADMIN,
            "readinessProbe": {"tcpSocket": {"port": 22}, "periodSeconds": 1},
            "volumeMounts": [
                mount("jail", "/mnt/jail"),
                mount("munge-socket", "/run/munge"),
                *SSH_MOUNTS,
            ],
        }
        return self._daemon("login-0", main, volumes=SSH_VOLUMES)

    def _daemon(
        self,
        name: str,
        container: Json,
        *,
        sidecars: Sequence[Json] = (),
        volumes: Sequence[Json] = (),
        key: str = "munge",
    ) -> Json:
        munge = {
            "name": "munge",
            "image": self._images["munge"],
            "restartPolicy": "Always",
            "startupProbe": {
                "exec": {"command": ["sh", "-c", "munge -n | unmunge >/dev/null"]},
                "periodSeconds": 1,
                "failureThreshold": 30,
            },
            "volumeMounts": [
                mount("munge-key", "/mnt/munge-key", readOnly=True),
                mount("munge-socket", "/run/munge"),
            ],
        }
        common = [
            {"name": "munge-key", "secret": {"secretName": key, "defaultMode": 0o400}},
            _empty("munge-socket"),
            jail_volume(),
        ]
        searches = [f"nodes.{self._namespace}.svc.cluster.local"]
        return self._pod(
            name,
            [container],
            [*common, *volumes],
            initContainers=[munge, *sidecars],
            hostname=name,
            subdomain="nodes",
            dnsConfig={"searches": searches},
        )

    def _pod(self, name: str, containers: list[Json], volumes: list[Json], **spec: Any) -> Json:
        common = {"automountServiceAccountToken": False, "terminationGracePeriodSeconds": 5}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "labels": {"app": "jail"}},
            "spec": {**common, "containers": containers, "volumes": volumes, **spec},
        }


def jail_volume() -> Json:
    """The volume of the jail."""
    return {"name": "jail", "persistentVolumeClaim": {"claimName": "jail"}}


def _empty(name: str) -> Json:
    return {"name": name, "emptyDir": {}}


def _object(kind: str, name: str, *, api: str = "v1", **content: Any) -> Json:
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name}, **content}
