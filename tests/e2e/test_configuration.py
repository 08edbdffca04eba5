"""A changed configuration on real Slurm: tried, delivered, acknowledged; refused, and put right."""

from __future__ import annotations

import os
import signal
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest

from e2e_kit import manifests
from e2e_kit.api import Json, condition, restarts
from e2e_kit.cluster import Cluster
from e2e_kit.site import eventually, pid_in_pod
from penstock.api.cluster.marks import CONFIG_LIVE, RECONFIGURE, RESTART

POD = "slurm-controller-0"
SECONDS = 120.0


@pytest.fixture(scope="module")
def cluster(clusters: Callable[[str], Cluster]) -> Cluster:
    cluster = clusters("config")
    cluster.create(controller(), manifests.restapi(), manifests.nodeset(1))
    cluster.until_ready("controllers", manifests.NAME, SECONDS)
    cluster.until_idle("compute-0")
    in_effect(cluster)
    return cluster


OPTIONS = "SlurmctldParameters=Idle_On_Node_Suspend\nAuthInfo=cred_expire=240\n"
"""Two keys that the operator sets as well."""


def controller(extra: str = "", **spec: Any) -> Json:
    return manifests.controller(
        manifests.EXTRA_CONF + OPTIONS + extra,
        persistence={"enabled": True},
        metrics={"enabled": True},
        **spec,
    )


def of(cluster: Cluster) -> Json:
    return cluster.get("controllers", manifests.NAME)


def in_effect(cluster: Cluster) -> Json:
    """The Controller once it says that what is declared now is in effect."""

    def found(objects: dict[str, Json]) -> Json | None:
        obj = objects[manifests.NAME]
        applied = said(obj, "ConfigApplied")
        return obj if applied is not None and applied["status"] == "True" else None

    return cluster.until("controllers", found, "the configuration is in effect", SECONDS)


def refused(cluster: Cluster, words: str) -> Json:
    """The Controller once it says that what is declared now is refused."""

    def found(objects: dict[str, Json]) -> Json | None:
        valid = said(objects[manifests.NAME], "ConfigValid")
        told = valid is not None and valid["status"] == "False" and words in valid["message"]
        return objects[manifests.NAME] if told else None

    return cluster.until("controllers", found, f"refused for {words}", SECONDS)


def said(obj: Json, type_: str) -> Json | None:
    """A condition about what is declared now."""
    every = obj.get("status", {}).get("conditions", ())
    if not any(one["type"] == type_ for one in every):
        return None
    one = condition(obj, type_)
    return one if one.get("observedGeneration") == obj["metadata"]["generation"] else None


def conf(cluster: Cluster, name: str = f"{manifests.NAME}-config") -> str:
    return cluster.get("configmaps", name)["data"]["slurm.conf"]


def daemon(cluster: Cluster) -> tuple[str, list[tuple[str, int]]]:
    """The uid of slurmctld's pod, and how often its containers were started again."""
    pod = cluster.get("pods", POD)
    status = pod["status"]
    every = status["containerStatuses"] + status["initContainerStatuses"]
    return pod["metadata"]["uid"], sorted((one["name"], one["restartCount"]) for one in every)


def shows(cluster: Cluster, key: str, value: str) -> bool:
    lines = cluster.run("scontrol", "show", "config").splitlines()
    return any(line.split() == [key, "=", *value.split()] for line in lines)


def test_options_of_a_user_are_in_effect_beside_the_required_ones(cluster: Cluster) -> None:
    """D13, feature row 3: in the user's letter case."""
    wanted = "enable_configless,Idle_On_Node_Suspend,reconfig_on_restart"
    assert shows(cluster, "SlurmctldParameters", wanted)
    assert shows(cluster, "AuthInfo", "cred_expire=240,use_client_ids")


@pytest.mark.needs_slurm("25.11", "slurmctld has metrics")
@pytest.mark.parametrize(
    ("kind", "metric"),
    [
        ("jobs", "slurm_jobs"),
        ("nodes", "slurm_nodes"),
        ("partitions", "slurm_partition_nodes"),
        ("scheduler", "slurm_sched_"),
    ],
)
def test_slurmctld_serves_its_metrics_at_its_service(
    cluster: Cluster, kind: str, metric: str
) -> None:
    """Feature row 13: at each path that a ServiceMonitor names."""
    service = cluster.get("services", f"{manifests.NAME}-controller")["spec"]
    url = f"http://{service['clusterIP']}:{service['ports'][0]['port']}/metrics/{kind}"
    with urllib.request.urlopen(url, timeout=10) as answer:
        text: str = answer.read().decode()
    assert any(line.startswith(metric) for line in text.splitlines()), text


@pytest.mark.parametrize("inplace", [False, True])
def test_both_values_of_inplace_reconfigure_mean_no_restart(
    cluster: Cluster, inplace: bool
) -> None:
    """Feature row 5."""
    before = daemon(cluster)
    seconds = 51 + inplace
    cluster.apply(controller(f"SchedulerTimeSlice={seconds}\n", inplaceReconfigure=inplace))
    in_effect(cluster)
    assert shows(cluster, "SchedulerTimeSlice", f"{seconds} sec")
    assert daemon(cluster) == before


