"""Keys of slurm.conf that need a restart of slurmctld, and one that it does not survive."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager

import pytest

from e2e_kit import manifests
from e2e_kit.api import Json, condition
from e2e_kit.cluster import Cluster
from e2e_kit.site import eventually

POD = "slurm-controller-0"
SECONDS = 180.0
BINDS = "CommunicationParameters=NoCtldInAddrAny\n"
"""It takes effect by a restart."""
ENDS = BINDS + "Include port.conf\n"
"""A trial start has a port of its own, so it does not see that the file gives none."""


@pytest.fixture(scope="module")
def cluster(clusters: Callable[[str], Cluster]) -> Cluster:
    cluster = clusters("restarts")
    port = manifests.config_map("slurm-port", **{"port.conf": "SlurmctldPort=nonsense\n"})
    cluster.create(port, controller(), manifests.restapi(), manifests.nodeset(1))
    cluster.until_ready("controllers", manifests.NAME, SECONDS)
    cluster.until_idle("compute-0")
    until(cluster, "ConfigApplied", "True")
    return cluster


def controller(extra: str = "", name: str = manifests.NAME) -> Json:
    refs = [{"name": "slurm-files"}, {"name": "slurm-port"}]
    found = manifests.controller(
        manifests.EXTRA_CONF + extra, persistence={"enabled": True}, configFileRefs=refs
    )
    found["metadata"]["name"] = name
    return found


def until(cluster: Cluster, type_: str, status: str, words: str = "") -> Json:
    """The Controller once a condition about what is declared now is so."""

    def found(objects: dict[str, Json]) -> Json | None:
        obj = objects[manifests.NAME]
        every = obj.get("status", {}).get("conditions", ())
        if not any(one["type"] == type_ for one in every):
            return None
        one = condition(obj, type_)
        fresh = one.get("observedGeneration") == obj["metadata"]["generation"]
        return (
            obj if fresh and one["status"] == status and words in one.get("message", "") else None
        )

    return cluster.until("controllers", found, f"{type_}={status} {words}", SECONDS)


def conf(cluster: Cluster, name: str = f"{manifests.NAME}-config") -> str:
    return cluster.get("configmaps", name)["data"]["slurm.conf"]


def uid(cluster: Cluster) -> str:
    pods = cluster.pods("app.kubernetes.io/name=slurmctld")
    return pods[POD]["metadata"]["uid"] if POD in pods else ""


def led_back(cluster: Cluster) -> None:
    """Files and status are those of before, and slurmctld answers with them."""
    assert "Include" not in conf(cluster)
    assert "Include" not in conf(cluster, f"slurm-config-{manifests.NAME}")
    eventually("slurmctld answers", lambda: "UP" in cluster.run("scontrol", "ping"), SECONDS)


@pytest.mark.parametrize("killed", [False, True])
def test_a_slurmctld_that_ends_on_its_new_files_is_led_back_and_jobs_run_on(
    cluster: Cluster, killed: bool
) -> None:
    job = cluster.submit("exec sleep 600", "--output=/dev/null")
    cluster.until_job(job, "RUNNING")
    before, effective = uid(cluster), status(cluster)["effectiveConfigHash"]
    workers = cluster.uids("app.kubernetes.io/name=slurmd")
    cluster.apply(controller(f"{ENDS}# {killed}\n"))
    eventually("slurmctld is restarted", lambda: uid(cluster) not in ("", before), SECONDS)
    if killed:
        os.kill(cluster.site.operator_pid(), signal.SIGKILL)
    obj = until(cluster, "ConfigApplied", "False", "did not come up")
    message = condition(obj, "ConfigApplied")["message"]
    assert "nonsense" in message, message
    assert "did not come up" in obj["status"]["lastError"]
    led_back(cluster)
    assert status(cluster)["effectiveConfigHash"] == effective
    assert cluster.job(job)["JobState"] == "RUNNING"
    assert cluster.uids("app.kubernetes.io/name=slurmd") == workers

    # It stays so: nobody starts slurmctld with it once more, also not a new operator.
    still = uid(cluster)
    os.kill(cluster.site.operator_pid(), signal.SIGKILL)
    cluster.apply(manifests.nodeset(1, partition={"enabled": True, "config": "MaxTime=77"}))
    eventually("partitions go on", lambda: "MaxTime=77" in conf(cluster), SECONDS)
    until(cluster, "ConfigApplied", "False", "did not come up")
    assert uid(cluster) == still

    cluster.apply(controller(f"{BINDS}# corrected {killed}\n"))
    obj = until(cluster, "ConfigApplied", "True")
    assert not obj["status"].get("lastError")
    assert obj["status"]["effectiveConfigHash"] == obj["status"]["configHash"]
    assert conf(cluster) == conf(cluster, f"slurm-config-{manifests.NAME}")
    assert cluster.job(job)["JobState"] == "RUNNING"
    cluster.run("scancel", str(job))
    cluster.apply(manifests.nodeset(1), controller(f"# again {killed}\n"))
    until(cluster, "ConfigApplied", "True")


def status(cluster: Cluster) -> Json:
    return cluster.get("controllers", manifests.NAME)["status"]


def test_a_correction_while_slurmctld_crashes_is_taken_over(cluster: Cluster) -> None:
    before = uid(cluster)
    cluster.apply(controller(ENDS + "# corrected soon\n"))
    eventually("slurmctld is restarted", lambda: uid(cluster) not in ("", before), SECONDS)
    cluster.apply(controller("SchedulerTimeSlice=47\n"))
    until(cluster, "ConfigApplied", "True")
    assert "SchedulerTimeSlice=47" in conf(cluster, f"slurm-config-{manifests.NAME}")
    led_back(cluster)


def test_a_port_at_which_nobody_finds_slurmctld_is_not_even_stored(cluster: Cluster) -> None:
    before = cluster.get("controllers", manifests.NAME)["metadata"]["generation"]
    for port in ("22", "7000", "ssh"):
        wrong = controller(f"SlurmctldPort={port}\n")
        wrong["metadata"]["namespace"] = cluster.namespace
        told = cluster.site.rejected("apply", "-f", "-", stdin=json.dumps(wrong))
        assert f"SlurmctldPort={port} " in told
        assert "spec.service.port" in told
    assert cluster.get("controllers", manifests.NAME)["metadata"]["generation"] == before


@contextmanager
def without_logs(cluster: Cluster) -> Generator[None]:
    """The operator may not read logs."""
    name = "penstock-operator"
    role: Json = json.loads(cluster.site.kubectl("get", "clusterrole", name, "-o", "json"))
    meta = {"apiVersion": role["apiVersion"], "kind": role["kind"], "metadata": {"name": name}}
    rules = [rule for rule in role["rules"] if "pods/log" not in rule.get("resources", ())]
    assert len(rules) < len(role["rules"])
    cluster.site.apply({**meta, "rules": rules})
    try:
        yield
    finally:
        cluster.site.apply({**meta, "rules": role["rules"]})


def test_an_unreadable_log_keeps_untried_files_from_slurmctld(cluster: Cluster) -> None:
    before = conf(cluster)
    with without_logs(cluster):
        cluster.apply(controller("BogusKey=1\n"))
        obj = until(cluster, "ConfigApplied", "Unknown", "pods/log")
        assert condition(obj, "ConfigApplied")["reason"] == "ConfigTrying"
        assert conf(cluster) == before
    until(cluster, "ConfigApplied", "False", "BogusKey")
    assert conf(cluster) == before
    cluster.apply(controller())
    until(cluster, "ConfigApplied", "True")


def test_a_first_start_that_ends_on_its_files_is_reported_and_is_corrected(
    clusters: Callable[[str], Cluster],
) -> None:
    cluster = clusters("restarts-first")
    port = manifests.config_map("slurm-port", **{"port.conf": "SlurmctldPort=nonsense\n"})
    cluster.create(port, controller(ENDS))
    obj = until(cluster, "ConfigValid", "False", "its first configuration")
    assert "nonsense" in condition(obj, "ConfigValid")["message"]
    cluster.apply(controller())
    until(cluster, "ConfigApplied", "True")
