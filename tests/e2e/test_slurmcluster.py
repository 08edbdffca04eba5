"""A SlurmCluster with its jail on a real kubelet, led by the operator from its YAML."""

from __future__ import annotations

import base64
import json
import os
import re
import secrets
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from pathlib import Path

import pytest
import yaml

from e2e_kit import backup, jail_upgrade, s3
from e2e_kit.api import Json, ready
from e2e_kit.images import give_all
from e2e_kit.release import RELEASE
from e2e_kit.site import Site, eventually, pid_in_pod
from e2e_kit.slurmcluster import NAME, SlurmClusterSite
from penstock.local.errors import LocalError
from penstock.local.images import build_backup, build_jail
from penstock.local.recipes import IMAGES

EXAMPLE = Path(__file__).parents[2] / "examples/slurmcluster.yaml"
GONE_S = 30.0
"""Within which a Slurm node goes after its pod."""
TOLD_S = 30.0
"""Within which a change in Slurm itself is reported."""
PROCESSES = {
    ("controller-0", "munge"): "munged",
    ("controller-0", "slurmctld"): "slurmctld",
    ("worker-0", "slurmd"): "slurmd",
    ("login-0", "munge"): "munged",
    ("login-0", "sshd"): "sshd",
    ("sconfigcontroller", "sconfigctrl"): "sconfigcontroller",
}
"""By the beginning of a pod's name and the name of a container."""
DESTROY = "cd /mnt/jail && find . -xdev -mindepth 1 -path ./etc/slurm -prune -o -delete || true"
RESTORE_S = 300.0
DAEMONS = ("controller-0", "worker-0", "worker-1", "login-0")
TOOLS = "for one in shared own new; do $one-tool; done"
AUDIT = "dpkg --audit; dpkg-query -W -f '${Package} ${Version}\\n' '*-tool'; tail -n1 /etc/nanorc"
KINDS = "configmaps,services,deployments,statefulsets,serviceaccounts,roles,rolebindings"
RAW = "PartitionName=main Nodes=ALL Default=YES"
MEMORY_MIB = 64
SOURCES: list[Json] = [
    {"name": "local", "emptyDir": {}},
    {"name": "memory", "emptyDir": {"medium": "Memory", "sizeLimit": f"{MEMORY_MIB}Mi"}},
    {"name": "marker", "configMap": {"name": "marker"}},
    {"name": "driver", "configMap": {"name": "driver", "defaultMode": 0o755}},
]
SHARED = [
    {"name": "jail", "mountPath": "/", "volumeSourceName": "jail"},
    {"name": "local", "mountPath": "/mnt/local", "volumeSourceName": "local"},
    {"name": "fast", "mountPath": "/mnt/fast", "volumeSourceName": "memory"},
    {"name": "marker", "mountPath": "/usr/local/lib/marker", "volumeSourceName": "marker"},
]
DRIVER_FILES = {
    "library": "/usr/lib/x86_64-linux-gnu/libnvidia-marker.so.1",
    "program": "/usr/bin/nvidia-smi",
}
"""Mounts of single files in the worker's container, as a GPU runtime makes them."""
DRIVER_MOUNTS = [
    {"name": key, "mountPath": path, "subPath": Path(path).name, "volumeSourceName": "driver"}
    for key, path in DRIVER_FILES.items()
]
JOB_DATA = {
    "name": "job-data",
    "mountPath": "/job",
    "volumeSourceName": "jail",
    "subPath": "jobs/${SLURM_JOB_ID}",
}
MARKER = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "marker"}}
DRIVER = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "driver"}}
WORKERS = ("worker-0", "worker-1")
SMALL = "--mem=1M --cpus-per-task=1"
"""A job that takes no node alone."""
PACKAGE = """
set -e
folder=$(mktemp -d)
mkdir -p $folder/DEBIAN $folder/usr/bin
printf '%s\\n' 'Package: marker' 'Version: 1' 'Architecture: all' 'Maintainer: x <x@y>' \
    'Description: x' >$folder/DEBIAN/control
printf '#!/bin/sh\\necho marked\\n' >$folder/usr/bin/marker
chmod 755 $folder/usr/bin/marker
dpkg-deb --build $folder /tmp/marker.deb
dpkg -i /tmp/marker.deb
"""
# In slurmctld's pod: nothing is mounted over the jail there.
SUM = (
    "cd /mnt/jail && find . -xdev -path ./etc/slurm -prune -o -path ./root/.cache -prune -o "
    "-type f -printf '%i %T@ %m %U %p\\n' | sort | sha256sum && "
    "find . -xdev -path ./etc/slurm -prune -o -type f -print0 | sort -z | xargs -0 cat | sha256sum"
)


def with_volumes(text: str) -> str:
    """The example with sub-mounts of its jail."""
    documents = list(yaml.safe_load_all(text))
    spec = documents[-1]["spec"]
    spec["volumeSources"] += SOURCES
    spec["slurmNodes"]["worker"]["volumes"]["jailSubMounts"] = [*SHARED, JOB_DATA]
    spec["slurmNodes"]["worker"]["volumes"]["customMounts"] = DRIVER_MOUNTS
    spec["slurmNodes"]["login"]["volumes"]["jailSubMounts"] = SHARED
    return yaml.safe_dump_all(documents)


