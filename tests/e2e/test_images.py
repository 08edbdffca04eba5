"""The images on a real kubelet, without the operator: what they promise to whoever runs them."""

import json
import secrets
import subprocess
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from e2e_kit.images import give_all
from e2e_kit.release import PARSER, RELEASE, answers
from penstock.local.errors import LocalError
from penstock.local.images import build_all
from penstock.local.node import Node

CONF = """\
ClusterName=images
SlurmUser=slurm
SlurmctldHost=ctl
SlurmdUser=root
StateSaveLocation=/var/spool/slurmctld/images
SlurmdSpoolDir=/var/spool/slurmd
MaxNodeCount=16
SlurmctldLogFile=/var/log/slurm/slurmctld.log
SlurmdLogFile=/var/log/slurm/slurmd.log
AuthType=auth/slurm
CredType=cred/slurm
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key=/etc/slurm/jwt.key
AuthInfo=use_client_ids
SlurmctldParameters=enable_configless,reconfig_on_restart
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
PrologFlags=contain
ReturnToService=2
NodeSet=compute Feature=compute
PartitionName=compute Nodes=compute Default=YES
"""
SSHD = "Include /etc/ssh/sshd_config.d/*.conf\nUsePAM yes\nSubsystem sftp internal-sftp\n"
NOBODY = {"runAsUser": 65534, "runAsGroup": 65534, "runAsNonRoot": True}
SLURM = {"runAsUser": 401, "runAsGroup": 401, "runAsNonRoot": True, "fsGroup": 401}
Json = dict[str, Any]


@dataclass(frozen=True)
class Cluster:
    """Pods ctl, rest, w-0, w-1 and login in a namespace of their own."""

    node: Node
    namespace: str
    key: Path

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        return self.node.kubectl("-n", self.namespace, *arguments, stdin=stdin)

    def run(self, pod: str, script: str) -> str:
        container = {"ctl": "slurmctld"}.get(pod, "main")
        return self.kubectl("exec", pod, "-c", container, "--", "/bin/sh", "-c", script).strip()

    def apply(self, *objects: Json) -> None:
        items = [*objects]
        self.kubectl(
            "apply",
            "-f",
            "-",
            stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}),
        )

    def pod(self, name: str) -> Json:
        return json.loads(self.kubectl("get", "pod", name, "-o", "json"))

    def restarts(self, name: str) -> int:
        return sum(s["restartCount"] for s in self.pod(name)["status"]["containerStatuses"])

    def eventually(self, what: Callable[[], bool], seconds: float = 60) -> None:
        limit = time.monotonic() + seconds
        while not what():
            assert time.monotonic() < limit, "it did not happen in time"
            time.sleep(0.2)

    def ssh(self, host: str, user: str, *command: str) -> subprocess.CompletedProcess[str]:
        address = self.pod(host)["status"]["podIP"]
        options = ["StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel=ERROR"]
        flags = [word for option in (*options, "BatchMode=yes") for word in ("-o", option)]
        return subprocess.run(
            ["ssh", "-i", str(self.key), *flags, f"{user}@{address}", *command],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )


@pytest.fixture(scope="module")
def references(kube_node: Node) -> dict[str, str]:
    return give_all(kube_node, build_all(RELEASE).values())


@pytest.fixture(scope="module")
def cluster(
    kube_node: Node, references: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Generator[Cluster]:
    namespace = f"images-{secrets.token_hex(3)}"
    key = tmp_path_factory.mktemp("ssh") / "id"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    kube_node.kubectl("create", "namespace", namespace)
    made = Cluster(kube_node, namespace, key)
    config = {"slurm.conf": CONF, "cgroup.conf": "CgroupPlugin=disabled\n", "sshd_config": SSHD}
    config["authorized_keys"] = key.with_suffix(".pub").read_text()
    keys = {"slurm.key": secrets.token_hex(512), "jwt.key": secrets.token_hex(32)}
    made.apply(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "config"}, "data": config},
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}, "stringData": keys},
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "nodes"},
            "spec": {
                "clusterIP": "None",
                "selector": {"app": "slurm"},
                "publishNotReadyAddresses": True,
            },
        },
        controller(namespace, references, "ctl"),
        restapi(namespace, references),
        worker(namespace, references, "w-0", sshd=False),
        worker(namespace, references, "w-1", sshd=True),
        login(namespace, references),
    )
    try:
        made.kubectl("wait", "--for=condition=Ready", "pod", "--all", "--timeout=120s")
        made.eventually(lambda: made.run("ctl", "sinfo -h -o %D -t idle") == "2")
        yield made
    finally:
        kube_node.kubectl("delete", "namespace", namespace, "--wait=false")


