"""Bad days of a SlurmCluster with real daemons: jobs go on, and what is fixed recovers."""

from __future__ import annotations

import base64
import json
import os
import secrets
import shlex
import signal
import time
from collections import Counter
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from e2e_kit.api import Json, condition, ready
from e2e_kit.images import give_all
from e2e_kit.operator_kills import killed_at_writes
from e2e_kit.release import RELEASE, lines_of
from e2e_kit.site import Site, eventually, pid_in_pod
from e2e_kit.slurmcluster import NAME, SlurmClusterSite
from penstock.base.times import parse
from penstock.local.images import build_jail
from penstock.render.nebius.config.partition_lines import DEFAULT_PARTITIONS
from penstock.slurm.auth.key_rotation import named

EXAMPLE = (Path(__file__).parents[2] / "examples/slurmcluster.yaml").read_text()
ON_CLAIM = "{name: jail, persistentVolumeClaim: {claimName: jail}}"
TOO_SMALL = "{name: jail, emptyDir: {medium: Memory, sizeLimit: 1Mi}}"
KILLED_AT = (1, 5, 11, 20, 32)
"""Writes of the operator after which it is killed: of keys, files, the Job, daemons, workers."""
CREATED = 201
PODS = {"controller-0": "slurmctld", "worker-0": "slurmd", "worker-1": "slurmd", "login-0": "sshd"}
SECRET, JOB = f"{NAME}-munge", f"{NAME}-populate-jail"
USERS_FILE = "/etc/slurm/custom_slurm.conf"
READER = (
    '(while [ ! -e /root/read ]; do sha256sum </etc/slurm/custom_slurm.conf | cut -d" " -f1; '
    "done >/root/sums; echo end >/root/sums.end) >/dev/null 2>&1 &"
)
"""Reads the file of the user's lines all the time, and keeps the sum of each text."""
READ_S = 5.0
"""Within which each node reads a file that is in the jail."""
SMALL = "--mem=1M --cpus-per-task=1"
"""A job that takes no node alone."""


@dataclass
class Trouble:
    """A cluster with a job that no test may disturb."""

    site: Site
    images: dict[str, str]
    cluster: SlurmClusterSite
    key: bytes
    killed_after: list[str]
    uids: dict[str, str]
    job: str

    def jobs_go_on(self) -> None:
        """The job of before still runs, and a new one on each worker does."""
        assert self.squeue(self.job) == "RUNNING 0", self.squeue(self.job)
        said = self.in_jail(f"timeout 60 srun -N2 -n2 {SMALL} -l hostname")
        assert {line.split()[-1] for line in said.splitlines()} == {"worker-0", "worker-1"}
        assert {pod: self.cluster.uid(pod) for pod in PODS} == self.uids

    def in_jail(self, command: str) -> str:
        """Output of a command in the jail, on the login."""
        return self.cluster.run("login-0", "sshd", f"chroot /mnt/jail {command}")

    def submit(self, script: str, *options: str) -> str:
        """Id of a batch job."""
        words = " ".join((SMALL, *options))
        return self.in_jail(f"sbatch --parsable {words} --wrap='{script}'").strip()

    def squeue(self, job: str) -> str:
        """State of a job, and how often it was requeued."""
        found = self.cluster.scontrol("show", "job", job, "--json")
        (one,) = json.loads(found)["jobs"]
        return f"{one['job_state'][0]} {one['restart_cnt']}"

    def runs(self, pod: str, container: str) -> bool:
        """Whether an init container of a pod runs."""
        every = self._status(pod).get("initContainerStatuses", ())
        return any(one["name"] == container and "running" in one["state"] for one in every)

    def starts(self, pod: str) -> dict[str, int]:
        """How often each container of a pod was started again."""
        status = self._status(pod)
        every = (*status["containerStatuses"], *status.get("initContainerStatuses", ()))
        return {one["name"]: one["restartCount"] for one in every}

    def _status(self, pod: str) -> Json:
        return json.loads(self.cluster.kubectl("get", "pod", pod, "-o", "json"))["status"]