@pytest.fixture(scope="module")
def cluster(site: Site) -> Generator[SlurmClusterSite]:
    images = give_all(site.node, build_jail(RELEASE).values())
    text = with_volumes(EXAMPLE.read_text())
    made = SlurmClusterSite(site, f"jailed-{secrets.token_hex(2)}", text, images)
    try:
        marker = {**MARKER, "data": {"libmarker.so": "marker\n"}}
        made.up(beside=f"{json.dumps(marker)}\n---\n{json.dumps(driver())}")
        yield made
    finally:
        made.down()


def driver() -> Json:
    """A library that ldconfig lists under its name, with text at its end, and a program."""
    name = Path(DRIVER_FILES["library"]).name
    code = (
        "import sys, jail_driver; from pathlib import Path;"
        "header = Path('/proc/self/exe').read_bytes()[:64];"
        "sys.stdout.buffer.write(jail_driver.placeholder(sys.argv[1], header) + b'of the driver')"
    )
    library = subprocess.run(
        [sys.executable, "-c", code, name],
        cwd=IMAGES / "entrypoints",
        capture_output=True,
        check=True,
    ).stdout
    return {
        **DRIVER,
        "binaryData": {name: base64.b64encode(library).decode()},
        "data": {"nvidia-smi": '#!/bin/sh\necho "GPU 0: marker $*"\n'},
    }


def job(cluster: SlurmClusterSite, node: str, script: str, user: str = "root") -> str:
    """Output of a shell script as a job on a node."""
    words = shlex.join(["srun", "-Q", *SMALL.split(), "-w", node, "sh", "-c", script])
    return cluster.session(words, user)


def memory_mib(cluster: SlurmClusterSite, pod: str) -> int:
    """Memory of files that is counted against the slurmd container, by its control group."""
    files = "/sys/fs/cgroup/memory/memory.usage_in_bytes /sys/fs/cgroup/memory.current"
    return int(cluster.run(pod, "slurmd", f"cat {files} 2>/dev/null || true").split()[0]) >> 20


def mount_points(cluster: SlurmClusterSite, node: str) -> list[str]:
    """Mount points of a job."""
    lines = job(cluster, node, "cat /proc/self/mountinfo").splitlines()
    return [line.split()[4] for line in lines]


def starts(cluster: SlurmClusterSite, pod: str) -> int:
    """How often the first container of a pod was started again."""
    path = "jsonpath={.status.containerStatuses[0].restartCount}"
    return int(cluster.kubectl("get", "pod", pod, "-o", path))


def test_the_example_comes_up_and_runs_jobs_in_the_jail(
    cluster: SlurmClusterSite, figure: Callable[[str], None]
) -> None:
    """S084, S088, S164: by the names of pods and containers that scripts use; there is no GPU."""
    figure(f"from SlurmCluster to two idle workers: {cluster.start_s:.1f} s")
    said = cluster.run("login-0", "sshd", "chroot /mnt/jail srun -N2 -l cat /etc/os-release")
    assert said.count("trixie") >= 2


def test_a_package_a_user_and_a_file_are_seen_everywhere_at_once(cluster: SlurmClusterSite) -> None:
    """S094, S179: made on a worker, on the login and in a job; nothing is started again."""
    cluster.session("useradd -m -s /bin/bash alice; useradd -m -s /bin/bash bob")
    job(cluster, "worker-0", PACKAGE)
    job(cluster, "worker-1", "echo data >results", "alice")
    seen = "marker; cat results; id -un"
    assert cluster.session(seen, "alice").split() == ["marked", "data", "alice"]
    for node in WORKERS:
        assert job(cluster, node, seen, "alice").split() == ["marked", "data", "alice"]
    assert [starts(cluster, pod) for pod in (*WORKERS, "login-0", "controller-0")] == [0] * 4


def test_a_new_worker_needs_no_set_up_for_the_jail(cluster: SlurmClusterSite) -> None:
    """S094, S119, D66: scaled out and in; the highest ordinals go, with their Slurm nodes."""
    cluster.patch({"slurmNodes": {"worker": {"size": 3}}})
    cluster.until_idle(3)
    found = job(cluster, "worker-2", "marker; cat results; id -un", "alice")
    assert found.split() == ["marked", "data", "alice"]
    # Idle workers go before a busy one, whatever their ordinals: the job must be seen to be over.
    cluster.until_idle(3)
    eventually("no job is left", lambda: cluster.get()["status"]["workers"]["idle"] == 3, 30)
    cluster.patch({"slurmNodes": {"worker": {"size": 1}}})
    eventually("they are gone", lambda: cluster.nodes() == {"worker-0": "idle"}, 120)
    cluster.patch({"slurmNodes": {"worker": {"size": 2}}})
    cluster.until_idle(2)


def test_devices_processes_and_temporary_files_are_the_nodes_own(cluster: SlurmClusterSite) -> None:
    """S096."""
    for node in WORKERS:
        job(cluster, node, f"for d in /dev/shm /run /tmp; do echo {node} >$d/whose; done")
    for node in WORKERS:
        said = job(cluster, node, "cat /dev/shm/whose /run/whose /tmp/whose")
        assert said.split() == [node] * 3
        assert {"/dev", "/proc", "/run", "/tmp"} <= set(mount_points(cluster, node))
        assert "slurmd" not in job(cluster, node, "cat /proc/[0-9]*/comm").split()
    for name in ("/dev/shm", "/run", "/tmp"):
        assert "whose" not in cluster.session(f"ls {name}").split()


