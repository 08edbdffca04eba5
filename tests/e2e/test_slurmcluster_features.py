"""`workerFeatures` of a SlurmCluster with workers of its own, a partition by them, the exporter."""

from __future__ import annotations

import secrets
from collections.abc import Generator
from pathlib import Path

import pytest
import yaml

from e2e_kit.exporter import Exporter
from e2e_kit.images import give_all
from e2e_kit.site import Site, eventually
from e2e_kit.slurmcluster import SlurmClusterSite
from penstock.local.images import build_jail

EXAMPLE = Path(__file__).parents[2] / "examples/slurmcluster.yaml"
FEATURES = [{"name": "fast", "hostlistExpr": "worker-[1-3]", "nodesetName": "fastset"}]
PARTITIONS = {
    "configType": "custom",
    "rawConfig": [
        "PartitionName=main Nodes=ALL Default=YES",
        "PartitionName=fast Nodes=fastset",
    ],
}


@pytest.fixture(scope="module")
def cluster(site: Site) -> Generator[SlurmClusterSite]:
    images = give_all(site.node, build_jail().values())
    documents = list(yaml.safe_load_all(EXAMPLE.read_text()))
    documents[-1]["spec"] |= {"workerFeatures": FEATURES, "partitionConfiguration": PARTITIONS}
    text = yaml.safe_dump_all(documents)
    made = SlurmClusterSite(site, f"features-{secrets.token_hex(2)}", text, images)
    try:
        made.up()
        yield made
    finally:
        made.down()


def features(cluster: SlurmClusterSite, node: str) -> set[str]:
    """The active features of a Slurm node."""
    found = cluster.scontrol("show", "node", node, "-o")
    value = found.partition("ActiveFeatures=")[2].split()[0]
    return set(value.split(","))


def test_workers_of_a_host_list_have_the_feature_and_its_partition(
    cluster: SlurmClusterSite,
) -> None:
    """S085."""
    assert features(cluster, "worker-0") == {"worker"}
    assert features(cluster, "worker-1") == {"worker", "fast"}
    where = "chroot /mnt/jail srun {} hostname"
    assert cluster.run("login-0", "sshd", where.format("-p fast")).split() == ["worker-1"]
    assert cluster.run("login-0", "sshd", where.format("-C fast")).split() == ["worker-1"]


def test_a_feature_of_other_workers_reaches_them_and_the_partition(
    cluster: SlurmClusterSite,
) -> None:
    """S085: workers get new pods, as each has the host list in its environment."""
    cluster.patch({"workerFeatures": [{**FEATURES[0], "hostlistExpr": "worker-[0-3]"}]})
    eventually("worker-0 has it", lambda: "fast" in features(cluster, "worker-0"), 120)
    cluster.until_idle(2)

    def partition() -> str:
        return cluster.scontrol("show", "partition", "fast", "-o")

    eventually("both are in it", lambda: "TotalNodes=2 " in partition(), 60)


def test_the_exporter_comes_and_goes_and_the_cluster_runs_without_it(
    site: Site, cluster: SlurmClusterSite
) -> None:
    """S092, S114: of the exporter."""
    exporter = Exporter(site, cluster)
    assert exporter.objects() == []
    exporter.enable()
    assert exporter.running().startswith("slurm-exporter-")
    comm = cluster.kubectl(
        *("exec", exporter.running(), "--", "python3", "-c"),
        "print(open('/proc/1/cmdline').read().replace(chr(0), ' '))",
    )
    assert "/usr/bin/soperator-exporter" in comm
    assert "configmap/correct-cpu-cluster-slurm-exporter-state" in exporter.objects()
    assert "Exporter" not in cluster.condition("Served")
    exporter.declare(enabled=False)
    eventually("its objects are gone", lambda: not exporter.objects(), 60)
    assert cluster.run("login-0", "sshd", "chroot /mnt/jail srun hostname").startswith("worker-")


