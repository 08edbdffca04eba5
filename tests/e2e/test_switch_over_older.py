"""A cluster with Slurm 24.11 in pods of slurm-operator's form is taken over while a job runs.

Scenario S035 with the oldest supported release, from Debian's packages. slurm-operator's own
probes ask for HTTP, which that release does not serve: here they connect only.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from typing import Any

import pytest
import yaml

from e2e_kit import manifests
from e2e_kit.api import Json, condition, restarts
from e2e_kit.cluster import Cluster
from e2e_kit.site import Site, eventually
from penstock.local.images import build_slurm
from penstock.local.recipes import OLDEST, reference
from penstock.render.parts import ssh_host_keys as hostkeys
from penstock.simulation.slurm_operator import ACTIVE, MANAGER, Upstream

CORDON = "nodeset.slinky.slurm.net/pod-cordon"
SLURMCTLD = f"{manifests.NAME}-controller-0"
WORKERS = ("compute-0", "compute-1")
KINDS = (("controllers", "slurm"), ("restapis", "slurm"), ("nodesets", "compute"))
SECONDS = 240.0

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def stopped(site: Site) -> Generator[Site]:
    """The site with images of 24.11, without an operator until a test starts it."""
    built = build_slurm(OLDEST)
    if not {one.exact for one in built.values()} <= set(site.node.images()):
        for path in {one.path for one in built.values()}:
            site.node.import_image(path)
    with site.without_operator():
        yield site


@pytest.fixture(scope="module")
def cluster(clusters: Callable[[str], Cluster], stopped: Site) -> Cluster:
    """Objects of the kinds, with what slurm-operator made of them; nobody looks after it."""
    del stopped
    cluster = clusters("oldswitched")
    cluster.parser = "v0.0.42"
    cluster.create(*_declared())
    kinds = "controllers,restapis,nodesets,secrets,configmaps"
    stored: list[Json] = json.loads(cluster.kubectl("get", kinds, "-o", "json"))["items"]
    upstream = Upstream(stored, host_keys=hostkeys.generate(), http=False)
    (workers,) = upstream.of("NodeSet")
    pods = [upstream.worker(workers, ordinal) for ordinal in range(len(WORKERS))]
    text = yaml.safe_dump_all([*upstream.made(), *pods])
    cluster.kubectl("create", f"--field-manager={MANAGER}", "-f", "-", stdin=text)
    status = json.dumps({"status": upstream.status(workers)})
    patch = ("patch", "nodeset", "compute", "--subresource=status", "--type=merge", "-p", status)
    cluster.kubectl(*patch)
    cluster.until("pods", lambda pods: SLURMCTLD in pods, "slurmctld has a pod")
    cluster.kubectl("label", "pod", SLURMCTLD, f"{ACTIVE}=true")
    cluster.until_idle(*WORKERS, timeout=SECONDS)
    return cluster


def _of(role: str) -> Json:
    return {"image": reference(role, OLDEST.tag), "args": [], "resources": {}}


def _declared() -> list[Json]:
    refs: dict[str, Any] = {}
    secrets: list[Json] = []
    for kind in ("slurm", "jwt"):
        name = f"{manifests.NAME}-auth-{kind}"
        refs[f"{kind}KeyRef"] = {"name": name, "key": f"{kind}.key"}
        secret: Json = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}}
        secrets.append({**secret, "stringData": {f"{kind}.key": kind * 20}})
    claim = {
        "enabled": True,
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    }
    return [
        *secrets,
        manifests.controller(
            persistence=claim, slurmctld=_of("slurmctld"), logfile=_of("slurmctld"), **refs
        ),
        manifests.restapi(slurmrestd=_of("slurmrestd")),
        _nodeset(len(WORKERS)),
    ]


def _nodeset(replicas: int) -> Json:
    return manifests.nodeset(replicas, slurmd=_of("slurmd"), logfile=_of("slurmd"))


def state(cluster: Cluster) -> dict[str, tuple[str, int]]:
    """Uid and restarts of each pod."""
    pods = cluster.pods("").items()
    return {name: (pod["metadata"]["uid"], restarts(pod)) for name, pod in pods}


def test_a_24_11_cluster_of_slurm_operator_is_taken_over_under_a_job(cluster: Cluster) -> None:
    """S035: no pod is deleted, drained or replaced, and then a drain and a scale work."""
    job = cluster.submit("sleep 900", "--nodelist=compute-0", "--output=/dev/null", "--mem=50")
    cluster.until_job(job, "RUNNING")
    before = state(cluster)
    cluster.site.operators(1)
    for resource, name in KINDS:
        cluster.until_ready(resource, name, timeout=SECONDS)
    cluster.poke(3)
    for resource, name in KINDS[:2]:
        told = condition(cluster.get(resource, name), "PodsAdopted")
        assert (told["status"], told["reason"]) == ("True", "PodsAsTheyWere")
    status = cluster.get("nodesets", "compute")["status"]
    assert status["updatedReplicas"] == len(WORKERS)
    assert state(cluster) == before
    writes = cluster.site.operator_writes(cluster.namespace)
    assert not [one for one in writes if (one.verb, one.resource) == ("delete", "pods")]
    assert all("DRAIN" not in states for states in cluster.states().values())

    cluster.kubectl("annotate", "pod", "compute-1", f"{CORDON}=true")
    eventually("it drains", lambda: "DRAIN" in cluster.states()["compute-1"])
    assert cluster.node("compute-1")["reason"].startswith("slurm-operator: ")
    cluster.kubectl("annotate", "pod", "compute-1", f"{CORDON}-")
    eventually("it is back", lambda: cluster.states()["compute-1"] == {"IDLE"})

    cluster.apply(_nodeset(3))
    eventually("one more", lambda: cluster.states().get("compute-2") == {"IDLE"}, SECONDS)
    cluster.until_ready("nodesets", "compute", timeout=SECONDS)
    cluster.apply(_nodeset(1))
    cluster.until("pods", lambda pods: not {"compute-1", "compute-2"} & set(pods), "two went")
    eventually("their records too", lambda: set(cluster.states()) == {"compute-0"})
    kept = {name: before[name] for name in before if name != "compute-1"}
    assert state(cluster) == kept
    assert cluster.job(job)["JobState"] == "RUNNING"
    cluster.run("scancel", str(job))
    cluster.until_job(job, "CANCELLED")