def test_packages_of_users_cannot_break_what_comes_from_the_image(
    cluster: SlurmClusterSite,
) -> None:
    """S096: Slurm's programs, libraries, plug-ins, configuration, and a driver's library."""
    marker = "/usr/local/lib/marker/libmarker.so"
    for node in WORKERS:
        assert job(cluster, node, f"cat {marker}") == "marker"
    script = f"""
    mkdir -p /usr/lib/x86_64-linux-gnu/slurm-wlm
    for file in /usr/lib/x86_64-linux-gnu/libslurm.so /usr/lib/x86_64-linux-gnu/libmunge.so.2 \
        /usr/lib/x86_64-linux-gnu/slurm-wlm/auth_munge.so /opt/penstock/slurm/bin/srun \
        /etc/slurm/slurm.conf /etc/slurm/plugstack.conf {marker}
    do echo broken 2>/dev/null >$file && echo $file; done; true
    """
    written = job(cluster, "worker-0", script).split()
    assert all("libslurm" in path or "libmunge" in path for path in written), written
    assert job(cluster, "worker-0", f"srun --version; cat {marker}").split()[-1] == "marker"
    assert job(cluster, "worker-1", "hostname") == "worker-1"


def test_a_driver_that_a_gpu_runtime_mounts_is_in_the_jail(cluster: SlurmClusterSite) -> None:
    """S096: on nodes that have one, also after ldconfig has run where there is none."""
    name = Path(DRIVER_FILES["library"]).name
    path = f"/opt/penstock/driver/{name}"
    seen = f"ldconfig -p | grep {name}; nvidia-smi -L; tail -c 13 {path}"
    for node in WORKERS:
        found = job(cluster, node, seen)
        assert f"=> {path}" in found, found
        assert found.splitlines()[1:] == ["GPU 0: marker -L", "of the driver"]
    attempt = f"echo broken 2>/dev/null >>{path}; rm -f {path} 2>/dev/null; tail -c 13 {path}"
    assert job(cluster, "worker-0", attempt) == "of the driver"
    at_login = f"grep -q 'of the driver' {path} || echo placeholder"
    assert cluster.session(at_login) == "placeholder"
    assert cluster.session("nvidia-smi -L 2>/dev/null || echo absent") == "absent"
    cluster.session("rm /etc/ld.so.cache && ldconfig")
    assert f"=> {path}" in job(cluster, "worker-1", seen)


def test_a_broken_root_of_a_container_is_as_built_in_the_next_pod(
    cluster: SlurmClusterSite,
) -> None:
    """S095: the image is another distribution than the jail, which stays as it is."""
    place = ". /etc/os-release; echo $VERSION_CODENAME"
    assert cluster.run("worker-0", "slurmd", place).strip() == RELEASE.suite
    assert job(cluster, "worker-0", place) == "trixie"
    broken = "echo 'VERSION_CODENAME=broken' >/etc/os-release; rm /usr/bin/unshare; echo x >/x"
    cluster.run("worker-0", "slurmd", broken)
    assert cluster.run("worker-0", "slurmd", place).strip() == "broken"
    before = cluster.uid("worker-0")
    cluster.kubectl("delete", "pod", "worker-0", "--wait=false")

    def is_replaced() -> bool:
        pods = json.loads(cluster.kubectl("get", "pods", "-o", "json"))["items"]
        uids = [one["metadata"]["uid"] for one in pods if one["metadata"]["name"] == "worker-0"]
        return bool(uids) and before not in uids

    eventually("it is replaced", is_replaced, 60)
    cluster.kubectl("wait", "--for=condition=Ready", "pod/worker-0", "--timeout=90s")
    cluster.until_idle(2)
    as_built = f"{place}; test -x /usr/bin/unshare && test ! -e /x && echo whole"
    assert cluster.run("worker-0", "slurmd", as_built).split() == [RELEASE.suite, "whole"]
    assert job(cluster, "worker-0", f"{place}; marker").split() == ["trixie", "marked"]


def test_sub_mounts_are_each_nodes_own_in_jobs_and_sessions(cluster: SlurmClusterSite) -> None:
    """S097, S104: the jail's own volume on / changes nothing."""
    for node in WORKERS:
        job(cluster, node, f"for d in local fast; do echo {node} >/mnt/$d/whose; done")
    for node in WORKERS:
        assert job(cluster, node, "cat /mnt/local/whose /mnt/fast/whose").split() == [node] * 2
    assert cluster.session("ls /mnt/local /mnt/fast | grep whose; stat -fc %T /mnt/fast") == "tmpfs"
    points = mount_points(cluster, "worker-0")
    assert points.count("/") == 1
    assert {"/mnt/local", "/mnt/fast"} <= set(points)
    assert not [point for point in points if "upper" in point or "/mnt/jail" in point]


def test_local_and_memory_volumes_have_the_speed_of_their_medium(
    cluster: SlurmClusterSite, figure: Callable[[str], None]
) -> None:
    """S097: by a job, as a share of the container's own folder on the same medium."""
    size = MEMORY_MIB // 2
    script = f"dd if=/dev/zero of=%s/big bs=1M count={size} conv=fsync 2>&1 | tail -n1; rm %s/big"

    def rate(output: str) -> float:
        seconds = re.search(r"([0-9.e-]+) s,", output)
        assert seconds is not None, output
        return size / float(seconds[1])

    for inside, beside in (("/mnt/local", "/tmp"), ("/mnt/fast", "/dev/shm")):
        in_job, medium = 0.0, 0.0
        # Other processes write to the medium as well, in bursts: one undisturbed pair is enough.
        for _ in range(10):
            in_job = rate(job(cluster, "worker-0", script.replace("%s", inside)))
            medium = rate(cluster.run("worker-0", "slurmd", script.replace("%s", beside)))
            if in_job > medium / 4:
                break
        figure(f"{inside}: {in_job:.0f} MiB/s in a job, {beside} of the container {medium:.0f}")
        assert in_job > medium / 4