def test_metrics_are_the_numbers_of_sinfo_and_squeue_by_both_sets_of_names(
    site: Site, cluster: SlurmClusterSite
) -> None:
    """S114."""
    exporter = Exporter(site, cluster)
    exporter.enable("--vpenso-metrics")
    submit = "chroot /mnt/jail sbatch --parsable -o /dev/null -J {} {} --wrap 'sleep 600'"
    running = cluster.run("login-0", "sshd", submit.format("runs", "-n 1")).strip()
    waiting = cluster.run("login-0", "sshd", submit.format("waits", "-N 2 -H")).strip()
    state = "State=RUNNING"
    eventually("it runs", lambda: state in cluster.scontrol("show", "job", running), 60)

    def jobs() -> dict[str, str]:
        found = exporter.series().get("slurm_job_info", [])
        return {labels["job_id"]: labels["job_state"] for labels, _ in found}

    eventually("both are there", lambda: jobs().get(running) == "RUNNING", 30)
    squeue = cluster.run(cluster.slurmctld, "slurmctld", "squeue -h -t all -o '%A %T'")
    assert jobs() == dict(line.split() for line in squeue.splitlines())
    found = exporter.series()
    (holds,) = [one for one, _ in found["slurm_node_job"] if one["job_id"] == running]
    where = cluster.run(cluster.slurmctld, "slurmctld", f"squeue -h -j {running} -o %N").strip()
    assert holds["node_name"] == where
    assert found["slurm_queue_pending"][0][1] == 1
    assert found["slurm_queue_running"][0][1] == 1
    assert {one["status"] for one, _ in found["slurm_node_cpu_total"]} >= {"idle"}
    # CPUs as allocated, idle, other and total.
    sinfo = cluster.run(cluster.slurmctld, "slurmctld", "sinfo -h -o %C").strip().split("/")
    names = ("alloc", "idle", "other", "total")
    assert [found[f"slurm_cpus_{name}"][0][1] for name in names] == list(map(float, sinfo))
    lines = cluster.run(
        cluster.slurmctld,
        "slurmctld",
        "sinfo -h -N -O NodeHost:30,CPUsState:30,Memory:30,AllocMem:30",
    )
    for node, cpus, memory, allocated in map(str.split, lines.splitlines()):
        by_name = {
            name: value
            for name, rows in found.items()
            for labels, value in rows
            if labels.get("node_name") == node and len(labels) == 1
        }
        alloc, idle, _, total = map(float, cpus.split("/"))
        assert by_name["slurm_node_cpus_total"] == total
        assert by_name["slurm_node_cpus_allocated"] == alloc
        assert by_name["slurm_node_cpus_idle"] == idle
        assert by_name["slurm_node_memory_total_bytes"] == float(memory) * 2**20
        assert by_name["slurm_node_memory_allocated_bytes"] == float(allocated) * 2**20
    calls = {one["message_type"] for one, _ in found["slurm_controller_rpc_calls_total"]}
    assert "REQUEST_SUBMIT_BATCH_JOB" in calls
    own = exporter.series(8081)
    assert own["slurm_exporter_metrics_requests_total"][0][1] >= 3
    assert "slurm_exporter_collector_errors_total" not in own
    cluster.scontrol("release", waiting)
    cluster.run(cluster.slurmctld, "slurmctld", f"scancel {running} {waiting}")


def test_a_duration_survives_the_end_of_the_exporters_pod(
    site: Site, cluster: SlurmClusterSite
) -> None:
    """S114: and a drained node has the words of sinfo."""
    exporter = Exporter(site, cluster)
    cluster.until_idle(2)
    cluster.scontrol("update", "NodeName=worker-1", "State=DRAIN", "Reason=bad disk")

    def info() -> dict[str, str]:
        rows = exporter.series()["slurm_node_info"]
        return next(dict(one) for one, _ in rows if one["node_name"] == "worker-1")

    eventually("it is unavailable", lambda: info()["is_unavailable"] == "true", 30)
    assert (info()["reason"], info()["state_is_drain"]) == ("bad disk", "true")
    assert ("worker-1", "drained") in {
        (one["node"], one["status"]) for one, _ in exporter.series()["slurm_node_cpu_total"]
    }
    state = ("get", "configmap", "correct-cpu-cluster-slurm-exporter-state", "-o")
    saved = eventually(
        "it is saved", lambda: cluster.kubectl(*state, "jsonpath={.binaryData.durations}"), 30
    )
    old = exporter.running()
    cluster.kubectl("delete", "pod", old)
    cluster.scontrol("update", "NodeName=worker-1", "State=RESUME")
    eventually("another one runs", lambda: exporter.running() not in ("", old), 120)
    name = "slurm_node_unavailability_duration_seconds_sum"
    sums = eventually("it ended", lambda: exporter.by(name, "node_name"), 120)
    assert sums.keys() == {"worker-1"}
    assert sums["worker-1"] > 0
    assert cluster.kubectl(*state, "jsonpath={.binaryData.durations}") != saved