@pytest.fixture(scope="module")
def trouble(site: Site) -> Generator[Trouble]:
    images = dict(give_all(site.node, build_jail(RELEASE).values()))
    namespace, key = f"trouble-{secrets.token_hex(2)}", secrets.token_bytes(1024)
    cluster = SlurmClusterSite(site, namespace, EXAMPLE, images)
    try:
        with killed_at_writes(site, namespace, KILLED_AT) as kills:
            cluster.up(beside=_key(key))
        found = Trouble(site, images, cluster, key, kills.after, {}, "")
        eventually("the login is ready", lambda: "0" in found.in_jail("id -u"), 60)
        found.uids.update({pod: cluster.uid(pod) for pod in PODS})
        found.job = found.submit(
            "until [ -e /root/over ]; do sleep 1; done", "-w worker-1", "-o /root/long"
        )
        eventually("it runs", lambda: found.squeue(found.job) == "RUNNING 0", 30)
        yield found
    finally:
        cluster.down()


def _key(key: bytes) -> str:
    """The Secret of munge as a user creates it."""
    made: Json = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": SECRET}}
    return json.dumps({**made, "data": {"munge.key": _base64(key)}})


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def test_an_operator_killed_at_its_writes_brings_a_cluster_up_with_nothing_twice(
    trouble: Trouble, figure: Callable[[str], None]
) -> None:
    figure(f"bring-up with {len(trouble.killed_after)} kills: {trouble.cluster.start_s:.1f} s")
    assert len(trouble.killed_after) == len(KILLED_AT), trouble.killed_after
    namespace = trouble.cluster.namespace
    made = Counter(
        f"{one.resource} {one.name}"
        for one in trouble.site.operator_writes(namespace)
        if one.code == CREATED and one.resource != "events"
    )
    assert {one.split()[0] for one in made} >= {"configmaps", "jobs", "pods", "statefulsets"}
    assert [one for one, count in made.items() if count > 1] == []
    pods = json.loads(trouble.cluster.kubectl("get", "pods", "-o", "json"))["items"]
    names = Counter(one["metadata"]["name"].split("-")[0] for one in pods)
    assert names["worker"] == 2
    assert all(not any(trouble.starts(pod).values()) for pod in PODS)


def test_a_munge_key_of_the_user_is_used_by_all_and_left_alone(trouble: Trouble) -> None:
    """S109."""
    secret = json.loads(trouble.cluster.kubectl("get", "secret", SECRET, "-o", "json"))
    assert secret["data"] == {"munge.key": _base64(trouble.key)}
    assert "ownerReferences" not in secret["metadata"]
    sums = {
        trouble.cluster.run(pod, "munge", "sha256sum </etc/munge/munge.key").split()[0]
        for pod in PODS
    }
    assert len(sums) == 1


def test_a_jail_that_cannot_be_filled_is_reported_and_stops_no_other_cluster(
    trouble: Trouble,
) -> None:
    """S090, S108: the volume is full, then the image is absent; both are fixed in the spec."""
    site, namespace = trouble.site, f"other-{secrets.token_hex(2)}"
    other = SlurmClusterSite(site, namespace, EXAMPLE.replace(ON_CLAIM, TOO_SMALL), trouble.images)
    try:
        other.create()
        _until_jail(other, "No space left on device")
        assert other.get()["status"]["phase"] == "Not available"
        key = _munge_key(other)
        sources = other.get()["spec"]["volumeSources"]
        on_claim = {"name": "jail", "persistentVolumeClaim": {"claimName": "jail"}}
        image = other.get()["spec"]["populateJail"]["image"]
        broken = {"image": "localhost/penstock/populate-jail:no-such-tag"}
        other.patch({"volumeSources": [on_claim, *sources[1:]], "populateJail": broken})
        _until_jail(other, "no-such-tag")
        started = other.kubectl("get", "pods", "-o", "name").split()
        assert not [one for one in started if "populate" not in one], started
        trouble.jobs_go_on()
        other.patch({"populateJail": {"image": image}, "slurmNodes": {"worker": {"size": 0}}})
        eventually("it is filled", lambda: other.status("JailPopulated") == "True", 90)
        assert _munge_key(other) == key
        assert len(base64.b64decode(key)) >= 1024
    finally:
        other.down()