def pod(
    namespace: str, name: str, containers: list[Json], volumes: list[Json], **spec: Any
) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "slurm"}},
        "spec": {
            "hostname": name,
            "subdomain": "nodes",
            "dnsConfig": {"searches": [f"nodes.{namespace}.svc.cluster.local"]},
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 3,
            "containers": containers,
            "volumes": volumes,
            **spec,
        },
    }


def projected(name: str, mode: int, config: tuple[str, ...], keys: tuple[str, ...]) -> Json:
    sources = [
        {"configMap": {"name": "config", "items": [{"key": k, "path": k} for k in config]}},
        {"secret": {"name": "keys", "items": [{"key": k, "path": k} for k in keys]}},
    ]
    return {
        "name": name,
        "projected": {"defaultMode": mode, "sources": [s for s in sources if any(s.values())]},
    }


def mount(name: str, path: str, **more: Any) -> Json:
    return {"name": name, "mountPath": path, **more}


def empty(name: str) -> Json:
    return {"name": name, "emptyDir": {"medium": "Memory"}}


def controller(namespace: str, references: dict[str, str], name: str, command: str = "") -> Json:
    """The pod of a Controller, with its logfile sidecar on a fifo."""
    logfile = "mkfifo -m 777 $SOCKET; trap 'exit 0' TERM; while true; do cat $SOCKET; sleep 1; done"
    sidecar = {
        "name": "logfile",
        "image": references["slurm"],
        "restartPolicy": "Always",
        "command": ["sh", "-c", logfile],
        "env": [{"name": "SOCKET", "value": "/var/log/slurm/slurmctld.log"}],
        "volumeMounts": [mount("logs", "/var/log/slurm")],
    }
    main = {
        "name": "slurmctld",
        "image": references["slurmctld"],
        "args": ["-v"],
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "startupProbe": {
            **answers("/livez", 6817),
            "periodSeconds": 1,
            "failureThreshold": 60,
        },
        "volumeMounts": [
            mount("etc", "/etc/slurm", readOnly=True),
            mount("run", "/run"),
            mount("logs", "/var/log/slurm"),
            mount("state", "/var/spool/slurmctld/images"),
        ],
    }
    volumes = [
        projected("etc", 0o610, ("slurm.conf", "cgroup.conf"), ("slurm.key", "jwt.key")),
        *(empty(name) for name in ("run", "logs", "state")),
    ]
    return pod(namespace, name, [main], volumes, securityContext=SLURM, initContainers=[sidecar])


def restapi(namespace: str, references: dict[str, str]) -> Json:
    env = {
        "SLURM_JWT": "daemon",
        "SLURMRESTD_SECURITY": "disable_unshare_files,disable_unshare_sysv",
    }
    main = {
        "name": "main",
        "image": references["slurmrestd"],
        "args": ["-s", "openapi/slurmctld", "0.0.0.0:6820"],
        "env": [{"name": k, "value": v} for k, v in env.items()],
        "readinessProbe": {"tcpSocket": {"port": 6820}, "periodSeconds": 1},
        "volumeMounts": [mount("etc", "/etc/slurm", readOnly=True)],
    }
    volumes = [projected("etc", 0o600, ("slurm.conf",), ("slurm.key",))]
    return pod(namespace, "rest", [main], volumes, securityContext={**NOBODY, "fsGroup": 65534})


def worker(namespace: str, references: dict[str, str], name: str, *, sshd: bool) -> Json:
    mounts = [mount("etc", "/etc/slurm", readOnly=True), mount("logs", "/var/log/slurm")]
    if sshd:
        mounts.append(mount("ssh", "/etc/ssh/sshd_config", subPath="sshd_config", readOnly=True))
    conf = "'Features=compute Topology='\"$SLINKY_TOPOLOGY\"' Weight=10'"
    main = {
        "name": "main",
        "image": references["slurmd"],
        "args": ["-Z", "--conf-server", "ctl:6817", "--conf", conf],
        "env": [
            {"name": "POD_CPUS", "value": "1"},
            {"name": "POD_MEMORY", "value": "1000"},
            {"name": "SLINKY_TOPOLOGY", "value": ""},
        ],
        "securityContext": {"privileged": True},
        "readinessProbe": {**answers("/readyz", 6818), "periodSeconds": 1},
        "volumeMounts": mounts,
    }
    volumes = [
        projected("etc", 0o600, (), ("slurm.key",)),
        projected("ssh", 0o600, ("sshd_config",), ()),
        empty("logs"),
    ]
    return pod(namespace, name, [main], volumes)


