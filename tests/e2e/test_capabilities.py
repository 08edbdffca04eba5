"""Each privilege of daemons is taken away alone, and something fails without it.

Slurm's daemons of `host` need no Kubernetes node; pods of `copies` are those of the operator, but
for one field. tests/reference/privilege_needs.py has the whole list.
"""

from __future__ import annotations

import secrets
import shlex
import subprocess
import sys
from collections.abc import Generator, Sequence
from pathlib import Path

import pytest

from e2e_kit.api import Json
from e2e_kit.images import give_all
from e2e_kit.jail_host import POD, SLURM_CONF, JailHost
from e2e_kit.pod_copy import Change, copy_pod, log_of_failed
from e2e_kit.site import Site, eventually
from e2e_kit.slurmcluster import SlurmClusterSite
from penstock.local.errors import LocalError
from penstock.local.images import build_jail
from penstock.local.linux import why_not

EXAMPLE = Path(__file__).parents[2] / "examples/slurmcluster-nodesets.yaml"
WORKER, LOGIN = "small-0", "cpu-login-0"
STARTED_S = 60.0
"""Within which a copy of a pod has started."""
LOG = "/var/log/journal/of-test"

DEFAULT = (*POD.split(), "sys_chroot", "mknod", "audit_write", "setfcap")
"""Capabilities that containerd gives each container."""
ADDED = ("bpf", "net_admin", "sys_admin", "sys_nice")
"""Those that a worker of slinky.slurm.net has beside them."""
TEMPORARY = {
    "slurm.conf": f"{SLURM_CONF}NamespaceType=namespace/tmpfs\n",
    "job_container.conf": "AutoBasePath=true\nBasePath=/var/tmp/jobs\n",
}
FOR_DEVICES = """
import ctypes, os, struct
LOAD, CGROUP_DEVICE, BPF = 5, 15, {"x86_64": 321, "aarch64": 280}[os.uname().machine]
code = struct.pack("<BBhiBBhi", 0xB7, 0, 0, 1, 0x95, 0, 0, 0)
texts = [ctypes.create_string_buffer(text) for text in (code, b"GPL")]
words = struct.pack("<IIQQ", CGROUP_DEVICE, 2, *map(ctypes.addressof, texts)) + bytes(24)
libc = ctypes.CDLL(None, use_errno=True)
loaded = libc.syscall(BPF, LOAD, ctypes.create_string_buffer(words), len(words))
print("loaded" if loaded >= 0 else os.strerror(ctypes.get_errno()))
"""
"""Loads the program `return 1` as cgroup/v2 of Slurm loads that for the devices of a step."""
PROFILE = """
import ctypes, os, struct, sys
PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}[os.uname().machine]
LOAD, EQUAL, RETURN, ERROR, ALLOW = 0x20, 0x15, 0x06, 0x00050001, 0x7FFF0000
rules = [(LOAD, 0, 0, 0), (EQUAL, 0, 1, PIVOT_ROOT), (RETURN, 0, 0, ERROR), (RETURN, 0, 0, ALLOW)]
text = ctypes.create_string_buffer(b"".join(struct.pack("<HBBI", *one) for one in rules))
profile = ctypes.create_string_buffer(struct.pack("<HxxxxxxQ", len(rules), ctypes.addressof(text)))
assert ctypes.CDLL(None).prctl(22, 2, profile) == 0
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Runs a command without pivot_root(2), as under the default profile of container runtimes."""

IO_URING = """python3 -c '
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall(425, 1, None)
print(os.strerror(ctypes.get_errno()))'
"""
"""The error of io_uring_setup(2) without parameters."""


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Generator[JailHost]:
    """A Slurm node without a jail."""
    reason = why_not()
    if reason:
        pytest.skip(reason)
    one = JailHost(tmp_path_factory.mktemp("capabilities") / "host")
    try:
        one.up()
        one.plugstack("")
        yield one
    finally:
        one.down()


def without(*names: str) -> list[str]:
    """The capabilities of a worker of slinky.slurm.net that is not privileged, but for some."""
    return [one for one in (*DEFAULT, *ADDED) if one not in names]


