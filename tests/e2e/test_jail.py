"""The images of a jail on a real kubelet, by hand-written manifests: no operator.

docs/admin/jail.md has what users may rely on.
"""

import json
import secrets
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_address
from pathlib import Path

import pytest

from e2e_kit.images import give_all
from e2e_kit.jail_cluster import DAEMONS, JailCluster
from e2e_kit.jail_manifests import WORKERS, WRONG_KEY
from e2e_kit.release import RELEASE
from e2e_kit.site import eventually
from penstock.local.charts import objects, rendered
from penstock.local.errors import LocalError
from penstock.local.images import build_jail, build_nfs_server
from penstock.local.node import Node

FIXTURES = Path(__file__).parents[1] / "fixtures/jail"
ENDS_SSHD = "end PID 1"
"""sshd is the first process of the sessions' PID namespace, and root may end it."""
PLACE = ". /etc/os-release; echo $VERSION_CODENAME; cat /etc/where"
TRIES = """
touch /etc/slurm/new
echo >/etc/slurm/plugstack.conf
mv /etc/slurm /etc/other
mv /etc /other
mv /usr /other
mv /usr/lib /usr/other
mv /opt/penstock /opt/other
mount -o remount,bind,rw /etc/slurm
umount /etc/slurm
ln -sfn /tmp /opt/penstock/slurm
rm -rf /opt/penstock/slurm/bin/srun
"""


@pytest.fixture(scope="module")
def images(kube_node: Node) -> dict[str, str]:
    return give_all(kube_node, build_jail(RELEASE).values())


