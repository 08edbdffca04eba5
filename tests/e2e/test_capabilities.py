"""Each privilege of daemons is taken away alone, and something fails without it.

Slurm's daemons need no Kubernetes node here. tests/reference/privilege_needs.py has the whole list.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Generator, Sequence

import pytest

from e2e_kit.jail_host import POD, SLURM_CONF, JailHost
from penstock.local.linux import why_not

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
        assert host.check(*command).split() == ["of-job"]
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