def test_without_sys_admin_no_job_has_a_folder_for_temporary_files(host: JailHost) -> None:
    """S172: slurmstepd of the job ends, and slurmctld cancels the job."""
    for name, text in TEMPORARY.items():
        host.write(f"/etc/slurm/{name}", text)
    command = ("srun", "-Q", "sh", "-c", "touch /tmp/of-job && ls /tmp")
    try:
        host.start_slurm(without())
        # slurmctld may start the first job before slurmd has registered.
        eventually("a job runs", lambda: host.run(*command).out.split() == ["of-job"])
        log = host.start_slurm(without("sys_admin"))
        assert host.run(*command).code == 1
        assert "Could not launch JobId" in log.read_text()
    finally:
        host.write("/etc/slurm/slurm.conf", SLURM_CONF)


def test_without_sys_nice_slurmd_cannot_raise_its_priority(host: JailHost) -> None:
    """S172."""
    for dropped, value in ((), "-5"), (("sys_nice",), "0"):
        log = host.start_slurm(without(*dropped), ["-n", "-5"])
        assert host.check("ps", "-o", "ni=", "-C", "slurmd").strip() == value
        words = "Unable to reset nice value to -5: Permission denied"
        assert (words in log.read_text()) == bool(dropped)


@pytest.mark.parametrize(
    ("dropped", "answer"),
    [
        ((), "loaded"),
        (("sys_admin",), "loaded"),
        (("bpf", "net_admin"), "loaded"),
        (("sys_admin", "bpf"), "Operation not permitted"),
        (("sys_admin", "net_admin"), "Operation not permitted"),
    ],
)
def test_without_sys_admin_a_program_for_devices_needs_bpf_and_net_admin(
    dropped: tuple[str, ...], answer: str
) -> None:
    """S172: the kernel's own rule. Open: Slurm's cgroup/v2, which rejects a hybrid hierarchy."""
    reason = why_not()
    if reason:
        pytest.skip(reason)
    bounding = ",".join(["-all", *(f"+{name}" for name in without(*dropped))])
    command = ["setpriv", f"--bounding-set={bounding}", sys.executable, "-c", FOR_DEVICES]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == answer


@pytest.fixture
def jailed(host: JailHost) -> Generator[JailHost]:
    """Steps enter the jail, as those of a SlurmCluster."""
    host.plugstack("required chroot.so /mnt/jail")
    yield host
    host.plugstack("")


@pytest.mark.parametrize(
    ("capabilities", "by", "call"),
    [
        ((*DEFAULT, "sys_admin"), (), ""),
        (DEFAULT, (), "unshare(CLONE_NEWNS)"),
        ((*DEFAULT, "sys_admin"), ("python3", "-c", PROFILE), "pivot_root(/mnt/jail)"),
    ],
)
def test_no_step_enters_the_jail_without_sys_admin_or_with_a_seccomp_profile(
    jailed: JailHost, capabilities: Sequence[str], by: Sequence[str], call: str
) -> None:
    """S172: the step fails with the system call that is denied."""
    jailed.start_slurm(capabilities, by=by)
    done = jailed.run("srun", "-Q", "cat", "/etc/where")
    if not call:
        assert (done.code, done.out) == (0, "jail\n")
        return
    assert done.code == 1
    words = f"chroot: cannot enter the job's root: {call}: Operation not permitted"
    assert words in jailed.check("cat", "/var/log/slurm/slurmd.log")


def without_sys_admin(_: Json, main: Json) -> None:
    main["securityContext"]["capabilities"]["add"].remove("SYS_ADMIN")


def with_profile(_: Json, main: Json) -> None:
    """As a kubelet with `seccompDefault` has it for a container without a profile."""
    main["securityContext"]["seccompProfile"] = {"type": "RuntimeDefault"}


def without_folders(_: Json, main: Json) -> None:
    names = ("hostlog-journal", "soperator-outputs")
    main["volumeMounts"] = [one for one in main["volumeMounts"] if one["name"] not in names]


def with_masked_proc(_: Json, main: Json) -> None:
    del main["securityContext"]["procMount"]


COPIES: dict[str, tuple[str, Change]] = {
    "mountless-worker": (WORKER, without_sys_admin),
    "mountless-login": (LOGIN, without_sys_admin),
    "profiled-worker": (WORKER, with_profile),
    "profiled-login": (LOGIN, with_profile),
    "folderless": (WORKER, without_folders),
    "masked": (WORKER, with_masked_proc),
}