def login(namespace: str, references: dict[str, str]) -> Json:
    """The pod of a LoginSet; initconf gives the key to sackd's user, as the operator's does."""
    script = "cp /mnt/slurm/slurm.key /mnt/etc/ && chown 401:401 /mnt/etc/* && chmod 600 /mnt/etc/*"
    init = {
        "name": "initconf",
        "image": references["slurm"],
        "command": ["sh", "-c", script],
        "volumeMounts": [mount("keys", "/mnt/slurm"), mount("etc", "/mnt/etc")],
    }
    main = {
        "name": "main",
        "image": references["login"],
        "env": [{"name": "SACKD_OPTIONS", "value": "--conf-server ctl:6817"}],
        "readinessProbe": {
            "exec": {"command": ["test", "-S", "/run/slurm/sack.socket"]},
            "periodSeconds": 1,
        },
        "volumeMounts": [
            mount("etc", "/etc/slurm", readOnly=True),
            mount("run", "/run/slurm"),
            mount("ssh", "/etc/ssh/sshd_config", subPath="sshd_config", readOnly=True),
            mount("ssh", "/root/.ssh/authorized_keys", subPath="authorized_keys", readOnly=True),
        ],
    }
    volumes = [
        projected("keys", 0o600, (), ("slurm.key",)),
        projected("ssh", 0o600, ("sshd_config", "authorized_keys"), ()),
        *(empty(name) for name in ("etc", "run")),
    ]
    return pod(namespace, "login", [main], volumes, initContainers=[init])


def test_a_job_runs_on_two_dynamic_workers(cluster: Cluster):
    """Feature row 24."""
    assert sorted(cluster.run("ctl", "srun -N2 hostname").split()) == ["w-0", "w-1"]


def test_the_pods_limits_show_on_the_slurm_node(cluster: Cluster):
    """D3, feature row 51."""
    fields = pairs(cluster.run("ctl", "scontrol show node w-0 -o"))
    host = pairs(cluster.run("w-0", "slurmd -C"))
    spare = int(host["CPUs"]) // int(host["ThreadsPerCore"]) - 1
    assert int(fields.get("CoreSpecCount", "0")) == spare
    assert int(fields["RealMemory"]) - int(fields["MemSpecLimit"]) == 1000
    assert fields["Weight"] == "10", "the parameter after an empty Topology= was lost"


def pairs(text: str) -> dict[str, str]:
    return dict(word.split("=", 1) for word in text.split() if "=" in word)


def test_reconfigure_replaces_slurmctld_and_keeps_the_container(cluster: Cluster):
    pids = {cluster.run("ctl", "pgrep -o slurmctld")}
    for _ in range(3):
        cluster.run("ctl", "scontrol reconfigure")
        pids.add(cluster.run("ctl", "pgrep -o slurmctld"))
    assert len(pids) == 4
    cluster.eventually(lambda: cluster.run("ctl", "scontrol ping").endswith("is UP"))
    assert sorted(cluster.run("ctl", "srun -N2 hostname").split()) == ["w-0", "w-1"]
    assert [cluster.restarts(name) for name in ("ctl", "w-0", "w-1", "login")] == [0, 0, 0, 0]


def test_a_file_that_slurmctld_rejects_shows_its_words(
    cluster: Cluster, references: dict[str, str]
):
    """S059."""
    bad = {"slurm.conf": CONF.replace("SlurmctldHost=ctl", "SlurmctldHost=bad") + "BogusKey=1\n"}
    refused = controller(cluster.namespace, references, "bad")
    refused["spec"]["volumes"][0]["projected"]["sources"][0]["configMap"] = {"name": "bad"}
    cluster.apply(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "bad"}, "data": bad}, refused
    )
    container = "{.status.containerStatuses[0]"
    cluster.kubectl(
        "wait",
        f"--for=jsonpath={container}.lastState.terminated.exitCode}}=1",
        "pod/bad",
        "--timeout=60s",
    )
    status = cluster.pod("bad")["status"]["containerStatuses"][0]
    message = status["lastState"]["terminated"]["message"]
    assert "unrecognized key: BogusKey" in message
    cluster.kubectl("delete", "pod", "bad")