def test_a_jail_in_use_is_not_filled_again_when_its_job_is_deleted(trouble: Trouble) -> None:
    """S090: what users wrote stays, and pods go on."""
    cluster = trouble.cluster
    trouble.in_jail("sh -c 'echo mine >/etc/motd'")
    cluster.kubectl("delete", "job", JOB, "--wait=false")
    eventually("it is noticed", lambda: "Pods use the jail" in cluster.condition("JailPopulated"))
    assert JOB not in cluster.kubectl("get", "jobs", "-o", "name")
    assert trouble.in_jail("cat /etc/motd").strip() == "mine"
    trouble.jobs_go_on()


def _until_jail(cluster: SlurmClusterSite, words: str) -> None:
    eventually(words, lambda: words in cluster.condition("JailPopulated"), 60)


def _munge_key(cluster: SlurmClusterSite) -> str:
    return cluster.kubectl("get", "secret", SECRET, "-o", "jsonpath={.data.munge\\.key}")


def test_munged_may_be_killed_everywhere(trouble: Trouble) -> None:
    """S110: the daemons beside it are not started again."""
    for pod in PODS:
        trouble.cluster.run(pod, "munge", "kill -TERM 1")
    for pod in PODS:
        eventually("munged is back", lambda pod=pod: trouble.starts(pod)["munge"] == 1, 30)
    eventually("jobs go on", lambda: _goes_on(trouble), 30)
    for pod, container in PODS.items():
        assert trouble.starts(pod)[container] == 0


def test_slurmctld_killed_under_load_keeps_queue_and_ids(
    trouble: Trouble, figure: Callable[[str], None]
) -> None:
    """S123, S131: the log of the container before ends with the cause."""
    # Tasks that start or end between the last write of the state and the kill would stay pending.
    until_over = "until test -e /over; do sleep 0.2; done"
    array = trouble.submit(until_over, "--array=1-12", "-w worker-0", "-o /dev/null")
    eventually("some of it run", lambda: array in _queue(trouble, "-t RUNNING"), 60)
    waiting = [
        trouble.submit("true", "-H", "-o /dev/null", f"--comment=waits-{i}") for i in range(3)
    ]
    # slurmctld writes its state at once or up to half a minute after a change.
    saved = ("controller-0", "slurmctld", "grep -c waits-2 /var/spool/slurmctld/job_state || true")
    eventually("it is saved", lambda: trouble.cluster.run(*saved).strip() != "0", 90)
    pid = pid_in_pod(trouble.uids["controller-0"], "/slurmctld --systemd")
    began = time.monotonic()
    os.kill(pid, signal.SIGKILL)
    eventually("slurmctld is back", lambda: trouble.starts("controller-0")["slurmctld"] == 1, 30)
    eventually("it answers", lambda: "UP" in trouble.cluster.scontrol("ping"), 30)
    figure(f"slurmctld answers again after {time.monotonic() - began:.1f} s")
    before = trouble.cluster.kubectl("logs", "--previous", "controller-0").splitlines()
    assert before[-1] == "penstock: slurmctld was killed by signal 9"
    assert [trouble.squeue(job) for job in waiting] == ["PENDING 0"] * 3
    later = trouble.submit("true", "-H", "-o /dev/null")
    assert int(later) > int(array)
    trouble.in_jail("touch /over")
    eventually("the array ends", lambda: array not in _queue(trouble), 90)
    trouble.in_jail(f"scancel {' '.join([*waiting, later])}")
    eventually("jobs go on", lambda: _goes_on(trouble), 30)
    assert trouble.starts("controller-0")["reconfigure"] == 0


def _queue(trouble: Trouble, states: str = "") -> list[str]:
    """Ids of the jobs in the queue; of an array its own, as often as it has lines."""
    return trouble.in_jail(f"squeue -h -o %F {states}").split()


def _goes_on(trouble: Trouble) -> bool:
    trouble.jobs_go_on()
    return True