def test_memory_volumes_are_limited_and_counted_against_the_pod(cluster: SlurmClusterSite) -> None:
    """S097."""
    fill = f"dd if=/dev/zero of=/mnt/fast/full bs=1M count={MEMORY_MIB + 8} 2>&1; rm /mnt/fast/full"
    assert "No space left on device" in job(cluster, "worker-0", fill)
    before = memory_mib(cluster, "worker-0")
    job(cluster, "worker-0", f"dd if=/dev/zero of=/mnt/fast/half bs=1M count={MEMORY_MIB // 2}")
    assert memory_mib(cluster, "worker-0") >= before + MEMORY_MIB // 4
    job(cluster, "worker-0", "rm /mnt/fast/half")


def test_the_spool_has_state_and_scripts_over_a_restart_of_the_container(
    cluster: SlurmClusterSite, figure: Callable[[str], None]
) -> None:
    """S103, S123."""
    script = "until test -e /root/over; do sleep 0.2; done"
    wrap = f"sbatch --parsable {SMALL} -w worker-0 -o /dev/null --wrap '{script}'"
    number = cluster.session(wrap)
    path = f"/var/spool/slurmd/job{int(number):05}/slurm_script"
    seen = ("worker-0", "slurmd", f"cat {path} 2>/dev/null || true")
    eventually("its script is there", lambda: script in cluster.run(*seen), 30)
    assert script in job(cluster, "worker-0", f"cat {path}")
    cluster.run("worker-0", "slurmd", "echo kept >/var/spool/slurmd/mine")
    listed = cluster.run("worker-0", "slurmd", "ls -i /var/spool/slurmd").split()
    began = time.monotonic()
    os.kill(pid_in_pod(cluster.uid("worker-0"), "jail_slurmd.py"), signal.SIGKILL)
    eventually("it is started again", lambda: starts(cluster, "worker-0") == 1, 60)
    eventually("it is there", lambda: "kept" in _spool(cluster, "cat /var/spool/slurmd/mine"), 60)
    figure(f"a worker's killed container is back after {time.monotonic() - began:.1f} s")
    again = cluster.run("worker-0", "slurmd", "ls -i /var/spool/slurmd").split()
    assert "cred_state" in again
    assert listed[listed.index("mine") - 1] == again[again.index("mine") - 1]
    cluster.session(f"touch /root/over; scancel {number}")
    cluster.until_idle(2)


def _spool(cluster: SlurmClusterSite, command: str) -> str:
    return cluster.run("worker-0", "slurmd", f"{command} 2>/dev/null || true")


def test_two_jobs_at_once_have_a_folder_each(cluster: SlurmClusterSite) -> None:
    """S105: on one node, of one user and of two; the files stay when the jobs have ended."""
    wait = "until test -e /opt/both; do sleep 0.1; done"
    script = f"ls -A /job; echo $SLURM_JOB_ID >/job/mine; {wait}; srun -Q cat /job/mine"
    numbers: dict[str, str] = {}
    # A Kubernetes node of two cores runs two of them.
    for user, node in (("alice", "worker-0"), ("alice", "worker-0"), ("bob", "worker-1")):
        words = f"sbatch --parsable {SMALL} -w {node} -o /job/out --wrap '{script}'"
        numbers[cluster.session(words, user)] = user
    running = "squeue -h -t RUNNING -o %A"
    eventually("all run", lambda: set(cluster.session(running).split()) == set(numbers), 30)
    cluster.session("touch /opt/both")
    eventually("they end", lambda: not cluster.session("squeue -h -o %A"), 60)
    assert len(numbers) == 3
    for number, user in numbers.items():
        folder = f"/jobs/{number}"
        assert cluster.session(f"ls {folder}", user).split() == ["mine", "out"]
        assert cluster.session(f"cat {folder}/out", user).split()[-1] == number
        assert cluster.session(f"stat -c '%U %a' {folder}") == f"{user} 700"
        other = "bob" if user == "alice" else "alice"
        assert "Permission denied" in cluster.session(f"ls {folder} 2>&1 || true", other)
    assert cluster.session("ls -A /job") == ""
    cluster.session("rm /opt/both")


@pytest.mark.parametrize("command", ["srun", "salloc", "salloc srun", "sbatch"])
def test_every_kind_of_step_has_the_jobs_folder(cluster: SlurmClusterSite, command: str) -> None:
    """S105: also the interactive step of salloc, and both nodes of a job."""
    words = f"{SMALL} -N2 -n2" if command != "salloc" else SMALL
    text = "touch /job/$SLURM_JOB_ID-$SLURM_PROCID; pwd >/job/pwd; ls -d /job"
    if command == "sbatch":
        step = text.replace("$", "\\$")
        given = f"sbatch --wait {words} -D /job --wrap 'srun -Q sh -c \"{step}\"'"
    elif command == "salloc":
        given = f"echo '{text}; exit' | script -qec 'salloc -Q {words}' /dev/null"
    else:
        first, *rest = command.split()
        given = f"{first} -Q {words} {' '.join(rest)} sh -c '{text}'"
    cluster.session(given, "alice")
    newest = cluster.session("ls -t /jobs | head -n1")
    found = set(cluster.session(f"ls /jobs/{newest}").split())
    assert f"{newest}-0" in found or f"{newest}-" in found, found
    if "-N2" in words:
        assert f"{newest}-1" in found