def test_a_job_outlives_its_slurmd(cluster: Cluster):
    job = cluster.run("ctl", "sbatch --parsable -o /dev/null -w w-0 --wrap 'sleep 6'")
    cluster.eventually(lambda: cluster.run("ctl", f"squeue -h -j {job} -o %T") == "RUNNING")
    cluster.eventually(lambda: "slurmstepd" in cluster.run("w-0", "ps -e -o comm"))
    cluster.run("w-0", "kill -9 $(pgrep -o -x slurmd)")
    state = f"scontrol show job {job} -o | grep -o 'JobState=[A-Z]*'"
    ends = ("JobState=RUNNING", "JobState=COMPLETING")
    cluster.eventually(lambda: cluster.run("ctl", state) not in ends)
    assert cluster.run("ctl", state) == "JobState=COMPLETED"
    assert cluster.restarts("w-0") == 0


def test_root_works_with_slurm_over_ssh(cluster: Cluster):
    """S039, S055."""
    script = "srun -N2 hostname | sort && sinfo -h -o %P && command -v nc tar sftp >/dev/null"
    done = cluster.ssh("login", "root", script)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["w-0", "w-1", "compute*"]


def test_a_worker_lets_in_those_with_a_job_there(cluster: Cluster):
    """D30, feature row 52."""
    key = cluster.key.with_suffix(".pub").read_text().strip()
    folder = "/home/alice/.ssh"
    add = (
        "useradd -m -u 2001 -s /bin/sh alice && "
        f"install -d -o alice -m 700 {folder} && echo '{key}' > {folder}/authorized_keys"
    )
    # A user is a number to Slurm: login, worker and slurmctld must know the same one.
    for name in ("login", "w-1"):
        cluster.run(name, add)
    assert cluster.run("w-0", "pgrep -x sshd || echo none") == "none"
    assert cluster.ssh("w-1", "alice", "true").returncode != 0
    submit = "cd /tmp && sbatch --parsable -w w-1 --wrap 'sleep 60'"
    job = cluster.ssh("login", "alice", submit).stdout.strip()
    cluster.eventually(lambda: cluster.run("ctl", f"squeue -h -j {job} -o %T") == "RUNNING")
    cluster.eventually(lambda: cluster.ssh("w-1", "alice", "true").returncode == 0)
    cluster.run("ctl", f"scancel {job}")


def test_slurmrestd_answers_to_a_token(cluster: Cluster):
    token = cluster.run("ctl", "scontrol token username=root lifespan=60").removeprefix(
        "SLURM_JWT="
    )
    url = f"http://rest:6820/slurm/{PARSER}/ping/"
    ask = (
        "import json, urllib.request as u; "
        f"r = u.Request('{url}', headers={{'X-SLURM-USER-TOKEN': '{token}'}}); "
        "print(json.load(u.urlopen(r, timeout=10))['pings'][0]['responding'])"
    )
    found = cluster.kubectl("exec", "login", "--", "python3", "-c", ask)
    assert found.strip() == "True"


def test_the_operators_image_is_bare_and_runs_restricted(
    cluster: Cluster, references: dict[str, str]
):
    unwanted = ["sh", "bash", "apt-get", "dpkg", "pip", "pip3", "perl", "gcc", "cc", "ld", "uv"]
    look = (
        "import shutil, pathlib, penstock.kube, penstock.controllers, aiohttp, cryptography, ssl; "
        f"print([n for n in {unwanted!r} if shutil.which(n)], "
        "[m for m in ('pip', 'ensurepip') if __import__('importlib.util').util.find_spec(m)]); "
        "pathlib.Path('/x').write_text('')"
    )
    main = {
        "name": "main",
        "image": references["operator"],
        "command": ["/usr/bin/python3", "-c", look],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }
    cluster.apply(pod(cluster.namespace, "operator", [main], [], restartPolicy="Never"))
    cluster.kubectl(
        "wait", "--for=jsonpath={.status.phase}=Failed", "pod/operator", "--timeout=60s"
    )
    said = cluster.kubectl("logs", "operator")
    # What the two streams say is in the log in either order.
    assert "[] []" in said.splitlines()
    assert "Read-only file system: '/x'" in said
    with pytest.raises(LocalError):
        cluster.kubectl("exec", "operator", "--", "true")
