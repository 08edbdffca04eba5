"""`penstock plan` names exactly the pods that then restart, for changes of each class and daemon.

Each change is planned, then applied, and what the plan said is compared with the pods that are
gone, or whose containers were started again, once all has settled.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e_kit import manifests, mariadb
from e2e_kit.api import Json, ready, restarts
from e2e_kit.cluster import Cluster
from e2e_kit.site import Site, eventually

PLAN = (str(Path(sys.executable).with_name("penstock")), "plan")
LONG_S = 180.0
OBJECTS = {
    "Accounting": "accountings",
    "Controller": "controllers",
    "RestApi": "restapis",
    "LoginSet": "loginsets",
    "NodeSet": "nodesets",
}
LOOPS = ("accounting", "controller", "restapi", "loginset", "nodeset")
KEYS = {
    "slurmKeyRef": {"name": "slurm-auth-slurm", "key": "slurm.key"},
    "jwtKeyRef": {"name": "slurm-auth-jwt", "key": "jwt.key"},
}
OTHER_IMAGE = "localhost/penstock-test/slurmctld:another"
SSSD = """[sssd]
services = nss, pam
domains = DEFAULT
[domain/DEFAULT]
id_provider = proxy
proxy_lib_name = files
proxy_pam_target = sssd-shadowutils
"""
ENV = [{"name": "COLOUR", "value": "blue"}]
LIMITS = {"requests": {"memory": "20Mi"}}
WORKERS = {"compute-0", "compute-1"}
SLURMCTLD = {"slurm-controller-0"}
RESTARTS, GOES = "Pods that restart:", r"deleted at once|drained, and deleted|are replaced within"

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


def declared() -> dict[str, Json]:
    """The objects of the cluster by kind, before any change."""
    storage = {
        "host": mariadb.NAME,
        "database": "records",
        "username": "records",
        "passwordKeyRef": {"name": "database", "key": "password"},
    }
    sssd: Json = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "sssd"},
        "stringData": {"sssd.conf": SSSD},
    }
    return {
        "Secret": sssd,
        "Accounting": manifests.of("Accounting", "records", **KEYS, storageConfig=storage),
        "Controller": manifests.controller(
            persistence={"enabled": True}, accountingRef={"name": "records"}
        ),
        "RestApi": manifests.restapi(),
        "LoginSet": manifests.loginset(sssdConfRef={"name": "sssd", "key": "sssd.conf"}),
        "NodeSet": manifests.nodeset(2),
    }


@dataclass
class Stage:
    """The cluster, and what is declared of it at the moment."""

    cluster: Cluster
    declared: dict[str, Json] = field(default_factory=declared)

    def plan(self, *changed: Json) -> set[str]:
        """The pods that end or are replaced by themselves, as the command says."""
        done = subprocess.run(
            [*PLAN, "-n", self.cluster.namespace, "-f", "-"],
            input=yaml.safe_dump_all(changed),
            env=self.cluster.site.node.env,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return named(done.stdout, self.cluster.namespace)

    def pods(self) -> dict[str, tuple[str, int]]:
        """Uid and restarts of each pod of ours."""
        ours = "app.kubernetes.io/name in (slurmctld,slurmd,slurmdbd,slurmrestd,login)"
        found = self.cluster.pods(ours)
        return {name: (one["metadata"]["uid"], restarts(one)) for name, one in found.items()}

    def settle(self) -> None:
        """Wait until the operator and the kubelet have done all that was declared."""
        eventually("all is as declared", self._settled, LONG_S)
        # Whoever had not seen the change yet has looked at each object now.
        before = {loop: self.cluster.site.reconciles(loop) for loop in LOOPS}
        mark = f"test.penstock.dev/seen={sum(before.values())}"
        every = ",".join(OBJECTS.values())
        self.cluster.kubectl("annotate", "--overwrite", every, "--all", mark)
        eventually(
            "each object was looked at",
            lambda: all(self.cluster.site.reconciles(loop) > before[loop] for loop in LOOPS),
        )
        eventually("all is as declared", self._settled, LONG_S)

    def _settled(self) -> bool:
        listed = self.cluster.site.api.list
        space = self.cluster.namespace
        objects = {kind: listed(resource, space) for kind, resource in OBJECTS.items()}
        (controller,), (nodeset,) = objects["Controller"], objects["NodeSet"]
        workers: Json = nodeset["status"]
        config: Json = controller["status"]
        keeps = nodeset["spec"].get("updateStrategy", {}).get("type") == "OnDelete"
        return (
            all(ready(one) for found in objects.values() for one in found)
            and config.get("configHash") == config.get("effectiveConfigHash")
            and workers.get("replicas") == nodeset["spec"]["replicas"]
            and (keeps or workers.get("updatedReplicas") == workers["replicas"])
            and all(map(_rolled_out, listed("statefulsets", space)))
            and all(map(_rolled_out, listed("deployments", space)))
            and all(
                ready(one) and "deletionTimestamp" not in one["metadata"]
                for one in listed("pods", space)
            )
        )


def _rolled_out(workload: Json) -> bool:
    spec, status = workload["spec"], workload["status"]
    return (
        status.get("observedGeneration") == workload["metadata"]["generation"]
        and status.get("replicas") == spec["replicas"]
        and status.get("updatedReplicas", 0) == spec["replicas"]
        and status.get("readyReplicas", 0) == spec["replicas"]
    )


def named(text: str, space: str) -> set[str]:
    """Names of the pods that a plan's text says end or are replaced without the user."""
    found: set[str] = set()
    title = ""
    for line in text.splitlines():
        if not line.startswith(" "):
            title = line
        elif title == RESTARTS:
            pods, _, _ = line.strip().partition(" (")
            found |= {pod.removeprefix(f"{space}/") for pod in pods.split(", ")}
        elif title == "Workers:" and re.search(GOES, line):
            (pods,) = re.findall(r" pods? \(([^)]*)\)", line)
            found |= set(re.split(r", | and ", pods))
    return found


