"""The SPANK plug-in's code without Slurm, under AddressSanitizer and UBSan."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from penstock.local.recipes import IMAGES

SOURCE = IMAGES / "jail/chroot"
CASES = Path(__file__).parents[2] / "fixtures/jail/chroot_cases.c"
MODULES = ("arguments.c", "enter.c", "failure.c", "reaper.c")
WRAPPED = (
    *("access", "chdir", "chroot", "close", "fchdir", "mount", "mount_setattr", "open", "pipe2"),
    *("poll", "prctl"),
    *("pthread_sigmask", "read", "setns", "sigaction", "stat", "syscall", "umount2", "unshare"),
    *("waitpid", "write"),
)
WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror")
SANITIZERS = ("-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
ENOUGH = 90
"""Calls of one complete run, at least: with fewer a wrapper is not in effect."""


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("gcc is absent: tests/e2e/test_jail_chroot.py compiles with the image's")
    program = tmp_path_factory.mktemp("chroot") / "cases"
    wraps = [f"-Wl,--wrap={name}" for name in WRAPPED]
    sources = [str(SOURCE / name) for name in MODULES]
    command = [compiler, "-std=gnu11", *WARNINGS, *SANITIZERS, f"-I{SOURCE}", "-pthread", *wraps]
    done = subprocess.run(
        [*command, "-o", str(program), str(CASES), *sources],
        capture_output=True,
        text=True,
        check=False,
    )
    if "cannot find" in done.stderr and "san" in done.stderr:
        pytest.skip("gcc has no sanitizers here")
    assert done.returncode == 0, done.stderr
    return program


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An empty root with the folders that every jail has."""
    if os.geteuid() != 0:
        pytest.skip("namespaces need root")
    for name in ("home", "proc", "sys"):
        (tmp_path / "root" / name).mkdir(parents=True)
    return tmp_path / "root"


def run(cases: Path, *words: str) -> subprocess.CompletedProcess[str]:
    # Memory is never allocated; the search for leaks would need ptrace.
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0", "LC_ALL": "C"}
    # What a case leaves when the call that should end it fails goes with a PID namespace.
    outside = ["unshare", "--pid", "--fork", "--kill-child"] if os.geteuid() == 0 else []
    return subprocess.run(
        [*outside, str(cases), *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
        env=environment,
    )


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["/mnt/jail"], "/mnt/jail on"),
        (["/mnt/jail", "pid_namespace=on"], "/mnt/jail on"),
        (["pid_namespace=off", "/mnt/a=b"], "/mnt/a=b off"),
        ([], "plugstack.conf: chroot.so needs the path of the root"),
        (["pid_namespace=off"], "plugstack.conf: chroot.so needs the path of the root"),
        ([""], "plugstack.conf: the root is no absolute path: "),
        (["jail"], "plugstack.conf: the root is no absolute path: jail"),
        (["//"], "plugstack.conf: the root must differ from: /"),
        (["/a", "/b"], "plugstack.conf: more than one root: /b"),
        (["/a", "x=y"], "plugstack.conf: unknown argument of chroot.so: x=y"),
        (
            ["/a", "pid_namespace=maybe"],
            "plugstack.conf: unknown argument of chroot.so: pid_namespace=maybe",
        ),
        (["/" + "a" * 4095], "plugstack.conf: the path of the root is too long"),
        (["/" + "a" * 4094], "/" + "a" * 4094 + " on"),
    ],
)
def test_arguments(cases: Path, words: list[str], expected: str) -> None:
    assert run(cases, "arguments", *words).stdout == expected + "\n"


def test_enters_the_root_and_its_namespaces(cases: Path, root: Path) -> None:
    done = run(cases, "enter", str(root))
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    calls, result = done.stdout.split()
    assert result == "ok"
    assert int(calls) >= ENOUGH


def test_a_failing_call_is_reported_by_name_and_path(cases: Path, root: Path) -> None:
    """Each call fails once. Nothing crashes, and no process is left in a namespace."""
    calls = int(run(cases, "enter", str(root)).stdout.split()[0])
    done = run(cases, "faults", str(root), str(calls))
    assert (done.returncode, done.stderr) == (0, ""), done.stdout[-500:]
    lines = [line.partition(" ")[2].removeprefix("task: ") for line in done.stdout.splitlines()]
    assert len(lines) == calls
    silent = [number for number, line in enumerate(lines, 1) if "(" not in line]
    assert not silent, done.stdout
    for text in (
        "unshare(CLONE_NEWNS): Input/output error",
        "mount private(/): Input/output error",
        f"mount bind({root}): Input/output error",
        f"pivot_root({root}): Input/output error",
        "mount proc(/proc): Input/output error",
        "clone(CLONE_NEWPID): Input/output error",
        "mount read-only(/proc/sys): Input/output error",
        "prctl(PR_CAPBSET_DROP): Input/output error",
        "setns(CLONE_NEWPID of the reaper): Input/output error",
        "setns(CLONE_NEWNS of the reaper): Input/output error",
        "setns(CLONE_NEWPID of slurmstepd): Input/output error",
    ):
        assert text in lines


def test_an_absent_root_is_named(cases: Path, root: Path) -> None:
    done = run(cases, "enter", str(root / "nowhere"))
    assert done.returncode == 1
    assert done.stdout.endswith(f" mount bind({root}/nowhere): No such file or directory\n")


def test_a_root_without_proc_is_left_again(cases: Path, root: Path) -> None:
    """The first failure stays the reason, also when the return fails."""
    (root / "proc").rmdir()
    returned = run(cases, "return", str(root))
    assert (returned.returncode, returned.stderr) == (0, "")
    assert " mount proc(/proc): No such file or directory\n" in returned.stdout
    assert len(returned.stdout.splitlines()) == 15
    done = run(cases, "enter", str(root))
    assert done.returncode == 1
    assert done.stdout.endswith(" mount proc(/proc): No such file or directory\n")


def test_a_chroot_is_rejected(cases: Path, root: Path, tmp_path: Path) -> None:
    """There setns(2) would lead tasks to the root outside."""
    (tmp_path / "all").mkdir()
    script = 'mount --rbind / "$1" && exec chroot "$1" "$2" enter "$3"'
    words = ["sh", "-c", script, "sh", str(tmp_path / "all"), str(cases), str(root)]
    spaces = ["unshare", "--mount", "--propagation=private", "--pid", "--fork", "--kill-child"]
    done = subprocess.run([*spaces, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "setns(CLONE_NEWNS): slurmd runs in a chroot" in done.stdout