@pytest.fixture(scope="module")
def cluster(
    kube_node: Node, images: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Generator[JailCluster]:
    """Filled by two Jobs' pods at once; alice and root have keys."""
    folder = tmp_path_factory.mktemp("jail")
    made = JailCluster(kube_node, f"jail-{secrets.token_hex(3)}", images, folder)
    try:
        made.up()
        key = made.manifests.key.with_suffix(".pub").read_text()
        script = """
        set -e
        useradd -m -s /bin/bash alice
        install -d -o alice -g alice -m 700 ~alice/.ssh
        cat >~alice/.ssh/authorized_keys
        """
        made.check("root", script, stdin=key)
        yield made
    finally:
        made.down()


@pytest.fixture(autouse=True)
def nothing_is_left(cluster: JailCluster) -> Generator[None]:
    """After each test the workers are idle, and no daemon but munged was started again."""
    yield
    cluster.until_idle()
    for pod in DAEMONS:
        main = {"controller-0": "slurmctld", "login-0": "sshd"}.get(pod, "slurmd")
        assert cluster.restarts(pod, main) == 0


def logs(cluster: JailCluster, *words: str) -> str:
    return cluster.kubectl("logs", *words)


def test_two_pods_at_once_fill_the_jail_once(
    cluster: JailCluster, figure: Callable[[str], None]
) -> None:
    """And a second Job leaves it as it is. Daemons wait until then."""
    figure(f"from an empty volume to idle workers of a jail: {cluster.start_s:.1f} s")
    said = logs(cluster, "-l", "job=populate", "--tail=-1")
    assert said.count("filled: ") == 1, said
    assert said.count("filled already: ") == 1, said
    cluster.run("administrator", "echo mine >/mnt/jail/etc/motd")
    cluster.apply(cluster.manifests.populate("again"))
    cluster.kubectl("wait", "--for=condition=Complete", "job/again", "--timeout=60s")
    assert "filled already: " in logs(cluster, "job/again")
    assert cluster.run("administrator", "cat /mnt/jail/etc/motd") == "mine"
    assert cluster.run("administrator", "stat -c '%U %a' /mnt/jail") == "root 755"


def test_a_copy_that_is_killed_and_a_full_volume(cluster: JailCluster) -> None:
    """A killed copy starts again from nothing; a full volume is reported with its words."""
    cluster.apply(cluster.manifests.cut_off(), cluster.manifests.full())
    for name, phase in (("cut-off", "Succeeded"), ("full", "Failed")):
        wanted = f"--for=jsonpath={{.status.phase}}={phase}"
        cluster.kubectl("wait", wanted, f"pod/{name}", "--timeout=90s")
    killed, second, third = (
        logs(cluster, "cut-off", "-c", name) for name in ("killed", "second", "third")
    )
    assert "filled" not in killed
    assert "a former copy was cut off; starting again" in second
    assert "populate-jail: filled: " in second
    assert "populate-jail: filled already: " in third
    (status,) = cluster.pod("full")["status"]["containerStatuses"]
    message = status["state"]["terminated"]["message"]
    assert "No space left on device" in message
    assert "is not marked as filled" in message
    cluster.kubectl("delete", "pod", "cut-off", "full", "--wait=false")


def test_a_user_of_the_jail_is_known_everywhere_at_once(cluster: JailCluster) -> None:
    """Made by root in a session; the next command runs a job of the user on both workers."""
    cluster.check("root", "useradd -m -G games bob")
    script = "su - bob -c 'srun -N2 -l sh -c \"id -un; id -Gn; pwd\"' | sort"
    lines = cluster.check("root", script).splitlines()
    expected = [f"{task}: {text}" for task in (0, 1) for text in ("/home/bob", "bob", "bob games")]
    assert lines == expected
    assert cluster.run("controller-0", "id -un bob") == "bob"


@pytest.mark.parametrize("user", ["alice", "root"])
def test_jobs_and_sessions_have_the_jail_as_their_root(cluster: JailCluster, user: str) -> None:
    """S098, S100: srun, sbatch, salloc and ssh, as a user and as root."""
    expected = "trixie\njail"
    assert cluster.check(user, PLACE) == expected
    assert cluster.check(user, f"srun sh -c '{PLACE}'") == expected
    assert cluster.check(user, f"salloc -Q srun sh -c '{PLACE}'") == expected
    script = f"""
    set -e; cd; mkdir -p out
    sbatch -Q --wait -o out/%j --wrap '{PLACE}; pwd'
    cat out/*; rm -r out
    """
    home = {"alice": "/home/alice", "root": "/root"}[user]
    assert cluster.check(user, script) == f"{expected}\n{home}"
    assert cluster.check(user, "srun --pty -Q true; echo $?") == "0"
    mounts = cluster.check(user, "srun cat /proc/self/mountinfo")
    assert not [line for line in mounts.splitlines() if "/mnt/jail" in line.split()[4]]


def test_daemons_stay_in_the_container(cluster: JailCluster) -> None:
    """S098: slurmd and the container's root are not the jail's; slurmctld is not root."""
    for name in WORKERS:
        assert cluster.run(name, "cat /etc/where") == "container"
        assert cluster.run(name, "readlink /proc/$(pgrep -xo slurmd)/root") == "/"
    assert cluster.run("controller-0", "ps -o user= -C slurmctld").split() == ["slurm"]
    assert logs(cluster, "controller-0", "-c", "reconfigure").splitlines()[-2:] == [
        "slurm",
        cluster.run("controller-0", "slurmctld -V"),
    ]


def test_files_go_by_sftp_and_scp(cluster: JailCluster, tmp_path: Path) -> None:
    """S100: sftp, and scp by both protocols, begin in the user's home in the jail."""
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_text("data")
    done = cluster.client("sftp", "alice", ["-b", "-"], [], stdin=f"put {source} by-sftp\npwd\n")
    assert "Remote working directory: /home/alice" in done.stdout, done.stderr
    for option in ("-s", "-O"):
        words = [str(source), f"{{host}}:by-scp{option}"]
        assert cluster.client("scp", "alice", [option], words).returncode == 0
    done = cluster.client("scp", "alice", [], ["{host}:by-sftp", str(target)])
    assert (done.returncode, target.read_text()) == (0, "data")
    assert cluster.check("alice", "cat by-*; rm by-*") == "datadatadata"


def test_nobody_gets_out_of_a_job(cluster: JailCluster) -> None:
    """S101: every attempt, as a user and as root, on a worker with SYS_ADMIN and no more."""
    script = (FIXTURES / "escapes.py").read_text()
    for user in ("alice", "root"):
        found = json.loads(cluster.check(user, "srun python3 -", stdin=script))
        assert not {name: text for name, text in found.items() if text.startswith("DONE")}
        assert len(found) > 40


@pytest.mark.parametrize("host", ["login-0", WORKERS[1]])
def test_nobody_gets_out_of_a_session(cluster: JailCluster, host: str) -> None:
    """S100, S101: sshd's root must not be left by a second chroot, nor seen through /proc."""
    script = (FIXTURES / "escapes.py").read_text().removesuffix("\nmain()\n")
    script += f"""
found = {{n: in_child(a) for n, a in attempts().items() if n != {ENDS_SSHD!r}}}
print(json.dumps(found))
"""
    for user in ("alice", "root"):
        found = json.loads(cluster.check(user, "python3 -", stdin=script, host=host))
        assert not {name: text for name, text in found.items() if text.startswith("DONE")}
        assert len(found) > 40
    status = cluster.check("root", "grep -h CapBnd /proc/self/status /proc/$$/status", host=host)
    (bound,) = {line.split()[1] for line in status.splitlines()}
    assert not int(bound, 16) & (1 << 18 | 1 << 21), "CAP_SYS_CHROOT and CAP_SYS_ADMIN"


def test_root_cannot_change_the_configuration(cluster: JailCluster) -> None:
    """S101: neither in a job nor in a session; what the administrator renames in is seen."""
    before = cluster.run("administrator", "cd /mnt/jail/etc/slurm; ls -i; cat *")
    attempts = "\n".join(
        f"{line} 2>/dev/null && echo 'DONE: {line}'" for line in TRIES.split("\n")[1:-1]
    )
    for command in ("sh -s", "srun sh -s"):
        assert cluster.check("root", f"{command}; true", stdin=f"{attempts}\ntrue\n") == ""
    assert cluster.run("administrator", "cd /mnt/jail/etc/slurm; ls -i; cat *") == before
    text = "# changed\nrequired chroot.so /mnt/jail\n"
    cluster.configure("plugstack.conf", text)
    for command in ("", "srun "):
        assert cluster.check("alice", f"{command}cat /etc/slurm/plugstack.conf") == text.strip()


def test_jobs_have_files_and_memory_of_their_own_by_choice(cluster: JailCluster) -> None:
    """S171: a user's and root's job on one worker; and nobody gets out that way."""
    on = f"-w {WORKERS[0]}"
    plain = "required chroot.so /mnt/jail\n"
    cluster.configure("plugstack.conf", f"{plain.strip()} job_isolation=on\n")
    try:
        jobs: dict[str, str] = {}
        for user in ("alice", "root"):
            begun, wait = f"$HOME/begun-{user}", "while :; do sleep 1; done"
            script = (
                f"echo {user} | tee /tmp/of-{user} >/dev/shm/of-{user}; ipcmk -M 4096 -p 0666; "
                f"touch {begun}; {wait}"
            )
            words = f"sbatch --parsable {on} -o /dev/null --wrap '{script}'"
            jobs[user] = cluster.check(user, words)
            eventually(
                "it has begun",
                lambda user=user, begun=begun: cluster.ssh(user, f"ls {begun}").returncode == 0,
                60,
            )
        look = "ls /tmp /dev/shm | grep of-; ipcs -m | grep -c ^0x; ps -eo comm= | grep -c sleep"
        for user, job in jobs.items():
            step = f"srun --overlap --jobid={job} sh -c '{look}'; rm $HOME/begun-{user}"
            assert cluster.check(user, step).split() == [f"of-{user}", f"of-{user}", "1", "0"]
        script = (FIXTURES / "escapes.py").read_text()
        for user in ("alice", "root"):
            found = json.loads(cluster.check(user, f"srun {on} python3 -", stdin=script))
            assert not {name: text for name, text in found.items() if text.startswith("DONE")}
        for user, job in jobs.items():
            cluster.check(user, f"scancel {job}")
        cluster.until_idle()
        for folder in ("/tmp/.penstock-jobs/tmp", "/dev/shm/.penstock-jobs"):
            assert cluster.run(WORKERS[0], f"ls {folder}") == ""
    finally:
        cluster.configure("plugstack.conf", plain)


def test_volumes_of_the_pod_are_in_the_jail(cluster: JailCluster) -> None:
    """S104: one below the upper folder is each worker's own; the jail's on / changes nothing."""
    script = "hostname >/scratch/name; cat /scratch/name; ls /scratch"
    for name in WORKERS:
        assert cluster.check("root", f"srun -w {name} sh -c '{script}'").split() == [name, "name"]
    assert cluster.check("root", "ls -A /scratch") == ""


def test_munged_may_be_killed(cluster: JailCluster) -> None:
    """S110: it is started again, and no other container of the pods."""
    for pod in ("controller-0", WORKERS[0], "login-0"):
        cluster.run(pod, "kill -TERM 1", container="munge")
    for pod in ("controller-0", WORKERS[0], "login-0"):
        eventually("munged is back", lambda pod=pod: cluster.restarts(pod, "munge") == 1, 30)
    eventually(
        "a job runs", lambda: cluster.ssh("alice", f"srun -w {WORKERS[0]} true").returncode == 0, 30
    )


def test_a_worker_with_another_key_does_not_join(cluster: JailCluster) -> None:
    """S111: slurmctld names the credential; keys of the others decode each other's."""
    assert WRONG_KEY not in cluster.run("controller-0", "sinfo -hN -t idle -o %N")
    eventually(
        "slurmctld names the cause",
        lambda: "Invalid credential" in logs(cluster, "controller-0", "-c", "slurmctld"),
        15,
    )
    credential = cluster.check("alice", "munge -n")
    for pod in ("controller-0", *WORKERS):
        words = ("exec", "-i", pod, "-c", "munge", "--", "unmunge")
        assert "Success" in cluster.kubectl(*words, stdin=credential)
    words = ("exec", "-i", WRONG_KEY, "-c", "munge", "--", "sh", "-c", "unmunge 2>&1 || true")
    assert "Invalid credential" in cluster.kubectl(*words, stdin=credential)


def test_nobody_is_shut_out_for_the_failures_of_others(cluster: JailCluster) -> None:
    """All users of a Service may come from one address: sshd must not penalise it."""

    def rejected(_: int) -> int:
        return cluster.ssh("nobody-of-this-name", "true").returncode

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(rejected, range(8))) == {255}
    assert cluster.check("alice", "id -un") == "alice"