def test_what_a_user_plants_ends_the_step_with_the_reason(cluster: SlurmClusterSite) -> None:
    """S105: the next job's folder is a link; the message names the call and the path."""
    last = max(map(int, cluster.session("ls /jobs").split()))
    cluster.session(f"for n in $(seq {last + 1} {last + 30}); do ln -s /etc /jobs/$n; done")
    said = cluster.session(f"srun -Q {SMALL} true 2>&1 || true", "alice")
    assert re.search(r"openat2\(/mnt/jail\.jobs/jail/jobs/\d+\): Too many levels", said), said
    assert cluster.session("ls -d /etc/mine 2>&1 || true").endswith("No such file or directory")
    cluster.session("find /jobs -type l -delete")
    cluster.until_idle(2)


def test_other_variables_are_rejected_with_the_known_names(
    cluster: SlurmClusterSite, site: Site
) -> None:
    """S105: at admission, and without webhooks by a condition; no pod is changed."""
    before = [cluster.uid(pod) for pod in WORKERS]
    wrong = {**JOB_DATA, "subPath": "jobs/${SLURM_JOB_USER}"}
    spec = {"slurmNodes": {"worker": {"volumes": {"jailSubMounts": [*SHARED, wrong]}}}}
    words = "'${SLURM_JOB_USER}' is no variable here: known is ${SLURM_JOB_ID}"
    patch = ("patch", "slurmcluster", NAME, "--type=merge", "-p", json.dumps({"spec": spec}))
    assert words in site.rejected("-n", cluster.namespace, *patch)
    with site.without_operator():
        cluster.patch(spec)
    eventually(words, lambda: words in cluster.condition("Ready"), 60)
    right = [*SHARED, JOB_DATA]
    cluster.patch({"slurmNodes": {"worker": {"volumes": {"jailSubMounts": right}}}})
    eventually("it recovers", lambda: cluster.status("Ready") == "True", 60)
    assert [cluster.uid(pod) for pod in WORKERS] == before


def test_a_key_of_slurm_conf_is_active_in_seconds_without_a_restart(
    cluster: SlurmClusterSite,
) -> None:
    before = cluster.uid("controller-0")
    cluster.patch({"customSlurmConfig": cluster.custom + "KillWait=77\n"})
    eventually("it is active", lambda: "= 77 sec" in cluster.scontrol("show", "config"), 60)
    assert cluster.uid("controller-0") == before


def test_each_daemon_is_found_by_ps_in_the_container_of_its_name(
    cluster: SlurmClusterSite,
) -> None:
    """S088."""
    names = pods(cluster)
    for (prefix, container), process in PROCESSES.items():
        name = next(one for one in names if one.startswith(prefix))
        # The image of sconfigcontroller has no shell.
        command = ("exec", name, "-c", container, "--", "ps", "-e", "-o", "args")
        every = cluster.kubectl(*command)
        assert process in every, (name, container, every)


def test_main_containers_are_chosen_for_logs_and_a_shell_answers(
    cluster: SlurmClusterSite,
) -> None:
    """S131, S132: after a crash the log of the container before is there."""
    command = ("exec", "controller-0", "-c", "slurmctld", "--", "/bin/bash", "-c")
    assert "UP" in cluster.kubectl(*command, "scontrol ping")
    chosen = cluster.kubectl("logs", "controller-0")
    named = cluster.kubectl("logs", "controller-0", "-c", "slurmctld")
    assert chosen.splitlines()[:5] == named.splitlines()[:5]
    assert "slurmctld" in named


def test_a_bad_line_is_rejected_in_slurmctlds_words_and_partitions_go_on(
    cluster: SlurmClusterSite, figure: Callable[[str], None]
) -> None:
    """With a good line it recovers."""
    cluster.patch({"customSlurmConfig": cluster.custom + "NoSuchKey=1\n"})
    eventually("it is rejected", lambda: "NoSuchKey" in cluster.condition("ConfigValid"), 60)
    raw = [f"{RAW} MaxTime=7", "PartitionName=new Nodes=ALL MaxTime=8"]
    cluster.patch({"partitionConfiguration": {"configType": "custom", "rawConfig": raw}})
    began = time.monotonic()
    eventually("one is changed", lambda: shows(cluster, "main", "MaxTime=00:07:00"), 30, 0)
    eventually("one is made", lambda: shows(cluster, "new", "MaxTime=00:08:00"), 30, 0)
    figure(f"partitions beside a rejected line: {time.monotonic() - began:.2f} s")
    command = "grep -rh 'PartitionName=new' /mnt/jail/etc/slurm || true"
    eventually("the file has it", lambda: cluster.run("worker-0", "slurmd", command).strip(), 60)
    assert "NoSuchKey" not in cluster.run(
        "worker-0", "slurmd", "cat /mnt/jail/etc/slurm/*slurm*.conf"
    )
    assert "NoSuchKey" in cluster.condition("ConfigApplied")
    cluster.patch({"partitionConfiguration": {"configType": "custom", "rawConfig": [RAW]}})
    eventually("one is gone", lambda: not shows(cluster, "new", "MaxTime"), 60)
    cluster.patch({"customSlurmConfig": cluster.custom})
    eventually("it recovers", lambda: cluster.status("ConfigApplied") == "True", 60)


