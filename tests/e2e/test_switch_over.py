"""A cluster with real Slurm in pods of slurm-operator's form is taken over while a job runs.

Scenario S035, fixture F31. The rest is in tests/api/test_switch_over.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator

import pytest
import yaml

from e2e_kit import manifests
from e2e_kit.api import Json, condition, restarts
from e2e_kit.cluster import Cluster
from e2e_kit.site import Site, eventually
from penstock.render.parts import ssh_host_keys as hostkeys
from penstock.simulation.slurm_operator import ACTIVE, MANAGER, Upstream

WORKERS = ("compute-0", "compute-1")
SLURMCTLD = f"{manifests.NAME}-controller-0"
SSSD = """[sssd]
services = nss, pam
domains = DEFAULT
[domain/DEFAULT]
id_provider = proxy
proxy_lib_name = files
proxy_pam_target = sssd-shadowutils
"""
UNTIL_TOLD = "i=0; while [ ! -e /shared/{0} ]; do i=$((i+1)); echo $i; sleep 0.2; done; echo end"

pytestmark = pytest.mark.needs_slurm("25.11", "pods of slurm-operator ask daemons by HTTP")


@pytest.fixture(scope="module")
def stopped(site: Site) -> Generator[Site]:
    """The site without an operator until a test starts it; it has one again at the end."""
    with site.without_operator():
        yield site


@pytest.fixture(scope="module")
def image(site: Site) -> str:
    """The image of a role, as the operator names it for those who name none."""
    (container,) = site.operator_pod()["spec"]["containers"]
    option = "--slurm-image="
    return next(a.removeprefix(option) for a in container["args"] if a.startswith(option))


@pytest.fixture(scope="module")
def cluster(clusters: Callable[[str], Cluster], image: str, stopped: Site) -> Cluster:
    """Objects of the kinds, with what slurm-operator made of them; nobody looks after it."""
    cluster = clusters("switched")
    cluster.create(*_declared(image, cluster.shared))
    upstream = Upstream(_as_stored(cluster), host_keys=hostkeys.generate())
    _write(cluster, *upstream.made())
    (nodeset,) = upstream.of("NodeSet")
    _write(cluster, *(upstream.worker(nodeset, ordinal) for ordinal in range(len(WORKERS))))
    status = json.dumps({"status": upstream.status(nodeset)})
    cluster.kubectl(
        "patch", "nodeset", "compute", "--subresource=status", "--type=merge", "-p", status
    )
    cluster.until("pods", lambda pods: SLURMCTLD in pods, "slurmctld has a pod")
    cluster.kubectl("label", "pod", SLURMCTLD, f"{ACTIVE}=true")
    cluster.until_idle(*WORKERS, timeout=240)
    return cluster


def _declared(image: str, shared: str) -> list[Json]:
    def of(role: str) -> Json:
        return {"image": image.replace("{role}", role), "args": [], "resources": {}}

    keys = ("slurm", "jwt")
    refs = {
        f"{kind}KeyRef": {"name": f"{manifests.NAME}-auth-{kind}", "key": f"{kind}.key"}
        for kind in keys
    }
    claim = {
        "enabled": True,
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    }
    workers = manifests.on_shared_disk(manifests.nodeset(len(WORKERS)), shared)
    workers["spec"]["slurmd"] |= of("slurmd")
    workers["spec"]["logfile"] = of("slurmd")
    workers["spec"]["template"]["spec"] |= {"tolerations": [], "affinity": {}}
    return [
        *(_secret(f"{manifests.NAME}-auth-{kind}", f"{kind}.key", kind * 20) for kind in keys),
        _secret("sssd", "sssd.conf", SSSD),
        manifests.controller(
            manifests.EXTRA_CONF,
            persistence=claim,
            slurmctld=of("slurmctld"),
            logfile=of("slurmctld"),
            **refs,
        ),
        manifests.restapi(slurmrestd=of("slurmrestd")),
        manifests.loginset(
            login=of("login"),
            initconf=of("login"),
            sssdConfRef={"name": "sssd", "key": "sssd.conf"},
        ),
        workers,
    ]


def _secret(name: str, key: str, value: str) -> Json:
    metadata = {"name": name}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {key: value}}


def _as_stored(cluster: Cluster) -> list[Json]:
    kinds = "controllers,restapis,loginsets,nodesets,secrets,configmaps"
    return json.loads(cluster.kubectl("get", kinds, "-o", "json"))["items"]


def _write(cluster: Cluster, *objects: Json) -> None:
    text = yaml.safe_dump_all(objects)
    cluster.kubectl("create", f"--field-manager={MANAGER}", "-f", "-", stdin=text)


def restarted(cluster: Cluster) -> dict[str, int]:
    """How often containers of each pod were started again."""
    return {name: restarts(pod) for name, pod in cluster.pods("").items()}


def booted(cluster: Cluster) -> str:
    """Since when slurmctld runs."""
    lines = cluster.run("scontrol", "show", "config").splitlines()
    return next(line for line in lines if line.startswith("BOOT_TIME"))


def start_job(cluster: Cluster, name: str) -> int:
    job = cluster.submit(UNTIL_TOLD.format(f"end-{name}"), f"--output=/shared/{name}", "--mem=50")
    cluster.until_job(job, "RUNNING")
    return job


def end_job(cluster: Cluster, job: int, name: str) -> None:
    """Tell it; its output must be without a gap, and it must have run once."""
    cluster.site.node.run("touch", f"{cluster.shared}/end-{name}")
    done = cluster.until_job(job, "COMPLETED", "FAILED")
    assert (done["JobState"], done["Restarts"]) == ("COMPLETED", "0")
    lines = cluster.output(name).splitlines()
    assert lines == [*map(str, range(1, len(lines))), "end"]


def test_a_job_runs_through_the_switch_and_no_pod_is_restarted(cluster: Cluster) -> None:
    job = start_job(cluster, "through")
    uids, since = cluster.uids(), booted(cluster)
    counts = restarted(cluster)
    cluster.site.operators(1)
    for kind, name in (
        ("controllers", manifests.NAME),
        ("restapis", manifests.NAME),
        ("loginsets", "login"),
        ("nodesets", "compute"),
    ):
        cluster.until_ready(kind, name, timeout=180)
    cluster.poke(3)
    for kind, name in (
        ("controllers", manifests.NAME),
        ("restapis", manifests.NAME),
        ("loginsets", "login"),
    ):
        told = condition(cluster.get(kind, name), "PodsAdopted")
        assert (told["status"], told["reason"]) == ("True", "PodsAsTheyWere")
    assert cluster.get("nodesets", "compute")["status"]["updatedReplicas"] == len(WORKERS)

    # A partition needs no pod of ours.
    state = {"spec": {"partition": {"enabled": True, "config": "Default=YES PriorityTier=7"}}}
    cluster.patch("nodeset", "compute", state)
    eventually(
        "slurmctld has the partition",
        lambda: "PriorityTier=7" in cluster.run("scontrol", "show", "partition", "compute"),
    )
    cluster.until_ready("nodesets", "compute")
    cluster.until_ready("controllers", manifests.NAME)
    assert cluster.uids() == uids
    assert restarted(cluster) == counts
    assert booted(cluster) == since
    assert cluster.job(job)["JobState"] == "RUNNING"
    end_job(cluster, job, "through")


def test_what_slurmctld_must_read_again_comes_with_a_pod_of_ours_and_jobs_go_on(
    cluster: Cluster,
) -> None:
    cluster.until_idle(*WORKERS)
    job = start_job(cluster, "longer")
    uids = cluster.uids()
    changed = manifests.EXTRA_CONF + "SlurmctldDebug=verbose\n"
    cluster.patch("controller", manifests.NAME, {"spec": {"extraConf": changed}})

    def applied(found: dict[str, Json]) -> bool:
        told = condition(found[manifests.NAME], "ConfigApplied")
        return told.get("reason") == "ConfigInEffect"

    cluster.until("controllers", applied, "slurmctld says that it has it", 240)
    cluster.until_ready("controllers", manifests.NAME)
    assert "verbose" in cluster.run("sh", "-c", "scontrol show config | grep SlurmctldDebug")
    after = cluster.uids()
    assert after.pop(SLURMCTLD) != uids.pop(SLURMCTLD)
    assert after == uids
    assert cluster.job(job)["JobState"] == "RUNNING"
    end_job(cluster, job, "longer")