def test_file_daemon_and_status_agree_after_a_change(cluster: Cluster) -> None:
    """D2, S024, feature row 6."""
    before = daemon(cluster)
    cluster.apply(controller("SchedulerTimeSlice=41\n"))
    status = in_effect(cluster)["status"]
    assert shows(cluster, "SchedulerTimeSlice", "41 sec")
    assert status["effectiveConfigHash"] == status["configHash"]
    assert "SchedulerTimeSlice=41" in conf(cluster)
    assert conf(cluster) == conf(cluster, f"slurm-config-{manifests.NAME}")
    assert daemon(cluster) == before
    words = "is reconfigured for SchedulerTimeSlice"
    cluster.site.until_event(cluster.namespace, words, "ConfigDelivered")


@pytest.mark.parametrize(
    ("file", "text"),
    [
        pytest.param(
            *("topology.yaml", "- topology: [\n"),
            marks=pytest.mark.needs_slurm("25.05", "slurmctld reads topology.yaml"),
        ),
        ("cgroup.conf", "Bogus=1\n"),
    ],
)
def test_a_mistake_in_a_file_of_the_users_is_reported_and_no_job_feels_it(
    cluster: Cluster, file: str, text: str
) -> None:
    """D2, D36, feature row 4: slurmctld goes on, and no slurmd gets the file."""
    before = daemon(cluster)
    runs = cluster.submit("exec sleep 300", "--output=/dev/null", "--overcommit")
    cluster.until_job(runs, "RUNNING")
    good = manifests.slurm_files()["data"]["cgroup.conf"]
    cluster.apply(manifests.config_map("slurm-files", **{"cgroup.conf": good, file: text}))

    def told(objects: dict[str, Json]) -> bool:
        found = condition(objects[manifests.NAME], "ConfigApplied")
        words = file.partition(".")[0]
        return found.get("reason") == "ConfigRefused" and words in found["message"].lower()

    cluster.until("controllers", told, "the mistake is told", SECONDS)
    assert cluster.job(runs)["JobState"] == "RUNNING"
    cluster.run("scancel", str(runs))
    later = cluster.submit("exec true", "--output=/dev/null")
    cluster.until_job(later, "COMPLETED")
    changed = f"{good}# a remark beside {file}\n"
    cluster.apply(manifests.config_map("slurm-files", **{"cgroup.conf": changed}))
    in_effect(cluster)
    eventually("it is there", lambda: cluster.run("cat", "/etc/slurm/cgroup.conf") == changed)
    assert daemon(cluster) == before


def test_a_remark_is_taken_over_without_a_reconfigure(cluster: Cluster) -> None:
    """Feature row 5."""
    before = cluster.run("scontrol", "show", "config")
    cluster.apply(controller("SchedulerTimeSlice=41\n# a remark\n"))
    wanted = in_effect(cluster)["status"]["configHash"]
    assert cluster.get("pods", POD)["metadata"]["annotations"][CONFIG_LIVE] == wanted
    assert "# a remark" in conf(cluster)
    assert "# a remark" in cluster.run("cat", "/etc/slurm/slurm.conf")
    booted = [line for line in before.splitlines() if line.startswith("BOOT_TIME")]
    assert booted[0] in cluster.run("scontrol", "show", "config").splitlines()


def test_a_rejected_line_never_gets_to_slurmctld_even_if_that_is_killed(cluster: Cluster) -> None:
    """Feature row 2."""
    job = cluster.submit("exec sleep 300", "--output=/dev/null")
    cluster.until_job(job, "RUNNING")
    before, effective = daemon(cluster), of(cluster)["status"]["effectiveConfigHash"]
    cluster.apply(controller("BogusKey=1\n"))
    obj = refused(cluster, "unrecognized key: BogusKey")
    message = condition(obj, "ConfigValid")["message"]
    assert "slurm.conf: BogusKey=1)" in message
    assert obj["status"]["effectiveConfigHash"] == effective
    assert "BogusKey" in obj["status"]["lastError"]
    assert "Bogus" not in conf(cluster)
    assert daemon(cluster) == before
    assert cluster.job(job)["JobState"] == "RUNNING"
    # Slurm's commands read the file that is in effect, also beside slurmctld.
    assert shows(cluster, "SchedulerTimeSlice", "41 sec")

    uid = cluster.get("pods", POD)["metadata"]["uid"]
    old = pid_in_pod(uid, "/usr/sbin/slurmctld")
    os.kill(old, signal.SIGKILL)
    eventually(
        "slurmctld is another process", lambda: pid_in_pod(uid, "/usr/sbin/slurmctld") != old
    )
    eventually("slurmctld answers", lambda: shows(cluster, "SchedulerTimeSlice", "41 sec"), SECONDS)
    assert "Bogus" not in conf(cluster)

    cluster.apply(controller("SchedulerTimeSlice=43\n"))
    assert not in_effect(cluster)["status"].get("lastError")
    assert shows(cluster, "SchedulerTimeSlice", "43 sec")
    cluster.run("scancel", str(job))