def test_a_value_reaches_every_node_within_seconds(
    trouble: Trouble, figure: Callable[[str], None]
) -> None:
    """S089: by the SlurmCluster, and by a JailedConfig with a reconfigure.

    A reader that reads all the time sees whole files only.
    """
    cluster = trouble.cluster
    trouble.in_jail(f"sh -c '{READER}'")
    known = {_sum(trouble)}
    for value in ("70", "71", "72"):
        cluster.patch({"customSlurmConfig": cluster.custom + f"KillWait={value}\n"})
        eventually("it is in the jail", lambda v=value: _in_jail(trouble, v), 60)
        known.add(_sum(trouble))
    began = time.time()
    cluster.patch({"customSlurmConfig": cluster.custom + "KillWait=77\n"})
    eventually("it is in the jail", lambda: _in_jail(trouble, "77"), 60)
    eventually("each pod reads it", lambda: _everywhere(trouble, "KillWait=77"), READ_S)
    known.add(_sum(trouble))
    trouble.in_jail("touch /root/read")
    eventually("the reader ends", lambda: trouble.in_jail("cat /root/sums.end").strip(), 30)
    seen = set(trouble.in_jail("sort -u /root/sums").split())
    assert len(seen) > 1
    assert seen <= known, (seen, known)
    written = trouble.cluster.run(
        "worker-1", "slurmd", "stat -c %.Y $(grep -rl KillWait=77 /mnt/jail/etc/slurm)"
    )
    figure(f"until a line of slurm.conf is in the jail: {float(written) - began:.1f} s")
    eventually("it is active", lambda: "= 77 sec" in cluster.scontrol("show", "config"), 60)
    cluster.kubectl("create", "configmap", "extra", "--from-literal=extra.conf=# one\n")
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps(_jailed("extra", "extra.conf")))
    eventually("each pod reads it", lambda: _everywhere(trouble, "# one"), 60)
    done = {"status": "True", "reason": "Success"}
    eventually("it is done", lambda: done.items() <= _of_jailed(trouble, "extra").items(), 60)
    trouble.jobs_go_on()


def _in_jail(trouble: Trouble, value: str) -> bool:
    return f"KillWait={value}" in trouble.in_jail(f"cat {USERS_FILE}")


def _sum(trouble: Trouble) -> str:
    return trouble.in_jail(f"sha256sum {USERS_FILE}").split()[0]


def _everywhere(trouble: Trouble, words: str) -> bool:
    command = f"grep -rhc -- '{words}' /mnt/jail/etc/slurm | grep -q 1 && echo yes || true"
    return all("yes" in trouble.cluster.run(*of, command) for of in PODS.items())


def _jailed(name: str, file: str) -> Json:
    return {
        "apiVersion": "slurm.nebius.ai/v1alpha1",
        "kind": "JailedConfig",
        "metadata": {"name": name, "labels": {"app.kubernetes.io/instance": NAME}},
        "spec": {
            "configMap": {"name": name},
            "items": [{"key": file, "path": f"/etc/slurm/{file}"}],
            "updateActions": ["Reconfigure"],
        },
    }


def _of_jailed(trouble: Trouble, name: str, type_: str = "UpdateActionsCompleted") -> Json:
    found = json.loads(trouble.cluster.kubectl("get", "jailedconfig", name, "-o", "json"))
    return condition(found, type_)


