"""Clusters with daemons on both sides: keys, files, hostnames and conditions."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from e2e_kit import manifests
from e2e_kit.api import Json, condition, ready
from e2e_kit.cluster import Cluster
from e2e_kit.external_hosts import SLURM_UID, Host
from e2e_kit.release import PARSER
from e2e_kit.site import Site, eventually

LONG_S = 180.0
NEWLINES = b"\x00\xff\r\n\n"
"""An end that would not survive being read as text."""
SLURM_KEY, JWT_KEY = os.urandom(1000) + NEWLINES, os.urandom(32) + NEWLINES
SECRETS = {
    "external-auth-slurm": ("slurm.key", SLURM_KEY),
    "external-auth-jwths256": ("jwt_hs256.key", JWT_KEY),
}
REFS = {
    "slurmKeyRef": {"name": "external-auth-slurm", "key": "slurm.key"},
    "jwtKeyRef": {"name": "external-auth-jwths256", "key": "jwt_hs256.key"},
}
JWT_SECRET = ("external-auth-jwths256", "jwt_hs256.key")
JOB = ("--mem=50", "--partition=all", "-N2")
BATCH = (
    *("sbatch", "--parsable", *JOB),
    *("--wait", "--output=/dev/null", "--chdir=/tmp", "--wrap=srun hostname"),
)
"""A job over two nodes, waited for."""
CGROUP_CONF = "CgroupPlugin=disabled\n"
CONF = """
ClusterName={cluster}
SlurmctldHost={name}({address})
SlurmUser=slurm
AuthType=auth/slurm
CredType=cred/slurm
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key=/etc/slurm/jwt.key
AuthInfo=use_client_ids
SlurmctldParameters=enable_configless
StateSaveLocation=/var/spool/slurmctld
SlurmdSpoolDir=/var/spool/slurmd
SlurmctldPidFile=/run/slurmctld/slurmctld.pid
SlurmctldLogFile=/var/log/slurm/slurmctld.log
SlurmdLogFile=/var/log/slurm/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MaxNodeCount=16
PartitionName=all Nodes=ALL Default=YES
"""
DBD_CONF = """
AuthType=auth/slurm
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key=/etc/slurm/jwt.key
AuthInfo=use_client_ids
DbdHost={name}
SlurmUser=slurm
PidFile=/run/slurmdbd/slurmdbd.pid
LogFile=/var/log/slurm/slurmdbd.log
StorageType=accounting_storage/mysql
StorageHost={database_host}
StorageLoc={database}
StorageUser={database}
StoragePass={password}
"""
POD = f"{manifests.NAME}-controller-0"


@dataclass(frozen=True)
class Slurmctld:
    """The slurmctld of a host."""

    host: Host

    def conf(self, cluster: str, *lines: str) -> bytes:
        """A slurm.conf that names it."""
        text = CONF.format(cluster=cluster, name=self.host.name, address=self.host.address)
        return (text.lstrip() + "".join(f"{line}\n" for line in lines)).encode()

    def start(self) -> None:
        """Have it run."""
        self.host.start("/usr/sbin/slurmctld", "-D", user=SLURM_UID)

    def stop(self) -> None:
        """End it."""
        self.host.stop("slurmctld")

    def reconfigure(self) -> None:
        """Have it read its files, and ask all nodes whether they answer."""
        self.host.run("scontrol", "reconfigure")


def controller(node: Host, **spec: Any) -> Json:
    """A slurmctld in a pod, whose slurm.conf names an external node."""
    line = f"NodeName={node.name} NodeAddr={node.address} CPUs=1 RealMemory=100\n"
    both = "PartitionName=all Nodes=ALL MaxTime=UNLIMITED\n"
    return manifests.controller(manifests.EXTRA_CONF + line + both, **REFS, **spec)


def external_controller(cluster: Cluster) -> Json:
    """A Controller whose slurmctld is on the host `metal-ctl`."""
    return manifests.of(
        "Controller",
        manifests.NAME,
        clusterName="metal",
        external=True,
        externalConfig={"host": f"metal-ctl.{cluster.namespace}"},
        **REFS,
    )


def write_files(host: Host, owner: int, conf: bytes, names: Mapping[str, str]) -> None:
    """Files of an external daemon, and the names that it must resolve."""
    host.hosts(names)
    host.write("/etc/slurm/slurm.conf", conf, mode=0o644)
    host.write("/etc/slurm/cgroup.conf", CGROUP_CONF.encode(), mode=0o644)
    host.keys(owner, slurm_key=SLURM_KEY)


def storage_lines(host: str) -> tuple[str, ...]:
    """Lines of slurm.conf about slurmdbd."""
    return ("AccountingStorageType=accounting_storage/slurmdbd", f"AccountingStorageHost={host}")


def start_slurmdbd(host: Host, database_host: str, database: str, password: str) -> None:
    """One outside, and wait until it serves."""
    conf = DBD_CONF.format(
        name=host.name, database_host=database_host, database=database, password=password
    )
    host.hosts({})
    host.write("/etc/slurm/slurmdbd.conf", conf.lstrip().encode(), owner=SLURM_UID)
    host.keys(SLURM_UID, slurm_key=SLURM_KEY, jwt_key=JWT_KEY)
    host.start("/usr/sbin/slurmdbd", "-D", user=SLURM_UID)
    until_served(host, 6819)


def until_served(host: Host, port: int) -> None:
    """Wait until a daemon of the host takes connections."""

    def serves() -> bool:
        socket.create_connection((host.address, port), 3).close()
        return True

    eventually(f"{host.name} serves {port}", serves, LONG_S)


def service(name: str, host: Host, port: int = 6817) -> list[Json]:
    """A name in the cluster for an external host: a Service without a selector."""
    ports = [{"name": "slurm", "port": port}]
    return [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": name},
            "spec": {"clusterIP": "None", "ports": ports},
        },
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {"name": name, "labels": {"kubernetes.io/service-name": name}},
            "addressType": "IPv4",
            "ports": ports,
            "endpoints": [{"addresses": [host.address]}],
        },
    ]


def create_secrets(cluster: Cluster, folder: Path) -> None:
    """From files, as in the guide."""
    for name, (key, content) in SECRETS.items():
        file = folder / name
        file.write_bytes(content)
        cluster.kubectl("create", "secret", "generic", name, f"--from-file={key}={file}")


def wrong(name: str, key: str) -> Json:
    """A Secret with another key than the external cluster's."""
    text = {key: "not the key of the other side, but as long as one has to be"}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": text}