@pytest.fixture(scope="module")
def stage(site: Site, clusters: Callable[[str], Cluster]) -> Stage:
    mariadb.load(site.node)
    tag = ("/usr/bin/ctr", "--namespace", "k8s.io", "images", "tag", "--force")
    site.node.run(*tag, site.images.slurm.replace("{role}", "slurmctld"), OTHER_IMAGE)
    cluster = clusters("planned")
    stage = Stage(cluster)
    cluster.create(
        mariadb.password("database", "one"),
        *mariadb.objects(cluster, {"records": "one"}),
        *stage.declared.values(),
    )
    cluster.until_idle("compute-0", "compute-1", timeout=LONG_S)
    stage.settle()
    return stage


def conf(*lines: str) -> str:
    return "\n".join([*manifests.EXTRA_CONF.splitlines(), *lines]) + "\n"


MESSAGE, BINDS = "MessageTimeout=23", "CommunicationParameters=NoCtldInAddrAny"
IPV6 = "CommunicationParameters=NoCtldInAddrAny,EnableIPv6"
PARTITION: Json = {
    "apiVersion": "penstock.dev/v1alpha1",
    "kind": "Partition",
    "metadata": {"name": "wide"},
    "spec": {"controllerRef": {"name": manifests.NAME}, "nodeSets": ["compute"]},
}
CHANGES: list[tuple[str, str, Json, set[str] | str]] = [
    ("a key for a reconfigure", "Controller", {"extraConf": conf(MESSAGE)}, set()),
    ("a key for slurmctld's start", "Controller", {"extraConf": conf(MESSAGE, BINDS)}, SLURMCTLD),
    ("a key for slurmd's start too", "Controller", {"extraConf": conf(MESSAGE, IPV6)}, SLURMCTLD),
    ("slurmctld's image", "Controller", {"slurmctld": {"image": OTHER_IMAGE}}, SLURMCTLD),
    ("slurmrestd's resources", "RestApi", {"slurmrestd": {"resources": LIMITS}}, "slurmrestd"),
    ("a partition", "Partition", PARTITION["spec"], set()),
    ("sshd's configuration", "LoginSet", {"extraSshdConfig": "LogLevel VERBOSE\n"}, "login"),
    ("the environment of a login", "LoginSet", {"login": {"env": ENV}}, "login"),
    ("sssd.conf of a login", "Secret", {"sssd.conf": SSSD.replace("nss, pam", "nss")}, "login"),
    ("slurmdbd.conf", "Accounting", {"extraConf": "DebugLevel=verbose\n"}, set()),
    ("slurmdbd's resources", "Accounting", {"slurmdbd": {"resources": LIMITS}}, "slurmdbd"),
    ("workers, more of them", "NodeSet", {"replicas": 3}, set()),
    ("workers, fewer of them", "NodeSet", {"replicas": 2}, {"compute-2"}),
    ("the environment of workers", "NodeSet", {"slurmd": {"env": ENV}}, WORKERS),
    (
        "that of workers that stay until somebody deletes them",
        "NodeSet",
        {
            "updateStrategy": {"type": "OnDelete"},
            "slurmd": {"env": [{"name": "COLOUR", "value": "green"}]},
        },
        set(),
    ),
]


@pytest.mark.parametrize(
    ("kind", "spec", "who"),
    [(kind, spec, who) for _, kind, spec, who in CHANGES],
    ids=[what for what, *_ in CHANGES],
)
def test_the_pods_that_the_plan_names_restart_and_no_others(
    stage: Stage, kind: str, spec: Json, who: set[str] | str
) -> None:
    found = deepcopy(stage.declared.get(kind, PARTITION))
    part = "stringData" if kind == "Secret" else "spec"
    found[part] = {**found[part], **spec}
    _compare(stage, found, who=who)


def test_labels_and_annotations_of_the_objects_restart_nothing(stage: Stage) -> None:
    """Also the labels that the pods take over."""
    every: list[Json] = []
    for kind in OBJECTS:
        found = deepcopy(stage.declared[kind])
        labels = {"team": "hpc", "helm.sh/chart": "slurm-9", "app.kubernetes.io/version": "9"}
        found["metadata"] |= {"labels": labels, "annotations": {"note": "changed"}}
        every.append(found)
    _compare(stage, *every, who=set())
    selector = "helm.sh/chart=slurm-9,app.kubernetes.io/version=9"
    eventually(
        "it is on the pods", lambda: stage.pods().keys() == stage.cluster.uids(selector).keys()
    )


def _compare(stage: Stage, *changed: Json, who: Any) -> None:
    """Plan a change, make it, and compare; `who` are pods, or the label of all of a daemon's."""
    before = stage.pods()
    if isinstance(who, str):
        who = set(stage.cluster.uids(f"app.kubernetes.io/name={who}"))
    told = stage.plan(*changed)
    stage.cluster.apply(*changed)
    for one in changed:
        stage.declared[one["kind"]] = one
    assert told == who, "the plan"
    if told:
        eventually(f"{told} restart", lambda: told <= _restarted(before, stage.pods()), LONG_S)
    stage.settle()
    assert _restarted(before, stage.pods()) == told


def _restarted(before: dict[str, tuple[str, int]], now: dict[str, tuple[str, int]]) -> set[str]:
    return {name for name, one in before.items() if now.get(name) != one}