@pytest.mark.needs_slurm("26.05", "slurmrestd changes partitions, so drift is reverted")
def test_what_scontrol_changes_is_reported_in_time_and_reverted_as_chosen(
    cluster: SlurmClusterSite, figure: Callable[[str], None]
) -> None:
    """S150: of a partition and of a node."""
    eventually("it is settled", lambda: cluster.status("ConfigApplied") == "True", 60)
    cluster.scontrol("update", "partitionname=main", "maxtime=7")
    cluster.scontrol("update", "nodename=worker-0", "weight=5")
    began = time.monotonic()
    for words in ("MaxTime is 7, declared UNLIMITED", "node worker-0: Weight is 5, declared 1"):
        eventually(words, lambda words=words: words in cluster.condition("Drifted"), TOLD_S)
    figure(f"changes by scontrol are reported after {time.monotonic() - began:.1f} s")
    assert shows(cluster, "main", "MaxTime=00:07:00")
    mark = "penstock.dev/drift"
    cluster.kubectl("annotate", "slurmcluster", NAME, f"{mark}=Revert")
    eventually("it is reverted", lambda: shows(cluster, "main", "MaxTime=UNLIMITED"), 60)
    node = ("show", "node", "worker-0")
    eventually("the node too", lambda: "Weight=1 " in cluster.scontrol(*node), 60)
    eventually("nothing differs", lambda: cluster.status("Drifted") == "False", 60)
    cluster.kubectl("annotate", "slurmcluster", NAME, f"{mark}-")


def test_five_workers_leave_nothing_of_three_and_a_busy_one_is_drained_first(
    cluster: SlurmClusterSite, site: Site, figure: Callable[[str], None]
) -> None:
    """S119, S120, S166, D66: idle workers go first, and a busy one once its job ended.

    Meanwhile nobody evicts the busy ones, as `kubectl drain` would. A restart of slurmctld keeps
    the nodes so.
    """
    cluster.patch({"slurmNodes": {"worker": {"size": 5}}})
    cluster.until_idle(5)
    label = ("-l", "app.kubernetes.io/component=worker", "-o", "name")
    assert len(cluster.kubectl("get", "pods", *label).split()) == 5
    jobs: dict[str, str] = {}
    for name in ("worker-0", "worker-1", "worker-4"):
        command = f"chroot /mnt/jail sbatch --parsable -w {name} -o /dev/null --wrap 'sleep 1000'"
        jobs[name] = cluster.run("login-0", "sshd", command).strip()
    for job in jobs.values():
        state = ("show", "job", job)
        eventually("it runs", lambda one=state: "JobState=RUNNING" in cluster.scontrol(*one), 60)
    busy = {name: cluster.uid(name) for name in jobs}
    for name in busy:
        eventually("it is not evicted", lambda name=name: is_protected(cluster, site, name), 30)
    cluster.patch({"slurmNodes": {"worker": {"size": 2}}})
    eventually("the busy ones are left", lambda: cluster.nodes().keys() == jobs.keys(), 120)
    goes = eventually("one is drained", lambda: draining(cluster), 60)
    assert {name: cluster.uid(name) for name in jobs} == busy
    assert "JobState=RUNNING" in cluster.scontrol("show", "job", jobs[goes])
    cluster.run("login-0", "sshd", f"chroot /mnt/jail scancel {jobs[goes]}")
    eventually("its pod is gone", lambda: goes not in pods(cluster), 120)
    began = time.monotonic()
    eventually("its Slurm node too", lambda: goes not in cluster.nodes(), GONE_S)
    figure(f"a Slurm node is gone {time.monotonic() - began:.1f} s after its pod")
    both = dict.fromkeys(jobs.keys() - {goes}, "idle")
    cluster.run("login-0", "sshd", f"chroot /mnt/jail scancel {' '.join(jobs.values())}")
    eventually("they are idle", lambda: cluster.nodes() == both, 60)
    before = cluster.uid("controller-0")
    cluster.kubectl("delete", "pod", "controller-0")
    eventually("slurmctld is back", lambda: runs_again(cluster, "controller-0", before), 90)
    eventually("its nodes are the same", lambda: cluster.nodes() == both, 90)
    assert {name: cluster.uid(name) for name in both} == {name: busy[name] for name in both}


def test_an_added_claim_template_reaches_a_login_by_its_conditions_advice(
    cluster: SlurmClusterSite,
) -> None:
    """S086: no pod goes until the user deletes it."""
    before = cluster.uid("login-0")
    claim: Json = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "64Mi"}},
    }
    mounts = [{"name": "extra", "mountPath": "/extra", "volumeClaimTemplateSpec": claim}]
    cluster.patch({"slurmNodes": {"login": {"volumes": {"customMounts": mounts}}}})
    words = "kubectl delete statefulset login --cascade=orphan --wait=false"
    eventually("it is reported", lambda: words in cluster.condition("Ready"), 60)
    assert cluster.uid("login-0") == before
    cluster.kubectl(*words.split()[1:])
    path = "jsonpath={.spec.volumeClaimTemplates[*].metadata.name}"
    get = ("get", "statefulset", "login", "-o", path)
    eventually("it is recreated", lambda: cluster.kubectl(*get) == "extra", 60)
    assert cluster.uid("login-0") == before
    cluster.kubectl("delete", "pod", "login-0")
    mounted = "grep -c ' /extra ' /proc/mounts || true"
    eventually("it is replaced", lambda: runs_again(cluster, "login-0", before), 120)
    eventually("it is mounted", lambda: cluster.run("login-0", "sshd", mounted).strip() == "1", 60)
    eventually("all is well", lambda: cluster.status("Ready") == "True", 60)
    cluster.run("login-0", "sshd", "timeout 120 chroot /mnt/jail srun -v hostname")


