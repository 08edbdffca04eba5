"""`penstock plan` on a real cluster: it changes nothing, and what it says is what then happens."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from e2e_kit import manifests
from e2e_kit.api import Json, restarts
from e2e_kit.cluster import Cluster
from e2e_kit.site import eventually

PLAN = (str(Path(sys.executable).with_name("penstock")), "plan")
KINDS = ("controllers", "nodesets", "configmaps", "pods", "statefulsets")


@pytest.fixture(scope="module")
def cluster(clusters: Callable[[str], Cluster]) -> Cluster:
    cluster = clusters("plan")
    cluster.create(manifests.controller(), manifests.restapi(), manifests.nodeset(2))
    # With all objects: a copy of the configuration is made once that is in effect.
    cluster.until_ready("controllers", "slurm")
    cluster.until_ready("nodesets", "compute")
    cluster.until_idle("compute-0", "compute-1")
    return cluster


def plan(cluster: Cluster, *documents: Json) -> str:
    """What the command says."""
    node = cluster.site.node
    done = subprocess.run(
        [*PLAN, "-n", cluster.namespace, "-f", "-"],
        input=yaml.safe_dump_all(documents),
        env=node.env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def versions(cluster: Cluster) -> dict[str, str]:
    found = cluster.kubectl("get", ",".join(KINDS), "-o", "json")
    items: list[Json] = yaml.safe_load(found)["items"]
    return {f"{one['kind']} {one['metadata']['name']}": one["metadata"]["uid"] for one in items}


def test_a_changed_key_is_reconfigured_as_the_plan_announced(cluster: Cluster) -> None:
    before = versions(cluster)
    wanted = manifests.controller(f"{manifests.EXTRA_CONF}MessageTimeout=23\n")
    told = plan(cluster, wanted)
    assert "MessageTimeout takes effect by a reconfigure; nothing restarts" in told
    assert "No pod restarts or ends at once." in told
    assert "MessageTimeout=23" not in cluster.kubectl("get", "configmaps", "-o", "yaml")
    cluster.apply(wanted)
    shown = ("scontrol", "show", "config")
    eventually("it is in effect", lambda: "= 23 sec" in cluster.run(*shown), 60)
    assert versions(cluster) == before
    assert all(restarts(pod) == 0 for pod in cluster.pods("").values())


def test_the_plan_of_fewer_replicas_names_the_job_that_is_waited_for(cluster: Cluster) -> None:
    """S036."""
    job = cluster.submit("sleep 600", "--nodelist=compute-1", "--output=/dev/null")
    cluster.until_job(job, "RUNNING")
    told = plan(cluster, manifests.nodeset(0))
    assert "1 pod (compute-0) deleted at once" in told
    assert "1 pod (compute-1) drained, and deleted when their jobs have ended" in told
    assert f"compute-1 has job {job}" in told
    assert set(cluster.states()) == {"compute-0", "compute-1"}
    assert all("DRAIN" not in state for state in cluster.states().values())
    cluster.run("scancel", str(job))


def test_what_the_api_server_rejects_is_reported_in_its_words(cluster: Cluster) -> None:
    bad = manifests.nodeset(1)
    bad["spec"]["replicas"] = -1
    done = subprocess.run(
        [*PLAN, "-n", cluster.namespace, "-f", "-"],
        input=yaml.safe_dump(bad),
        env=cluster.site.node.env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "NodeSet compute" in done.stderr
    assert "spec.replicas" in done.stderr