@pytest.fixture(scope="module")
def copies(site: Site) -> Generator[SlurmClusterSite]:
    """Workers of it are in user namespaces, as NodeSets have them by default."""
    images = give_all(site.node, build_jail().values())
    site.node.run("sh", "-c", f"mkdir -p {Path(LOG).parent} && echo of the node >{LOG}")
    name, both = f"capabilities-{secrets.token_hex(2)}", {WORKER, "large-0"}
    text = EXAMPLE.read_text()
    made = SlurmClusterSite(site, name, text, images, workers=both, prefix="cpu-", name="cpu")
    try:
        made.up()
        for copy, (pod, change) in COPIES.items():
            copy_pod(made, pod, copy, change)
        yield made
    finally:
        made.down()
        site.node.run("rm", "-f", LOG)


def step(cluster: SlurmClusterSite, node: str, script: str) -> str:
    """What a step of root prints on a Slurm node, once it is idle; its errors when it fails."""
    eventually(f"{node} is idle", lambda: cluster.nodes().get(node) == "idle", STARTED_S)
    command = f"srun -Q -w {node} sh -c {shlex.quote(script)} 2>&1"
    words = shlex.join(["chroot", "/mnt/jail", "su", "-", "-c", f"{command}; true"])
    return cluster.run(LOGIN, "sshd", words).strip()


@pytest.mark.parametrize("copy", ["mountless-worker", "mountless-login"])
def test_without_sys_admin_a_container_ends_with_the_mount_that_fails(
    copies: SlurmClusterSite, copy: str
) -> None:
    """S172."""
    words = log_of_failed(copies, copy)
    assert "the jail cannot be completed: mount " in words
    assert "permission denied" in words


def test_with_the_runtimes_seccomp_profile_no_step_enters_the_jail(
    copies: SlurmClusterSite,
) -> None:
    """S172: slurmd completes the jail and registers."""
    assert step(copies, WORKER, "cat /proc/1/comm") == "slurmstepd"
    words = step(copies, "profiled-worker", "cat /proc/1/comm")
    assert "pivot_root(/mnt/jail): Operation not permitted" in words


def test_with_the_runtimes_seccomp_profile_sessions_lack_system_calls(
    copies: SlurmClusterSite,
) -> None:
    """S172: sshd completes the jail and starts, and programs of users cannot use io_uring."""
    words = f"chroot /mnt/jail su nobody -s /bin/sh -c {shlex.quote(IO_URING)}"

    def has_started() -> bool:
        return "listening on" in copies.kubectl("logs", "profiled-login")

    eventually("sshd starts", has_started, STARTED_S)
    assert copies.run(LOGIN, "sshd", words).strip() == "Bad address"
    assert copies.run("profiled-login", "sshd", words).strip() == "Operation not permitted"


def test_without_folders_of_the_node_a_job_has_no_log_and_leaves_no_output_there(
    copies: SlurmClusterSite,
) -> None:
    """S172."""
    read = f"cat /var/hostlog/journal/{Path(LOG).name}"
    assert step(copies, WORKER, read) == "of the node"
    assert "No such file or directory" in step(copies, "folderless", read)
    for name in (WORKER, "folderless"):
        assert step(copies, name, f"touch /opt/soperator-outputs/local/of-{name}") == ""
    found = copies.site.node.run("ls", "/var/log/soperator-outputs").split()
    assert f"of-{WORKER}" in found
    assert "of-folderless" not in found


def test_with_a_masked_proc_a_container_cannot_have_its_own_and_a_step_can(
    copies: SlurmClusterSite,
) -> None:
    """S172: so a cluster with a jail does not need `procMount: Unmasked`."""
    assert step(copies, "masked", "cat /proc/1/comm") == "slurmstepd"
    nested = "unshare --user --map-root-user --pid --fork --mount-proc true"
    assert copies.run(WORKER, "slurmd", nested) == ""
    with pytest.raises(LocalError, match="mount /proc failed: Operation not permitted"):
        copies.run("masked", "slurmd", nested)