def test_each_object_of_the_operator_comes_back_when_it_is_deleted(
    cluster: SlurmClusterSite,
) -> None:
    """S086: all but Secrets, which have the keys."""
    uid = cluster.get()["metadata"]["uid"]
    before = owned(cluster, uid)
    assert {one.partition("/")[0] for one in before} >= {"ConfigMap", "Service", "StatefulSet"}
    cluster.kubectl("delete", "--cascade=orphan", "--wait=false", *before)
    eventually("all are back", lambda: is_made_again(before, owned(cluster, uid)), 90)
    eventually("all is well", lambda: cluster.status("Ready") == "True", 90)
    # kube-proxy may take a while for the endpoints of new Services.
    ask = "chroot /mnt/jail scontrol ping | grep -c UP || true"
    eventually("slurmctld is found", lambda: cluster.run("login-0", "sshd", ask).strip() == "1", 60)
    cluster.run("login-0", "sshd", "timeout 120 chroot /mnt/jail srun -v -N2 hostname")


def is_protected(cluster: SlurmClusterSite, site: Site, pod: str) -> bool:
    """Whether Kubernetes rejects the eviction of a pod, which is only tried."""
    eviction: Json = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}}
    eviction["deleteOptions"] = {"dryRun": ["All"]}
    path = f"/api/v1/namespaces/{cluster.namespace}/pods/{pod}/eviction"
    words = ("create", "--raw", path, "-f", "-")
    try:
        site.kubectl(*words, stdin=json.dumps(eviction))
    except LocalError as error:
        return "disruption budget" in str(error)
    return False


def draining(cluster: SlurmClusterSite) -> str:
    """The first Slurm node that is drained under a job; empty without one."""
    return next((name for name, state in cluster.nodes().items() if state == "drng"), "")


def owned(cluster: SlurmClusterSite, uid: str) -> dict[str, str]:
    """Uids of the objects that a SlurmCluster owns, by kind and name."""
    found: list[Json] = json.loads(cluster.kubectl("get", KINDS, "-o", "json"))["items"]
    return {
        f"{one['kind']}/{one['metadata']['name']}": one["metadata"]["uid"]
        for one in found
        if any(o["uid"] == uid for o in one["metadata"].get("ownerReferences", ()))
    }


def is_made_again(before: dict[str, str], now: dict[str, str]) -> bool:
    """Whether all objects are there, and each is another one."""
    return before.keys() <= now.keys() and not set(before.values()) & set(now.values())


def pods(cluster: SlurmClusterSite) -> list[str]:
    """Names of the pods."""
    return cluster.kubectl("get", "pods", "-o", "jsonpath={.items[*].metadata.name}").split()


def shows(cluster: SlurmClusterSite, partition: str, words: str) -> bool:
    """Whether slurmctld shows this of a partition."""
    every = cluster.scontrol("show", "partition", "-o").splitlines()
    return any(f"PartitionName={partition} " in one and words in one for one in every)


def runs_again(cluster: SlurmClusterSite, pod: str, before: str) -> bool:
    """Whether another pod of that name is ready."""
    found: list[Json] = json.loads(cluster.kubectl("get", "pods", "-o", "json"))["items"]
    named = [one for one in found if one["metadata"]["name"] == pod]
    return any(ready(one) and one["metadata"]["uid"] != before for one in named)


def test_a_cluster_that_is_deleted_and_created_again_has_its_jail_as_it_was(
    cluster: SlurmClusterSite, figure: Callable[[str], None]
) -> None:
    """S090: it is gone once its workers are drained, and its jail is not filled again."""
    before = cluster.run("controller-0", "slurmctld", SUM)
    declared = cluster.get()
    cluster.kubectl("delete", "slurmcluster", NAME, "--timeout=120s")

    def pods() -> str:
        return cluster.kubectl("get", "pods", "-o", "name", "--field-selector=status.phase=Running")

    eventually("its pods are gone", lambda: not pods().split(), 120)
    assert "jail" in cluster.kubectl("get", "pvc", "-o", "name")
    kept: Json = {name: declared[name] for name in ("apiVersion", "kind", "spec")}
    cluster.apply({**kept, "metadata": {"name": NAME}})
    cluster.until_idle(2)
    cluster.until_login()
    said = cluster.kubectl("logs", f"job/{NAME}-populate-jail")
    assert "filled already: " in said
    assert "copying" not in said
    assert cluster.run("controller-0", "slurmctld", SUM) == before
    assert job(cluster, "worker-1", "marker; cat results; id -un", "alice").split() == [
        "marked",
        "data",
        "alice",
    ]