def right(cluster: Cluster, name: str) -> None:
    """Give a Secret the key of the external cluster."""
    key, content = SECRETS[name]
    script = {"data": {key: base64.b64encode(content).decode()}}
    cluster.patch("secret", name, script)


def reported(cluster: Cluster, reason: str, words: str = "") -> str:
    """Wait until the Controller's condition has a reason; its message."""

    def found(objects: dict[str, Json]) -> str | None:
        said = condition(objects[manifests.NAME], "Ready")
        fits = said.get("reason") == reason and words in said["message"]
        return said["message"] if fits else None

    return cluster.until("controllers", found, f"{reason} {words}", LONG_S)


def idle(cluster: Cluster, *nodes: str) -> None:
    """Wait until these nodes, and no others, are idle in slurmctld."""
    wanted = {name: {"IDLE"} for name in nodes}
    eventually(f"{nodes} are idle", lambda: cluster.states() == wanted, LONG_S, every=1)


def only(cluster: Cluster, role: str) -> str | None:
    """The one pod of a daemon, once there are no others and it is ready."""
    pods = cluster.pods(f"app.kubernetes.io/name={role}")
    return next((name for name, pod in pods.items() if len(pods) == 1 and ready(pod)), None)


def same_bytes(cluster: Cluster, pod: str, container: str, path: str, content: bytes) -> bool:
    """Whether a file of a container has exactly these bytes."""
    found = cluster.kubectl("exec", pod, "-c", container, "--", "sha256sum", path).split()[0]
    return found == hashlib.sha256(content).hexdigest()


def names_of(cluster: Cluster) -> dict[str, str]:
    """The names of an inside slurmctld that slurm.conf has, at its pod's address."""
    address = cluster.get("pods", POD)["status"]["podIP"]
    internal = f"{manifests.NAME}-controller-internal"
    space = cluster.namespace
    return {f"{POD}.{internal}.{space}": address, f"{manifests.NAME}-controller.{space}": address}


def server(cluster: Cluster) -> str:
    """Where an external slurmd gets its configuration from."""
    return f"{manifests.NAME}-controller.{cluster.namespace}:6817"


def network(site: Site, namespace: str) -> tuple[int, str]:
    """Exit status and output of `penstock network`."""
    command = [sys.executable, "-c", "from penstock.cli.main import main; main()", "network"]
    done = subprocess.run(
        [*command, "-n", namespace],
        env=site.node.env,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def asked(host: Host, cluster: Cluster) -> Json:
    """Nodes by an external slurmrestd."""
    url = f"http://{host.address}:6820/slurm/{PARSER}/nodes/"
    request = urllib.request.Request(url, headers={"X-SLURM-USER-TOKEN": cluster.token("slurm")})
    with urllib.request.urlopen(request, timeout=20) as answer:
        found: Json = json.load(answer)
    return found


def restarted(cluster: Cluster) -> dict[str, int]:
    """How often containers of workers were started."""
    return {
        f"{name}/{one['name']}": one["restartCount"]
        for name, pod in cluster.pods().items()
        for one in pod["status"]["containerStatuses"]
    }


def ran(output: str) -> list[str]:
    """The hosts that a job's tasks printed."""
    return sorted(output.split())


def accounted(run: Callable[..., str], job: int) -> None:
    """Wait until `sacct` there shows the job as it ended."""
    command = ("sacct", "-X", "-n", "-P", "-j", str(job), "-o", "State")
    eventually(
        f"sacct has job {job}", lambda: run(*command).strip() == "COMPLETED", LONG_S, every=1
    )


def shares(cluster: Cluster, nodeset: str, reason: str) -> str:
    """What a NodeSet warns of for a reason about the cgroup.conf; often nothing."""
    found = condition(cluster.get("nodesets", nodeset), "CgroupsShared")
    warns = (found.get("status"), found.get("reason")) == ("True", reason)
    return found["message"] if warns else ""
