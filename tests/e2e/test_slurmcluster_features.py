"""A SlurmCluster with workers of its own: `workerFeatures`, its exporter, and quick checks.

A Prometheus reads it meanwhile; at the end the queries of all dashboards and alerts run on it.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shlex
from collections.abc import Callable, Generator, Mapping
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import yaml

from dashboards.absent import ABSENT, ONLY_WITH_FAULTS
from dashboards.alerts import ALERTS
from dashboards.promql import names
from e2e_kit.dashboards import absent_queries, targets, write_pictures
from e2e_kit.exporter import Exporter
from e2e_kit.images import give_all
from e2e_kit.prometheus import Prometheus
from e2e_kit.reboot import RebootedNode
from e2e_kit.release import RELEASE, lacks
from e2e_kit.site import Site, eventually
from e2e_kit.slurmcluster import SlurmClusterSite
from penstock.local.charts import objects, rendered
from penstock.local.errors import LocalError
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
VPENSO = "--vpenso-metrics"
OFTEN = "SlurmNodeFailsRepeatedly"
SCRIPTS = "/opt/slurm_scripts"
OUTPUTS = "/mnt/jail/opt/soperator-outputs/local/slurm_scripts"
WORKERS = ("worker-0", "worker-1")
EVERY_S = 3
"""HealthCheckInterval."""
CHECKED_S = 60.0
"""Within which a health check has run, whatever else runs beside it."""
ENDS_ITSELF_S = 360.0
"""A reservation that an older slurmrestd cannot delete has no job for five minutes."""
DISK, DEVICES = "/mnt/small", "/run/devices"
CHECKED = {
    "slurmConfig": {"prolog": f"{SCRIPTS}/prolog.sh", "epilog": f"{SCRIPTS}/epilog.sh"},
    "healthCheckConfig": {
        "healthCheckInterval": EVERY_S,
        "healthCheckProgram": f"{SCRIPTS}/hc_program.sh",
        "healthCheckNodeState": [{"state": "ANY"}],
    },
}
SMALL = {"name": "small", "emptyDir": {"medium": "Memory", "sizeLimit": "8Mi"}}
BOOT_DISK = {
    "name": "boot_disk_full",
    "command": f"BOOT_DISK={DISK} ./boot_disk_full.sh",
    "contexts": ["hc_program"],
    "on_fail": "drain",
    "on_ok": "undrain",
    "reason_base": "[user_problem] $name",
}
COUNT = {
    "name": "device_count",
    "command": f'n=$(cat {DEVICES}); [ "$n" = 8 ] || {{ echo "$n of 8 devices" >&3; false; }}',
    "contexts": ["hc_program"],
    "on_fail": "drain",
    "on_ok": "undrain",
}
CHECKS = [BOOT_DISK, COUNT]
SLURM_CHECK = {
    "name": "broken-file",
    "checkType": "slurmJob",
    "slurmJobSpec": {
        "eachWorkerJobs": True,
        "sbatchScript": "#!/bin/bash\n[ ! -e /srv/broken-$(hostname) ]\n",
    },
    "failureReactions": {"drainSlurmNode": {"drainReasonPrefix": "[node_problem]"}},
}
CHART_S = 300
"""Within which the checks of the chart have run one after another."""
COMMENT_CHECK = {
    **SLURM_CHECK,
    "name": "broken-link",
    "failureReactions": {
        "commentSlurmNode": {"commentPrefix": "[node_problem]"},
        "addReservation": {"prefix": "suspicious"},
    },
    "successReactions": {"removeReservation": {"prefix": "suspicious"}},
}
CHECK_S = 120.0
"""Within which a check has run: a pod that submits, and its jobs."""
IN_PROLOG = [
    {**COUNT, "contexts": ["prolog"]},
    {**COUNT, "on_fail": "none", "node_states": ["drain"]},
]
FULL = f"[user_problem] boot_disk_full: 88 % of {DISK} is used, at most 80 % may be"
MISSING = "[node_problem] device_count: 7 of 8 devices"


@pytest.fixture(scope="module")
def cluster(site: Site) -> Generator[SlurmClusterSite]:
    images = give_all(site.node, build_jail(RELEASE).values())
    documents = list(yaml.safe_load_all(EXAMPLE.read_text()))
    spec = documents[-1]["spec"]
    spec |= {"workerFeatures": FEATURES, "partitionConfiguration": PARTITIONS, **CHECKED}
    spec["volumeSources"].append(SMALL)
    mount = {"name": "small", "mountPath": DISK, "volumeSourceName": "small"}
    spec["slurmNodes"]["controller"]["openMetrics"] = {"enabled": True}
    spec["slurmNodes"]["worker"]["volumes"]["customMounts"] = [mount]
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


@pytest.fixture(scope="module")
def prometheus(
    site: Site, cluster: SlurmClusterSite, tmp_path_factory: pytest.TempPathFactory
) -> Generator[Prometheus]:
    """A Prometheus that reads the cluster from its first use until the last test."""
    exporter = Exporter(site, cluster)
    exporter.enable(VPENSO)
    made = Prometheus(tmp_path_factory.mktemp("prometheus"), targets(site, cluster))
    try:
        made.until_ready()
        yield made
    finally:
        made.stop()


def test_metrics_are_the_numbers_of_sinfo_and_squeue_by_both_sets_of_names(
    site: Site, cluster: SlurmClusterSite, prometheus: Prometheus
) -> None:
    """S114."""
    del prometheus  # It reads what happens from here on.
    exporter = Exporter(site, cluster)
    exporter.enable(VPENSO)
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
    (place,) = [one for one, _ in found["slurm_node_job"] if one["job_id"] == running]
    where = cluster.run(cluster.slurmctld, "slurmctld", f"squeue -h -j {running} -o %N").strip()
    assert place["node_name"] == where
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
    errors = sum(count for _, count in own.get("slurm_exporter_collector_errors_total", []))
    # slurmrestd 24.11 may fail once: "Unable to query partitions: Unspecified error".
    assert errors <= (1 if lacks("26.05") else 0)
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


def write(cluster: SlurmClusterSite, text: str, path: str, *pods: str) -> None:
    """Write a file in the slurmd container of workers; the kubelet would take a minute."""
    for pod in pods:
        cluster.run(pod, "slurmd", f"cat >{path}.new <<'END'\n{text}\nEND\nmv {path}.new {path}")


def reason(cluster: SlurmClusterSite, node: str) -> str:
    """Reason of a drained node; empty when it is not drained."""
    found = cluster.scontrol("show", "node", node)
    if "+DRAIN" not in found:
        return ""
    lines = [line.strip() for line in found.splitlines()]
    words = next((line for line in lines if line.startswith("Reason=")), "Reason=")
    return words.removeprefix("Reason=").rpartition(" [")[0]


def fill(cluster: SlurmClusterSite, mebibytes: int) -> None:
    """Have a file of this size on the small disk of the first worker."""
    file = f"{DISK}/file"
    script = f"rm -f {file}; dd if=/dev/zero of={file} bs=1M count={mebibytes} status=none"
    cluster.run("worker-0", "slurmd", script)


def devices(cluster: SlurmClusterSite, count: int) -> None:
    """Have the first worker report so many devices."""
    write(cluster, str(count), DEVICES, "worker-0")


def until(cluster: SlurmClusterSite, wanted: str, node: str = "worker-0") -> None:
    """Wait until the node has exactly this reason; empty: until it is not drained."""
    eventually(
        f"{node} has {wanted or 'no reason'}, not {reason(cluster, node)}",
        lambda: reason(cluster, node) == wanted,
        CHECKED_S,
    )


@pytest.fixture
def checked(cluster: SlurmClusterSite) -> SlurmClusterSite:
    """The cluster with our checks on its workers, all of which pass."""
    write(cluster, "8", DEVICES, *WORKERS)
    write(cluster, json.dumps(CHECKS), f"{SCRIPTS}/checks.json", *WORKERS)
    fill(cluster, 0)
    cluster.until_idle(2)
    return cluster


def test_a_health_check_runs_beside_jobs_and_takes_no_part_of_them(
    cluster: SlurmClusterSite, figure: Callable[[str], None]
) -> None:
    """S112: the shipped catalogue, as the image has it, on a real slurmctld."""
    found = cluster.scontrol("show", "config")
    for line in (
        f"HealthCheckProgram {SCRIPTS}/hc_program.sh",
        f"HealthCheckInterval {EVERY_S} sec",
    ):
        assert " ".join(line.split()) in " ".join(found.replace("=", " ").split())
    where = "chroot /mnt/jail srun -w worker-0 hostname"
    assert cluster.run("login-0", "sshd", where).split() == ["worker-0"]
    output = f"{OUTPUTS}/worker-0.check_runner.{{}}.out"
    for context in ("prolog", "epilog"):
        path = output.format(context)
        eventually(f"{context} ran", lambda path=path: bool(_text(cluster, path)), CHECKED_S)
    # Each run writes the file from its start: one that is going on has not named all checks yet.
    wanted, path = ("boot_disk_full", "gpu_health_check skipped"), output.format("hc_program")
    eventually(
        f"{wanted} are named, not only: {_text(cluster, path)}",
        lambda: all(one in _text(cluster, path) for one in wanted),
        CHECKED_S,
    )
    for context in ("hc_program", "prolog"):
        # The shortest of three: other tests run beside it.
        taken, used = min(timed(cluster, f"{SCRIPTS}/{context}.sh") for _ in range(3))
        figure(f"{context} of the shipped checks: {taken:.2f} s, {used:.2f} s of CPU")
        assert taken < 10
        # The published interval is two minutes; a job of that time has one of each.
        assert used < 0.01 * 120


def timed(cluster: SlurmClusterSite, program: str) -> tuple[float, float]:
    """Seconds that a program took, and those of CPU, beside a slurmd as its caller."""
    script = (
        f"TIMEFORMAT='%R %U %S'; export SLURMD_NODENAME=worker-0 SLURM_JOB_ID=0; time {program}"
    )
    words = cluster.run("worker-0", "slurmd", f"bash -c {shlex.quote(f'{{ {script}; }} 2>&1')}")
    taken, user, system = (float(one) for one in words.split()[-3:])
    return taken, user + system


def _text(cluster: SlurmClusterSite, path: str) -> str:
    """A file of worker-0, empty while there is none."""
    try:
        return cluster.run("worker-0", "slurmd", f"cat {path}")
    except LocalError:
        return ""


def test_a_full_disk_drains_until_it_is_free_again(checked: SlurmClusterSite) -> None:
    """S112, S116: the reason names check and value, and repair removes its own drain."""
    fill(checked, 7)
    until(checked, f"{FULL} [hc_program]")
    fill(checked, 0)
    until(checked, "")
    assert "undrained the node" in checked.kubectl("logs", "worker-0", "-c", "slurmd")


def test_a_missing_device_drains_before_a_job_starts(checked: SlurmClusterSite) -> None:
    """S112: the prolog drains before slurmctld would, so the reason names the check."""
    write(checked, json.dumps(IN_PROLOG), f"{SCRIPTS}/checks.json", *WORKERS)
    devices(checked, 7)
    job = checked.session("sbatch --parsable --requeue -w worker-0 -o /dev/null --wrap true")
    until(checked, f"{MISSING} [prolog]")
    queue = f"squeue -h -j {job} -o %T"
    eventually("the job waits again", lambda: checked.session(queue) == "PENDING", CHECKED_S)
    assert reason(checked, "worker-0") == f"{MISSING} [prolog]"
    assert checked.session("srun hostname") == "worker-1"
    devices(checked, 8)
    until(checked, "")
    checked.session(f"scancel {job}")


def test_two_checks_of_one_node_do_not_undo_each_other(checked: SlurmClusterSite) -> None:
    fill(checked, 7)
    until(checked, f"{FULL} [hc_program]")
    devices(checked, 7)
    fill(checked, 0)
    until(checked, f"{MISSING} [hc_program]")
    devices(checked, 8)
    until(checked, "")


def test_a_users_drain_outlasts_a_fault_and_its_repair(checked: SlurmClusterSite) -> None:
    """S116."""
    user = "bad cable"
    checked.scontrol("update", "nodename=worker-0", "state=drain", f"reason={user}")
    for size in (7, 0):
        fill(checked, size)
        runs(checked, "worker-0")
        assert reason(checked, "worker-0") == user
    checked.scontrol("update", "nodename=worker-0", "state=resume")


def test_a_broken_configuration_is_logged_and_fails_no_job(checked: SlurmClusterSite) -> None:
    """A file that cannot be read drains no node."""
    write(checked, '[{"name": "a", "on_fail": "explode"}]', f"{SCRIPTS}/checks.json", *WORKERS)
    runs(checked, "worker-0")
    assert checked.session("srun -w worker-0 hostname") == "worker-0"
    words = "[0] (a).on_fail: found 'explode', expected one of none, drain, comment"
    assert words in checked.kubectl("logs", "worker-0", "-c", "slurmd")
    checked.until_idle(2)


def runs(cluster: SlurmClusterSite, node: str) -> None:
    """Wait for two more runs of the health check: the first may have begun before."""
    path = f"{OUTPUTS}/{node}.check_runner.hc_program.out"
    stamp = f"stat -c %Y.%y {path}"
    for _ in range(2):
        before = cluster.run(node, "slurmd", stamp)
        eventually(
            "the health check ran",
            lambda before=before: cluster.run(node, "slurmd", stamp) != before,
        )


def declare(cluster: SlurmClusterSite, spec: Mapping[str, Any]) -> None:
    """Apply an ActiveCheck."""
    cluster.apply(
        {
            "apiVersion": "slurm.nebius.ai/v1alpha1",
            "kind": "ActiveCheck",
            "metadata": {"name": spec["name"]},
            "spec": {"slurmClusterRefName": cluster.name, **spec},
        }
    )


def until_status(cluster: SlurmClusterSite, name: str, path: str, wanted: str) -> None:
    """Wait until a field of the status of an ActiveCheck has this value."""
    field = ("get", "activecheck", name, "-o", f"jsonpath={{.status.{path}}}")
    eventually(f"{name} is {wanted}", lambda: cluster.kubectl(*field) == wanted, CHECK_S)


def test_a_check_in_slurm_jobs_drains_its_worker_and_takes_the_drain_back(
    checked: SlurmClusterSite,
) -> None:
    """S113, without accounting; a check as a Kubernetes Job waits for it."""
    name, run = "broken-file", "slurmJobsStatus.lastRunStatus"
    broken = "/mnt/jail/srv/broken-worker-0"
    checked.run("login-0", "sshd", f"mkdir -p /mnt/jail/srv && touch {broken}")
    image = checked.get()["spec"]["slurmNodes"]["login"]["sshd"]["image"]
    container = {"image": image, "command": ["/bin/true"]}
    after = {"name": "after", "dependsOn": [name], "k8sJobSpec": {"jobContainer": container}}
    declare(checked, after)
    declare(checked, SLURM_CHECK)
    until_status(checked, name, run, "Failed")
    failed = "{.status.slurmJobsStatus.lastRunFailJobsAndReasons[*].jobID}"
    again = ("get", "activecheck", name, "-o", f"jsonpath={failed}")
    job = checked.kubectl(*again)
    until(checked, f"[node_problem] {name}: job {job} [slurm_job]")
    assert reason(checked, "worker-1") == ""
    assert checked.session("srun hostname") == "worker-1"
    checked.kubectl("create", "job", "broken", f"--from=cronjob/{name}")
    eventually("it failed again", lambda: checked.kubectl(*again) not in ("", job), CHECK_S)
    until(checked, f"[node_problem] {name}: job {checked.kubectl(*again)} [slurm_job]")
    assert checked.kubectl("get", "cronjob", "after", "--ignore-not-found") == ""
    checked.run("login-0", "sshd", f"rm {broken}")
    checked.kubectl("create", "job", "repaired", f"--from=cronjob/{name}")
    until_status(checked, name, run, "Complete")
    until(checked, "")
    eventually(
        "its reservation ended",
        lambda: "activecheck" not in checked.scontrol("show", "reservation"),
        ENDS_ITSELF_S if lacks("25.05") else CHECKED_S,
    )
    checked.until_idle(2)
    until_status(checked, "after", "k8sJobsStatus.lastJobStatus", "Complete")
    checked.kubectl("delete", "activecheck", name, "after")
    gone = ("get", "cronjob,job", "-o", "name", "-l", "app.kubernetes.io/component=soperatorchecks")
    eventually("its objects are gone", lambda: not checked.kubectl(*gone), CHECKED_S)


@pytest.mark.needs_slurm("25.05", "slurmrestd makes reservations")
def test_a_check_comments_and_reserves_its_worker_until_it_completes_there(
    checked: SlurmClusterSite,
) -> None:
    """S113: the node takes no job of a user, and the next run tests it in the reservation."""
    name, run = "broken-link", "slurmJobsStatus.lastRunStatus"
    broken = "/mnt/jail/srv/broken-worker-0"
    checked.run("login-0", "sshd", f"touch {broken}")
    declare(checked, COMMENT_CHECK)
    until_status(checked, name, run, "Failed")
    mark, reserved = f"[node_problem] {name}: job ", "ReservationName=suspicious-worker-0 "

    def seen(node: str) -> tuple[bool, bool]:
        found = checked.scontrol("show", "reservation", "-o")
        return mark in checked.scontrol("show", "node", node), reserved in found

    eventually("it is marked", lambda: seen("worker-0") == (True, True), CHECKED_S)
    assert mark not in checked.scontrol("show", "node", "worker-1")
    assert reason(checked, "worker-0") == ""
    assert checked.session("srun hostname") == "worker-1"
    checked.run("login-0", "sshd", f"rm {broken}")
    checked.kubectl("create", "job", "cured", f"--from=cronjob/{name}")
    eventually("both marks are gone", lambda: seen("worker-0") == (False, False), CHECK_S)
    until_status(checked, name, run, "Complete")
    checked.until_idle(2)
    checked.kubectl("delete", "activecheck", name)


def test_the_checks_of_the_chart_run_on_workers_without_gpus(checked: SlurmClusterSite) -> None:
    """S113, S164: a check of GPUs is skipped with the reason, and others run that depend on it."""
    spec = checked.get()["spec"]
    of_operator = "jsonpath={.spec.template.spec.containers[0].image}"
    writer = "deployment/sconfigcontroller"
    given = {
        "slurmClusterRefName": checked.name,
        "images": {
            "k8sJob": spec["slurmNodes"]["login"]["sshd"]["image"],
            "operator": checked.kubectl("get", writer, "-o", of_operator),
        },
        "jobContainer": {"volumes": [spec["volumeSources"][0]]},
    }
    made = objects(rendered("soperator-activechecks", "checks", checked.namespace, given))
    for one in made:
        checked.apply(one)
    waiter = f"{checked.name}-wait-for-active-checks"
    checked.kubectl("wait", f"job/{waiter}", "--for=condition=Complete", f"--timeout={CHART_S}s")
    names = [one["metadata"]["name"] for one in made if one["kind"] == "ActiveCheck"]
    gpus, healthy = (f"{checked.name}-{one}" for one in ("gpu-checks", "ensure-healthy-nodes"))
    until_status(checked, gpus, "slurmJobsStatus.lastRunStatus", "Skipped")
    assert "no Slurm node has any" in checked.kubectl("get", "activecheck", gpus, "-o", "yaml")
    until_status(checked, healthy, "slurmJobsStatus.lastRunStatus", "Complete")
    assert checked.session("id -un", "soperatorchecks") == "soperatorchecks"
    again = f"{checked.name}-retrigger-checks"
    checked.kubectl("create", "job", "again", f"--from=cronjob/{again}")
    until_status(checked, again, "k8sJobsStatus.lastJobStatus", "Complete")
    assert f"created Job {checked.name}-gpu-checks-" in checked.kubectl("logs", "job/again")
    checked.kubectl("delete", "activecheck", *names)


def test_a_benchmark_of_the_cluster_is_skipped_without_gpus(checked: SlurmClusterSite) -> None:
    """S113, S164, in the older shape: a CronJob that never fails for want of a GPU."""
    name = f"{checked.name}-nccl-benchmark"
    given = {"enabled": True, "image": "none", "k8sNodeFilterName": "cpu"}
    checked.patch({"periodicChecks": {"ncclBenchmark": given}})
    cron = ("get", "cronjob", name, "--ignore-not-found", "-o", "name")
    eventually("it has a CronJob", lambda: checked.kubectl(*cron), CHECKED_S)
    checked.kubectl("create", "job", "benchmark", f"--from=cronjob/{name}")
    until_status(checked, name, "slurmJobsStatus.lastRunStatus", "Skipped")
    checked.patch({"periodicChecks": None})
    eventually("its CronJob is gone", lambda: not checked.kubectl(*cron), CHECKED_S)


@pytest.fixture
def jobs(cluster: SlurmClusterSite, prometheus: Prometheus) -> Generator[None]:
    """Jobs of an account: one that runs, one that waits, and others that ended."""

    def submit(options: str, script: str) -> str:
        command = "chroot /mnt/jail sbatch --parsable -o /dev/null -A physics"
        return cluster.run("login-0", "sshd", f"{command} {options} --wrap '{script}'").strip()

    cluster.until_idle(2)
    job = submit("-J drained -w worker-1", "sleep 600")
    eventually("it runs", lambda: "State=RUNNING" in cluster.scontrol("show", "job", job), 60)
    cluster.scontrol("update", "NodeName=worker-1", "State=DRAIN", "Reason=with a job")
    # The exporter has seen the drain beside the job, so it counts how long it lasts.
    drains = 'slurm_node_info{reason="with a job",state_is_drain="true"}'
    eventually("the drain is read", lambda: prometheus.now(drains), 60)
    cluster.run(cluster.slurmctld, "slurmctld", f"scancel {job}")
    ended = 'slurm_node_draining_duration_seconds_count{node_name="worker-1"} > 0'
    eventually("its end is read", lambda: prometheus.now(ended), 60)
    cluster.scontrol("update", "NodeName=worker-1", "State=RESUME")
    cluster.until_idle(2)
    submit("-J done", "true")
    submit("-J broken", "false")
    submit("-J runs -n 1", "sleep 600")
    submit("-J waits -N 2 --exclusive", "sleep 600")
    yield
    cluster.run(cluster.slurmctld, "slurmctld", "scancel -A physics")
    cluster.until_idle(2)


@pytest.mark.usefixtures("jobs")
@pytest.mark.needs_slurm("25.11", "slurmctld has metrics")
def test_each_query_of_a_dashboard_finds_something_on_this_cluster(
    cluster: SlurmClusterSite, prometheus: Prometheus
) -> None:
    """S117."""

    def missing() -> list[str]:
        return sorted(absent_queries(prometheus, cluster.namespace) - ABSENT.keys())

    # The assertion names those that are missing, so it comes after the wait.
    with contextlib.suppress(AssertionError):
        eventually("each query finds something", lambda: not missing(), 60)
    assert missing() == []
    if os.environ.get("PENSTOCK_WRITE_PICTURES"):
        write_pictures(prometheus, cluster.namespace)


@pytest.mark.needs_slurm("25.11", "slurmctld has metrics")
def test_the_expressions_of_alerts_name_series_and_find_the_faults_that_there_were(
    site: Site, cluster: SlurmClusterSite, prometheus: Prometheus
) -> None:
    """S117: tests before drained a node, perhaps often, and nothing else is wrong now."""
    prometheus.read_from(targets(site, cluster))
    seen = {one.name for one in ALERTS if prometheus.series(one.expr)}
    assert {"SlurmNodesUnavailable", "SlurmNodeDrainedLong"} <= seen

    def wrong() -> list[str]:
        return [one.name for one in ALERTS if one.name != OFTEN and prometheus.now(one.expr)]

    eventually("nothing is wrong", lambda: not wrong(), 60)
    series = {name for one in ALERTS for name in names(one.expr)}

    def missing() -> set[str]:
        return {name for name in series - ONLY_WITH_FAULTS if not prometheus.series(name)}

    with contextlib.suppress(AssertionError):
        eventually("each series is there", lambda: not missing(), 60)
    assert missing() == set()


def test_a_kubernetes_node_is_rebooted_once_its_job_has_ended(
    site: Site, cluster: SlurmClusterSite
) -> None:
    """S115, S092: of the rebooter, whose command is a stub."""
    node = RebootedNode(site, cluster)
    with node.allowed():
        node.configure(enabled=True)
        eventually("the rebooter is ready", node.is_ready, 120)
        # It takes its name when it has started.
        eventually("ps shows it", lambda: "slurm-rebooter" in node.processes())
        cluster.scontrol("update", "nodename=worker-1", "state=drain", "reason=mine")
        end = "/srv/reboot-ends"
        script = (
            f"mkdir -p /srv; sbatch -o /srv/out --wrap 'until [ -e {end} ]; do sleep 0.2; done'"
        )
        job = cluster.session(script).split()[-1]
        state = f"scontrol show job {job} -o"
        eventually("the job runs", lambda: "JobState=RUNNING" in cluster.session(state))
        uid = cluster.uid("worker-0")
        node.ask()
        until(cluster, "soperator: [compute_maintenance] node reboot process")
        eventually("the idle worker has left", lambda: not _runs(cluster, "worker-1"), 120)
        assert node.is_cordoned()
        assert node.reboots() == 0
        assert cluster.uid("worker-0") == uid
        assert "JobState=RUNNING" in cluster.session(state)
        cluster.session(f"touch {end}")
        eventually("the stub was called", lambda: node.reboots() == 1, 120)
        assert "JobState=COMPLETED" in cluster.session(state)
        assert not _runs(cluster, "worker-0")
        boots = (f"boot-{number}" for number in count(1))
        eventually(
            "the request is answered",
            lambda: node.boot(next(boots)) or node.answer() == "False/NodeRebooted",
        )
        eventually("it is uncordoned", lambda: not node.is_cordoned())
        eventually("worker-0 is idle", lambda: cluster.nodes().get("worker-0") == "idle", 180)
        eventually("the drain of a user stays", lambda: reason(cluster, "worker-1") == "mine", 180)
        assert node.reboots() == 1
        node.configure(enabled=False)
        eventually("the rebooter is gone", lambda: not node.pods(), 120)
        cluster.scontrol("update", "nodename=worker-1", "state=undrain")
        cluster.until_idle(2)
        assert cluster.session("srun hostname").startswith("worker-")


def _runs(cluster: SlurmClusterSite, pod: str) -> bool:
    path = "jsonpath={.status.phase}"
    return cluster.kubectl("get", "pod", pod, "-o", path, "--ignore-not-found") == "Running"