def test_an_nfs_server_shares_a_volume_of_one_node(kube_node: Node, cluster: JailCluster) -> None:
    """S178: files that a client in user space writes are there after the server's end.

    This kernel has no NFS client, so no pod mounts the PVC, which is bound.
    """
    (image,) = give_all(kube_node, build_nfs_server().values()).values()
    first = cluster.kubectl(
        "get", "service", "kubernetes", "-n", "default", "-o", "jsonpath={.spec.clusterIP}"
    )
    address = str(ip_address(first) + 99)
    given = {
        "image": image,
        "service": {"clusterIP": address},
        "storage": {"size": "1Gi"},
        "nfs": {"leaseTime": 5, "graceTime": 5},
        "resources": {"requests": {"cpu": "10m"}},
    }
    made = objects(rendered("nfs-server", "jail-nfs", cluster.namespace, given))
    client = {"name": "main", "image": image, "command": ["sleep", "infinity"]}
    cluster.apply(
        *made,
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "nfs-client"},
            "spec": {"containers": [client], "terminationGracePeriodSeconds": 0},
        },
    )
    url = f"nfs://{address}/export"

    def works(script: str) -> bool:
        """Whether it ends well: a server that has just started lets former clients in first."""
        try:
            cluster.run("nfs-client", script, container="main")
        except LocalError:
            return False
        return True

    def is_up() -> None:
        cluster.kubectl("rollout", "status", "statefulset/jail-nfs", "--timeout=60s")

    try:
        cluster.kubectl("wait", "--for=condition=Ready", "pod/nfs-client", "--timeout=60s")
        is_up()
        wanted = "--for=jsonpath={.status.phase}=Bound"
        cluster.kubectl("wait", wanted, "pvc/jail-pvc", "--timeout=30s")
        write = f"echo hello >/tmp/a && nfs-cp /tmp/a '{url}/a?version=4'"
        eventually("a client writes", lambda: works(write), 30)
        assert cluster.run("jail-nfs-0", "cat /export/a", container="nfs-server") == "hello"
        cluster.kubectl("delete", "pod", "jail-nfs-0")
        is_up()
        read = f"nfs-cat '{url}/a?version=4' | grep -qx hello"
        eventually("a client reads it", lambda: works(read), 30)
    finally:
        cluster.kubectl("delete", "statefulset/jail-nfs", "pod/nfs-client", "pvc/jail-pvc")
        cluster.kubectl("delete", f"pv/{cluster.namespace}-jail-nfs", "--wait=false")
