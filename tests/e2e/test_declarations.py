"""A chain of good and bad declarations while a job runs: the job, its pod and slurmctld stay."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import yaml

from e2e_kit import manifests
from e2e_kit.api import Json, condition, ready, restarts
from e2e_kit.cluster import Cluster
from e2e_kit.site import Site, eventually
from penstock.local.errors import LocalError

SECONDS = 120.0
JOB_S = 600
"""Longer than the chain; the job is told to end when the chain has."""
PLACES = {
    "Controller": ("controllers", manifests.NAME),
    "RestApi": ("restapis", manifests.NAME),
    "NodeSet": ("nodesets", "compute"),
    "LoginSet": ("loginsets", "login"),
}
SCRIPTS = {
    "prolog": "prologScriptRefs",
    "epilog": "epilogScriptRefs",
    "slurmctld-prolog": "prologSlurmctldScriptRefs",
    "slurmctld-epilog": "epilogSlurmctldScriptRefs",
}
"""By the ConfigMap and the mark that its script leaves: the field that names it."""


def controller(extra: str = "", **spec: object) -> Json:
    scripts = {field: [{"name": name}] for name, field in SCRIPTS.items()}
    return manifests.controller(manifests.EXTRA_CONF + extra, **scripts, **spec)


def nodeset(replicas: int = 1, **spec: object) -> Json:
    made = manifests.nodeset(replicas, updateStrategy={"type": "OnDelete"})
    return {**made, "spec": {**made["spec"], **spec}}


BASE: dict[str, Json] = {
    "Controller": controller(),
    "RestApi": manifests.restapi(),
    "NodeSet": nodeset(),
    "LoginSet": manifests.loginset(),
}
REFUSED: list[tuple[Json, str]] = [
    (nodeset(replicas=-1), "spec.replicas"),
    (nodeset(extraConf="Weight"), "extraConf"),
    (controller(clusterName="other"), "clusterName is immutable"),
    (manifests.loginset(replicas="two"), "spec.replicas"),
    (manifests.restapi(service={"port": 65536}), "spec.service.port"),
]
MISSHAPEN: list[tuple[Json, str]] = [
    (nodeset(slurmd={"env": "A=b"}), "spec.slurmd.env"),
    (nodeset(template={"spec": {"tolerations": ["x"]}}), "spec.template.spec.tolerations[0]"),
    (controller(slurmctld={"resources": {"limits": {"cpu": "much"}}}), "limits.cpu"),
    (manifests.loginset(login={"ports": [{"name": "login", "containerPort": "x"}]}), "ports[0]"),
]
"""What the webhook refuses. A webhook that is late is not waited for: then a condition says it."""
BAD: list[tuple[Json, str]] = [
    (controller(jwksKeyRef={"name": "absent", "key": "jwks.json"}), "ConfigMap absent"),
    (controller("BogusKey=1\n"), "BogusKey"),
    (manifests.restapi(slurmrestd={"sampleField": 1}), "sampleField"),
]
"""What the API server takes, and a word of what the operator says of it."""
GOOD: list[Json] = [
    controller("MinJobAge=7\n"),
    nodeset(extraConf="Weight=7", partition={"enabled": True, "config": "MaxTime=60"}),
    manifests.restapi(template={"metadata": {"labels": {"sample": "yes"}}}),
    manifests.loginset(extraSshdConfig="MaxAuthTries 3"),
]


@pytest.fixture(scope="module")
def cluster(clusters: Callable[[str], Cluster]) -> Cluster:
    cluster = clusters("chain")
    scripts = [
        manifests.config_map(name, **{f"{name}.sh": f"#!/bin/sh\n: > /tmp/{name}-$SLURM_JOB_ID\n"})
        for name in SCRIPTS
    ]
    cluster.create(*scripts, *BASE.values())
    for resource, name in PLACES.values():
        cluster.until_ready(resource, name)
    cluster.until_idle("compute-0")
    return cluster


def test_a_job_outlives_a_chain_of_declarations_and_their_reverts(
    site: Site, cluster: Cluster
) -> None:
    """Feature row 12."""
    job = cluster.submit(f"timeout {JOB_S} sh -c 'until test -e /tmp/end; do sleep 1; done'")
    cluster.until_job(job, "RUNNING")
    before = cluster.uids("app.kubernetes.io/name=slurmd")
    slurmctld = cluster.get("pods", f"{manifests.NAME}-controller-0")["metadata"]["uid"]
    for wrong, words in REFUSED:
        text = yaml.dump(wrong)
        assert words in site.rejected("apply", "-n", cluster.namespace, "-f", "-", stdin=text)
    for wrong, words in MISSHAPEN:
        said = refusal(cluster, wrong)
        if not said:
            until_told(cluster, wrong["kind"], words)
            revert(cluster, wrong["kind"])
        assert words in (said or words)
    for wrong, words in BAD:
        cluster.apply(wrong)
        until_told(cluster, wrong["kind"], words)
        revert(cluster, wrong["kind"])
    for right in GOOD:
        cluster.apply(right)
        until_well(cluster, right["kind"])
        revert(cluster, right["kind"])
    assert set(cluster.rest("GET", f"job/{job}")["jobs"][0]["job_state"]) == {"RUNNING"}
    assert cluster.uids("app.kubernetes.io/name=slurmd") == before
    pod = cluster.get("pods", f"{manifests.NAME}-controller-0")
    assert (pod["metadata"]["uid"], container_restarts(pod, "slurmctld")) == (slurmctld, 0)
    assert restarts(cluster.get("pods", "compute-0")) == 0
    cluster.on("compute-0", "touch /tmp/end")
    done = cluster.until_job(job, "COMPLETED", "FAILED", "CANCELLED", "NODE_FAIL")
    assert (done["JobState"], done["Restarts"]) == ("COMPLETED", "0")
    eventually("all four scripts ran", lambda: ran(cluster, job) == set(SCRIPTS))


def refusal(cluster: Cluster, wrong: Json) -> str:
    """What is said to an object that is refused; empty when it is taken."""
    try:
        cluster.apply(wrong)
    except LocalError as error:
        return str(error)
    return ""


def ran(cluster: Cluster, job: int) -> set[str]:
    """Which of the four scripts left its mark, on the worker or in slurmctld's pod."""
    command = "cd /tmp; ls | grep -e log- || true"
    there = {*cluster.on("compute-0", command).split(), *cluster.run("sh", "-c", command).split()}
    return {name for name in SCRIPTS if f"{name}-{job}" in there}


def container_restarts(pod: Json, name: str) -> int:
    """How often one container was started again."""
    return next(c for c in pod["status"]["containerStatuses"] if c["name"] == name)["restartCount"]


def revert(cluster: Cluster, kind: str) -> None:
    """Declare the first state again; it must come back by itself."""
    cluster.apply(BASE[kind])
    until_well(cluster, kind)


def until_well(cluster: Cluster, kind: str) -> None:
    """Wait until the object is as it is declared now."""
    resource, name = PLACES[kind]
    cluster.until(
        resource,
        lambda found: (current(found[name]) and ready(found[name])) or None,
        f"{kind} is well",
        SECONDS,
    )


def until_told(cluster: Cluster, kind: str, words: str) -> None:
    """Wait until the object says what is wrong with it as it is declared now."""
    resource, name = PLACES[kind]

    def told(found: dict[str, Json]) -> bool | None:
        one = found[name]
        said = condition(one, "Ready")
        return (current(one) and not ready(one) and words in said["message"]) or None

    cluster.until(resource, told, f"{kind} says {words}", SECONDS)


def current(obj: Json) -> bool:
    """Whether the status is about what is declared."""
    return obj.get("status", {}).get("observedGeneration") == obj["metadata"]["generation"]