def test_a_bad_line_of_a_partition_or_a_jailed_config_changes_nothing(trouble: Trouble) -> None:
    """S089, S179: each is rejected with words, and a corrected one is applied."""
    cluster = trouble.cluster
    before = cluster.scontrol("show", "partition")
    cluster.kubectl("create", "configmap", "mine", "--from-literal=slurm.conf=NoSuchKey=1\n")
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps(_jailed("mine", "slurm.conf")))
    line = "PartitionName=second Nodes=ALL Default=NO NoSuchOption=1"
    cluster.patch({"partitionConfiguration": {"configType": "custom", "rawConfig": [*RAW, line]}})
    eventually("it is rejected", lambda: "NoSuchOption" in cluster.condition("ConfigValid"), 60)
    written = _of_jailed(trouble, "mine", "FilesWritten")
    assert (written["status"], written["reason"]) == ("False", "Conflict"), written
    assert "change it in the SlurmCluster" in written["message"]
    assert cluster.scontrol("show", "partition") == before
    trouble.jobs_go_on()
    good = line.removesuffix(" NoSuchOption=1")
    cluster.patch({"partitionConfiguration": {"configType": "custom", "rawConfig": [*RAW, good]}})
    eventually("it is there", lambda: "second" in cluster.scontrol("show", "partition"), 60)
    cluster.kubectl("delete", "jailedconfig/mine", "jailedconfig/extra")


RAW = DEFAULT_PARTITIONS


def test_an_unknown_filter_or_volume_is_rejected_and_without_webhooks_reported(
    trouble: Trouble,
) -> None:
    """S104: with the known names, and no pod is changed."""
    cluster = trouble.cluster
    wrong = {
        "slurmNodes": {
            "worker": {"k8sNodeFilterName": "gpu"},
            "login": {"volumes": {"jail": {"volumeSourceName": "jial"}}},
        }
    }
    patch = ("patch", "slurmcluster", NAME, "--type=merge", "-p")
    said = trouble.site.rejected("-n", cluster.namespace, *patch, json.dumps({"spec": wrong}))
    for words in ("'gpu' is no entry of spec.k8sNodeFilters; known: cpu", "'jial'"):
        assert words in said, said
    with trouble.site.without_operator():
        cluster.patch(wrong)
    for words in ("'gpu' is no entry of spec.k8sNodeFilters; known: cpu", "'jial'"):
        eventually(words, lambda words=words: words in cluster.condition("Ready"), 60)
    trouble.jobs_go_on()
    right = {
        "slurmNodes": {
            "worker": {"k8sNodeFilterName": "cpu"},
            "login": {"volumes": {"jail": {"volumeSourceName": "jail"}}},
        }
    }
    cluster.patch(right)
    eventually("it recovers", lambda: cluster.status("Ready") == "True", 60)
    trouble.jobs_go_on()


PROBE = """
while [ ! -e /root/enough ]; do
  begin=$(date +%s%N)
  if timeout 60 {command} >/dev/null 2>&1; then word=ok; else word=failed; fi
  echo $word $begin $(date +%s%N)
done
"""
"""In a job that runs, or that starts none: the workers have few CPUs."""
COMMANDS = {
    "srun": "srun --jobid={job} --overlap true",
    "sbatch": "sbatch --hold --job-name=held --mem=1M -o /dev/null --wrap=true",
    "sinfo": "sinfo",
}
ACROSS = """
srun -N2 -n2 --mem=1M --overlap sh -c "until [ -e /root/changed ]; do sleep 0.2; done; hostname"
srun -N2 -n2 --mem=1M hostname
"""
KILLED_IN_ROTATION = (1, 2, 3, 5)
"""Writes after which the operator is killed: of the condition, and of annotations of pods."""


@dataclass
class Gap:
    """Seconds in which a command that is called again and again failed."""

    calls: int
    failed: int
    seconds: float
    slowest: float

    @classmethod
    def of(cls, text: str) -> Gap:
        """Of the output of PROBE: from the begin of the first failed one to that of the next ok."""
        lines = [line.split() for line in text.splitlines()]
        begins = [(word == "ok", int(begin) / 1e9) for word, begin, _ in lines]
        bad = [at for ok, at in begins if not ok]
        after = [at for ok, at in begins if ok and bad and at > bad[-1]]
        slowest = max(int(end) - int(begin) for _, begin, end in lines) / 1e9
        seconds = after[0] - bad[0] if after else 0.0
        return cls(len(lines), len(bad), seconds, slowest)