def test_a_destroyed_jail_and_the_state_come_back_from_a_backup(
    cluster: SlurmClusterSite, site: Site, figure: Callable[[str], None]
) -> None:
    """S175: files as they were, and the queue; a running job is named, and ends by force only."""
    image = give_all(site.node, build_backup().values())["backup"]
    cluster.session(backup.FILES)
    held = cluster.session(f"sbatch --parsable -H {SMALL} --wrap hostname")
    backup.back_up(cluster, image)
    kind = ("backup", backup.BACKUP)
    eventually("it is backed up", lambda: backup.reason(cluster, *kind) == "BackupGood", 180)
    before, done = cluster.session(backup.LIST), backup.status(cluster, *kind)
    cluster.session(f"scancel {held}")
    running = cluster.session(f"sbatch --parsable {SMALL} --wrap 'sleep 1000'")
    eventually("it runs", lambda: cluster.session(f"squeue -h -j {running} -o %T") == "RUNNING")

    kind = ("restore", backup.RESTORE)
    backup.restore(cluster, image)
    eventually("it is named", lambda: backup.reason(cluster, *kind) == "RestoreWaitsForJobs", 30)
    words = backup.status(cluster, *kind)["conditions"][0]["message"]
    assert f"job {running}" in words
    assert cluster.session(f"squeue -h -j {running} -o %T") == "RUNNING"

    cluster.run("controller-0", "slurmctld", DESTROY)
    began = time.monotonic()
    backup.restore(cluster, image, force=True)
    phase = {"Succeeded"}
    eventually(
        "it is restored", lambda: backup.status(cluster, *kind).get("phase") in phase, RESTORE_S
    )
    restored = time.monotonic() - began
    cluster.until_idle(2)
    cluster.until_login()
    figure(
        f"{done['bytes'] / 1e6:.0f} MB, {done['addedBytes'] / 1e6:.0f} MB in the repository; "
        f"restored in {restored:.0f} s, idle after {time.monotonic() - began:.0f} s"
    )
    assert cluster.session(backup.LIST) == before
    assert cluster.session(f"squeue -h -j {held} -o %T") == "PENDING"

    def runs() -> bool:
        """The name of a new pod may not lead to it at once."""
        try:
            return job(cluster, "worker-1", "id -un", "carol") == "carol"
        except LocalError:
            return False

    eventually("a job of the user runs", runs, 60)


def test_the_state_goes_to_s3_storage_and_comes_back(cluster: SlurmClusterSite, site: Site) -> None:
    """S175."""
    image = give_all(site.node, build_backup().values())["backup"]
    s3.load(site.node)
    for one in (*backup.BESIDE, *s3.OBJECTS):
        cluster.apply(one)
    cluster.kubectl("wait", "pod/s3", "--for=condition=Ready", "--timeout=60s")
    held = cluster.session(f"sbatch --parsable -H {SMALL} --wrap hostname")
    given: Json = {"parts": ["state"], "repository": s3.REPOSITORY}
    backup.back_up(cluster, image, name="offsite", **given)
    made = ("backup", "offsite")
    eventually("it is backed up", lambda: backup.reason(cluster, *made) == "BackupGood", 120)
    cluster.session(f"scancel {held}")
    backup.restore(cluster, image, name="from-offsite", of="offsite", parts=["state"], force=True)
    back = ("restore", "from-offsite")
    eventually(
        "it is restored",
        lambda: backup.status(cluster, *back).get("phase") == "Succeeded",
        RESTORE_S,
    )
    cluster.until_idle(2)
    cluster.until_login()
    assert cluster.session(f"squeue -h -j {held} -o %T") == "PENDING"
    assert backup.status(cluster, *back)["snapshot"] == backup.status(cluster, *made)["snapshot"]
    cluster.session(f"scancel {held}")


def test_a_filled_jail_is_upgraded_beside_a_job_after_a_list_and_undone(
    cluster: SlurmClusterSite, site: Site, figure: Callable[[str], None]
) -> None:
    """S168: an image of one's own; what users installed, edited and removed stays."""
    program = give_all(site.node, build_backup().values())["backup"]
    image = jail_upgrade.give_image(site.node)
    cluster.session(jail_upgrade.CHANGE)
    running = cluster.session(f"sbatch --parsable {SMALL} --wrap 'sleep 1000'")
    eventually("it runs", lambda: cluster.session(f"squeue -h -j {running} -o %T") == "RUNNING")
    before, pods = cluster.session(jail_upgrade.LIST), list(map(cluster.uid, DAEMONS))

    def is_in(phase: str) -> bool:
        return jail_upgrade.status(cluster).get("phase") == phase

    jail_upgrade.upgrade(cluster, image, program)
    eventually("it is compared", lambda: is_in("Compared"), 120)
    listed = cluster.kubectl("logs", f"job/jail-compare-{jail_upgrade.NAME}").splitlines()
    assert {
        "package shared-tool: 1.0 -> 2.0",
        "package new-tool: absent -> 1.0",
        "~ /usr/bin/shared-tool",
        "+ /usr/bin/new-tool",
        "~ /usr/bin/htop",
        "+ /usr/bin/htop-next",
        "~ /etc/bash.bashrc",
        "! /etc/nanorc",
    } <= set(listed)
    assert cluster.session(jail_upgrade.LIST) == before

    began = time.monotonic()
    jail_upgrade.upgrade(cluster, image, program, approved=True)
    eventually("it is applied", lambda: is_in("Succeeded"), 180)
    applied = time.monotonic() - began
    assert job(cluster, "worker-1", TOOLS).split() == ["2.0", "1.0", "1.0"]
    assert cluster.session(AUDIT).splitlines() == [
        "new-tool 1.0",
        "own-tool 1.0",
        "shared-tool 2.0",
        "# of the users",
    ]
    assert cluster.session("ls /usr/share/doc/zip") == "note"
    assert cluster.session("tail -n1 /etc/bash.bashrc") == "# of the next image"

    began = time.monotonic()
    jail_upgrade.upgrade(cluster, image, program, approved=True, undo=True)
    eventually("it is undone", lambda: is_in("Undone"), 180)
    figure(f"applied in {applied:.0f} s, undone in {time.monotonic() - began:.0f} s")
    assert cluster.session(jail_upgrade.LIST) == before
    assert cluster.session(f"squeue -h -j {running} -o %T") == "RUNNING"
    assert list(map(cluster.uid, DAEMONS)) == pods
    cluster.session(f"scancel {running}")