def test_a_registered_dynamic_node_may_be_named_and_an_unknown_one_is_rejected(
    cluster: Cluster,
) -> None:
    cluster.apply(controller("SchedulerTimeSlice=43\nPartitionName=named Nodes=compute-0\n"))
    in_effect(cluster)
    assert "named" in cluster.run("sinfo", "-h", "-p", "named")
    # Beside another key: a partition alone is refused by slurmctld itself, before any trial.
    cluster.apply(controller("SchedulerTimeSlice=44\nPartitionName=named Nodes=nosuch\n"))
    refused(cluster, "nosuch")
    assert "named" in cluster.run("sinfo", "-h", "-p", "named")
    cluster.apply(controller("SchedulerTimeSlice=43\n"))
    in_effect(cluster)


def test_a_changed_port_restarts_slurmctld_and_nothing_else_does(cluster: Cluster) -> None:
    """D2, feature row 5."""
    uid, _ = daemon(cluster)
    workers = cluster.uids("app.kubernetes.io/name=slurmd")
    cluster.apply(controller("CommunicationParameters=NoCtldInAddrAny\n"))

    def replaced(pods: dict[str, Json]) -> bool:
        return POD in pods and pods[POD]["metadata"]["uid"] != uid

    cluster.until("pods", replaced, "slurmctld's pod is another one", SECONDS)
    in_effect(cluster)
    cluster.site.until_event(cluster.namespace, "CommunicationParameters needs it")
    assert cluster.uids("app.kubernetes.io/name=slurmd") == workers


def test_slurmrestd_is_restarted_for_a_line_that_it_reads_once(cluster: Cluster) -> None:
    """D17, feature row 16: how daemons prove who they are is one; none of the others here was."""
    app = "app.kubernetes.io/name=slurmrestd"
    (uid,) = cluster.uids(app).values()
    (pod,) = cluster.pods(app).values()
    assert restarts(pod) == 0
    changed = controller("CommunicationParameters=NoCtldInAddrAny\n")
    changed["spec"]["extraConf"] = changed["spec"]["extraConf"].replace("=240", "=241")
    cluster.apply(changed)
    in_effect(cluster)

    def replaced() -> bool:
        pods = cluster.pods(app).values()
        return len(pods) == 1 and all(one["metadata"]["uid"] != uid for one in pods)

    eventually("slurmrestd has another pod", replaced, SECONDS)
    eventually("it answers", lambda: cluster.states() == {"compute-0": {"IDLE"}}, SECONDS)
    assert shows(cluster, "AuthInfo", "cred_expire=241,use_client_ids")


def test_annotations_reconfigure_and_restart_once(cluster: Cluster) -> None:
    """S065, S147: a running job does not notice, and other annotations do nothing."""

    def over(value: str) -> None:
        def found(objects: dict[str, Json]) -> bool:
            every = objects[manifests.NAME]["status"].get("triggers", ())
            return any((one["value"], one["result"]) == (value, "Done") for one in every)

        cluster.until("controllers", found, f"{value} is done", SECONDS)

    job = cluster.submit("exec sleep 600", "--output=/dev/null")
    cluster.until_job(job, "RUNNING")
    uid, _ = daemon(cluster)
    pods = pods_created(cluster)
    since = booted(cluster)
    cluster.kubectl("annotate", "controller", manifests.NAME, f"{RECONFIGURE}=now")
    over("now")
    assert daemon(cluster)[0] == uid
    assert booted(cluster) != since
    cluster.kubectl("annotate", "controller", manifests.NAME, f"{RESTART}=slurmctld@now")
    over("slurmctld@now")
    second, _ = daemon(cluster)
    assert second != uid
    eventually("it serves", lambda: "UP" in cluster.run("scontrol", "ping"), SECONDS)
    cluster.kubectl("annotate", "controller", manifests.NAME, "example.com/other=1")
    cluster.kubectl("annotate", "controller", manifests.NAME, "restart-trigger=1")
    over("1")
    third, _ = daemon(cluster)
    assert third not in (uid, second)
    eventually("it serves", lambda: "UP" in cluster.run("scontrol", "ping"), SECONDS)
    assert pods_created(cluster) == pods + 2
    assert cluster.until_job(job, "RUNNING")["Restarts"] == "0"
    cluster.run("scancel", str(job))


def pods_created(cluster: Cluster) -> int:
    """How many pods were ever created in the namespace."""
    return sum(one.verb == "create" for one in cluster.site.audit(cluster.namespace, "pods"))


def booted(cluster: Cluster) -> str:
    """Since when slurmctld runs; a reconfigure is another process in the same pod."""
    lines = cluster.run("scontrol", "show", "config").splitlines()
    return next(line for line in lines if line.startswith("BOOT_TIME"))