def _rotates(trouble: Trouble, key: bytes, job: str) -> dict[str, Gap]:
    """Change the key while commands are called, one of them in a job; until all munged have it."""
    cluster, of_job = trouble.cluster, {one: text.format(job=job) for one, text in COMMANDS.items()}
    trouble.in_jail("rm -f /root/enough")
    with ThreadPoolExecutor(len(COMMANDS)) as pool:
        probes = {
            name: pool.submit(
                cluster.run,
                "login-0",
                "sshd",
                f"chroot /mnt/jail sh -c {shlex.quote(PROBE.format(command=command))}",
            )
            for name, command in of_job.items()
        }
        try:
            # Each has begun, with the former key.
            trouble.in_jail(f"timeout 60 {of_job['srun']}")
            _set_key(cluster, key)
            trouble.key = key
            digest = named(key)
            eventually(
                "munged of all pods has the key",
                lambda: (
                    all(
                        digest in cluster.kubectl("logs", pod, "-c", "munge", "--tail=200")
                        for pod in PODS
                    )
                    and cluster.status("KeysInUse") == "True"
                ),
                180,
            )
            eventually("a step runs", lambda: _is_done(trouble, of_job["srun"]), 60)
        finally:
            trouble.in_jail("touch /root/enough")
            trouble.in_jail("scancel --name=held")
        return {name: Gap.of(probe.result()) for name, probe in probes.items()}


def _is_done(trouble: Trouble, command: str) -> bool:
    return trouble.in_jail(f"sh -c 'timeout 60 {command} >/dev/null 2>&1 && echo done || :'") != ""


def test_a_changed_munge_key_reaches_all_pods_at_one_time_under_load(
    trouble: Trouble, figure: Callable[[str], None]
) -> None:
    """S163: a step of two nodes runs across the change, and nobody restarts a pod."""
    starts = {pod: trouble.starts(pod) for pod in PODS}
    trouble.in_jail("rm -f /root/changed")
    job = trouble.submit(ACROSS, "-N2", "-o /root/across", "--no-requeue")
    eventually("it runs", lambda: trouble.squeue(job) == "RUNNING 0", 60)
    for name, gap in _rotates(trouble, secrets.token_bytes(1024), job).items():
        figure(
            f"munge key changed under load: {gap.failed} of {gap.calls} {name} failed, within "
            f"{gap.seconds:.1f} s; the slowest took {gap.slowest:.1f} s"
        )
    trouble.in_jail("touch /root/changed")
    eventually("the job ends", lambda: trouble.squeue(job) == "COMPLETED 0", 120)
    said = lines_of(trouble.in_jail("cat /root/across"))
    trouble.in_jail("rm -f /root/changed /root/across")
    assert sorted(said) == ["worker-0", "worker-0", "worker-1", "worker-1"]
    trouble.jobs_go_on()
    assert {pod: trouble.starts(pod) for pod in PODS} == starts


def test_an_operator_killed_at_its_writes_finishes_the_change_of_a_key(trouble: Trouble) -> None:
    """S163: it goes on where the former one ended."""
    namespace = trouble.cluster.namespace
    with killed_at_writes(trouble.site, namespace, KILLED_IN_ROTATION) as kills:
        _rotates(trouble, secrets.token_bytes(64), trouble.job)
    assert kills.after
    trouble.jobs_go_on()


def test_a_worker_whose_munged_keeps_the_former_key_is_named_until_it_has_the_new_one(
    trouble: Trouble,
) -> None:
    """S111, S163: its sidecar is stopped, as one of a Kubernetes node that hangs."""
    cluster, key = trouble.cluster, secrets.token_bytes(128)
    sidecar = pid_in_pod(trouble.uids["worker-1"], "libexec/penstock/munge")
    os.kill(sidecar, signal.SIGSTOP)
    try:
        _set_key(cluster, key)
        words = "munged of worker-1 has the former key"
        eventually("it is named", lambda: words in cluster.condition("KeysInUse"), 60)
        eventually(
            "the others run jobs",
            lambda: "worker-0" in trouble.in_jail(f"srun {SMALL} -w worker-0 hostname || true"),
            60,
        )
        assert trouble.squeue(trouble.job) == "RUNNING 0"
    finally:
        os.kill(sidecar, signal.SIGCONT)
    trouble.key = key
    eventually("all have the key", lambda: cluster.status("KeysInUse") == "True", 60)
    eventually("jobs go on", lambda: _goes_on(trouble), 120)
    trouble.jobs_go_on()


def _set_key(cluster: SlurmClusterSite, key: bytes) -> None:
    data = {"data": {"munge.key": _base64(key)}}
    cluster.kubectl("patch", "secret", SECRET, "--type=merge", "-p", json.dumps(data))


def test_the_job_that_ran_through_all_of_it_completes(trouble: Trouble) -> None:
    trouble.in_jail("touch /root/over")
    eventually("the job ends", lambda: trouble.squeue(trouble.job) == "COMPLETED 0", 30)


def test_a_deleted_login_pod_is_back_and_jobs_run(
    trouble: Trouble, figure: Callable[[str], None]
) -> None:
    """S123."""
    began, before = time.monotonic(), trouble.cluster.uid("login-0")
    trouble.cluster.kubectl("delete", "pod", "login-0")

    def is_back() -> bool:
        pods = json.loads(trouble.cluster.kubectl("get", "pods", "-o", "json"))["items"]
        (one,) = (pod for pod in pods if pod["metadata"]["name"] == "login-0")
        return one["metadata"]["uid"] != before and ready(one)

    eventually("it is back", is_back, 60)
    figure(f"a deleted login pod is back after {time.monotonic() - began:.1f} s")
    assert "worker-0" in trouble.in_jail(f"srun {SMALL} -w worker-0 hostname")


def test_each_pod_is_described_with_its_containers_and_without_a_repeated_warning(
    trouble: Trouble,
) -> None:
    """S128."""
    pods = json.loads(trouble.cluster.kubectl("get", "pods", "-o", "json"))["items"]
    for pod in pods:
        name, spec = pod["metadata"]["name"], pod["spec"]
        said = trouble.cluster.kubectl("describe", "pod", name)
        every = (*spec.get("initContainers", ()), *spec["containers"])
        for words in (f"Name:{' ' * 13}", "Events:", *(f"  {one['name']}:\n" for one in every)):
            assert words in said, (name, words, said)
    events = json.loads(trouble.cluster.kubectl("get", "events", "-o", "json"))["items"]
    ours = [one for one in events if one["reportingComponent"].startswith("penstock")]
    assert ours
    # The tests before change files and keys many times, and those lines report each change.
    often = {
        one["message"]: one["series"]["count"]
        for one in ours
        if one["type"] == "Warning"
        and one.get("series")
        and one["series"]["count"] > 2 + _minutes(one)
    }
    assert not often, often


def _minutes(event: Json) -> float:
    """Minutes between the first and the last of an event's series."""
    first = parse(event["eventTime"] or event["metadata"]["creationTimestamp"])
    last = parse(event["series"]["lastObservedTime"])
    return ((last or 0.0) - (first or 0.0)) / 60


def _place(notes: list[str], words: str) -> int | None:
    """Where the first note with these words is."""
    return next((i for i, note in enumerate(notes) if words in note), None)


def test_events_are_a_story_without_repetition(trouble: Trouble) -> None:
    """S128: after all of the above.

    An event of a write at which the operator was killed may be lost with its process.
    """
    found = trouble.cluster.kubectl("get", "events.events.k8s.io", "-o", "json")
    ours = [
        one for one in json.loads(found)["items"] if one["regarding"].get("kind") == "SlurmCluster"
    ]
    told = sorted(ours, key=lambda one: one["metadata"]["creationTimestamp"])
    notes = [one["note"] for one in told]
    # The Job is created again later, which may be the only event of it.
    assert _place(notes, "Created Job") is not None, notes
    order = ["Created StatefulSet", "worker-2"]
    places = [i for one in order for i in [_place(notes, one)] if i is not None]
    assert places, notes
    assert places == sorted(places), notes
    # Tests before changed the key more often than that, each time for another event.
    counts = Counter(note for note in notes if not note.startswith("munge.key was changed"))
    again = {note: count for note, count in counts.items() if count > 3}
    assert not again, again
