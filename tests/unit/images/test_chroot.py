"""The SPANK plug-in's code without Slurm, under AddressSanitizer and UBSan."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.local.recipes import IMAGES

SOURCE = IMAGES / "jail/chroot"
CASES = Path(__file__).parents[2] / "fixtures/jail/chroot_cases.c"
MODULES = (
    *("arguments.c", "capabilities.c", "cgroup.c", "enter.c", "failure.c", "isolation.c"),
    *("job_mounts.c", "reaper.c"),
)
WRAPPED = (
    *("access", "chdir", "chroot", "close", "fchdir", "fchmod", "fchown", "flock", "fstat"),
    *("mkdir", "mkdirat", "posix_spawn", "unlink"),
    *("mount", "mount_setattr", "move_mount", "open", "open_tree", "pipe2"),
    *("poll", "prctl"),
    *("pthread_sigmask", "read", "setns", "sigaction", "stat", "syscall", "umount2", "unshare"),
    *("waitpid", "write"),
)
WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror")
SANITIZERS = ("-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
ENOUGH = 110
"""Calls of one complete run, at least: with fewer a wrapper is not in effect."""
ALICE, BOB = 2001, 2002
NO_LIST = "/nowhere/list"
NO_INTERFACE = "plugstack.conf: no name of a network interface"
ETH0_AND_VLAN = "/a on isolated by eth0,net1.100"
MOST_INTERFACES = ",".join(["a" * 15] * 8)


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
    for name in ("home", "proc", "sys", "job"):
        (tmp_path / "root" / name).mkdir(parents=True)
    return tmp_path / "root"


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    """A volume outside the root, with a folder for folders of jobs."""
    (tmp_path / "volume/jobs").mkdir(parents=True)
    return tmp_path / "volume"


def listed(volume: Path, folder: str = "jobs/${SLURM_JOB_ID}", more: str = "/job\trw") -> str:
    """Path of a list with one mount."""
    path = volume.parent / "list"
    path.write_text(f"{volume}\t{folder}\t{more}\n")
    path.chmod(0o644)
    return str(path)


def mounted(
    cases: Path, root: Path, mounts: str, job: int = 7, user: int = ALICE, target: str = "/job"
) -> str:
    return run(cases, "mounts", str(root), mounts, str(job), str(user), target).stdout.rstrip()


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
        (["/mnt/jail", "job_isolation=on"], "/mnt/jail on isolated"),
        (["/mnt/jail", "job_isolation=on", "job_isolation=off"], "/mnt/jail on"),
        (
            ["/a", "job_isolation=x"],
            "plugstack.conf: unknown argument of chroot.so: job_isolation=x",
        ),
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
        (["/a", "job_mounts=/b"], "/a on"),
        (["/a", "job_mounts=b"], "plugstack.conf: job_mounts is no absolute path: b"),
        (["/a", "network_interfaces=eth0"], "/a on by eth0"),
        (["/a", "network_interfaces=eth0,net1.100", "job_isolation=on"], ETH0_AND_VLAN),
        (["/a", f"network_interfaces={MOST_INTERFACES}"], f"/a on by {MOST_INTERFACES}"),
        *(
            (["/a", f"network_interfaces={names}"], f"{NO_INTERFACE}: {shown}")
            for names, shown in (
                ("", ""),
                (",eth0", ",eth0"),
                ("eth0,", ""),
                ("eth0,,eth1", ",eth1"),
                ("=eth0", "=eth0"),
                ("^lo", "^lo"),
                ("0eth", "0eth"),
                ("eth0 x=y", "eth0 x=y"),
                ("eth0\nrequired x.so", "eth0\nrequired x.so"),
                ("eth0/24", "eth0/24"),
                ("a" * 16, "a" * 16),
            )
        ),
        (
            ["/a", f"network_interfaces={MOST_INTERFACES},b"],
            f"plugstack.conf: more than 8 network_interfaces: {MOST_INTERFACES},b",
        ),
        (["/" + "a" * 4095], "plugstack.conf: the path of the root is too long"),
        (["/" + "a" * 4094], "/" + "a" * 4094 + " on"),
    ],
)
def test_arguments(cases: Path, words: list[str], expected: str) -> None:
    assert run(cases, "arguments", *words).stdout == expected + "\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "0::/system.slice/w0_slurmstepd.scope/sC5M8CH0J1D00/step_0/slurm\n",
            "/sys/fs/cgroup/system.slice/w0_slurmstepd.scope/system/cgroup.procs",
        ),
        ("0::/s.scope/job_7/step_batch/slurm", "/sys/fs/cgroup/s.scope/system/cgroup.procs"),
        ("1:name=systemd:/x\n0::/s/job_7/step_0/slurm\n", "/sys/fs/cgroup/s/system/cgroup.procs"),
        ("0::/job_7/step_0/slurm\n", "/sys/fs/cgroup/system/cgroup.procs"),
        ("0::/s.scope/system\n", ""),
        ("0::/s.scope/job_7/step_0/user/task_0\n", ""),
        ("0::/step_0/slurm\n", ""),
        ("0::/\n", ""),
        ("5:devices:/slurm/uid_0/job_1/step_0\n0::/\n", ""),
        ("5:devices:/slurm/uid_0/job_1/step_0/slurm\n", ""),
        ("", ""),
        ("0::" + "/a" * 2040 + "/job_7/step_0/slurm", ""),
        ("0::" + "/a" * 4000, ""),
    ],
)
def test_the_reaper_leaves_the_group_in_which_slurmstepd_must_be_alone(
    cases: Path, text: str, expected: str
) -> None:
    assert run(cases, "outside", text).stdout == expected + "\n"


def test_enters_the_root_and_its_namespaces(cases: Path, root: Path, volume: Path) -> None:
    done = run(cases, "enter", str(root), listed(volume))
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    calls, result = done.stdout.split()
    assert result == "ok"
    assert int(calls) >= ENOUGH


def test_a_failing_call_is_reported_by_name_and_path(cases: Path, root: Path, volume: Path) -> None:
    """Each call fails once. Nothing crashes, and no process is left in a namespace."""
    mounts = listed(volume)
    calls = int(run(cases, "enter", str(root), mounts).stdout.split()[0])
    done = run(cases, "faults", str(root), mounts, str(calls))
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
        f"fstat({volume}/jobs): Input/output error",
        f"open_tree({volume}/jobs/",
        f"move_mount({root}/job): Input/output error",
        "setns(CLONE_NEWPID of the reaper): Input/output error",
        "setns(CLONE_NEWNS of the reaper): Input/output error",
        "setns(CLONE_NEWPID of slurmstepd): Input/output error",
    ):
        assert [line for line in lines if line.startswith(text)], text


def test_an_absent_root_is_named(cases: Path, root: Path) -> None:
    done = run(cases, "enter", str(root / "nowhere"), NO_LIST)
    assert done.returncode == 1
    assert done.stdout.endswith(f" mount bind({root}/nowhere): No such file or directory\n")


def test_a_root_without_proc_is_left_again(cases: Path, root: Path) -> None:
    """The first failure stays the reason, also when the return fails."""
    (root / "proc").rmdir()
    returned = run(cases, "return", str(root), NO_LIST)
    assert (returned.returncode, returned.stderr) == (0, "")
    assert " mount proc(/proc): No such file or directory\n" in returned.stdout
    assert len(returned.stdout.splitlines()) == 15
    done = run(cases, "enter", str(root), NO_LIST)
    assert done.returncode == 1
    assert done.stdout.endswith(" mount proc(/proc): No such file or directory\n")


def test_a_chroot_is_rejected(cases: Path, root: Path, tmp_path: Path) -> None:
    """There setns(2) would lead tasks to the root outside."""
    (tmp_path / "all").mkdir()
    script = 'mount --rbind / "$1" && exec chroot "$1" "$2" enter "$3" /none'
    words = ["sh", "-c", script, "sh", str(tmp_path / "all"), str(cases), str(root)]
    spaces = ["unshare", "--mount", "--propagation=private", "--pid", "--fork", "--kill-child"]
    done = subprocess.run([*spaces, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "setns(CLONE_NEWNS): slurmd runs in a chroot" in done.stdout


def test_each_job_has_a_folder_of_its_own(cases: Path, root: Path, volume: Path) -> None:
    """S105: with the job's owner, empty at first; a second step of the job finds its files."""
    mounts = listed(volume)
    assert mounted(cases, root, mounts, 7) == f"{ALICE} 700"
    assert mounted(cases, root, mounts, 8) == f"{ALICE} 700"
    assert mounted(cases, root, mounts, 7) == f"{ALICE} 700 file"
    assert mounted(cases, root, mounts, 9, BOB) == f"{BOB} 700"
    assert mounted(cases, root, mounts, 10, 0) == "0 700"
    assert mounted(cases, root, mounts, 10, 0) == "0 700 file"
    assert sorted(path.name for path in (volume / "jobs").iterdir()) == ["10", "7", "8", "9"]
    assert (volume / "jobs").stat().st_mode & 0o777 == 0o755
    assert not list((root / "job").iterdir())


def test_folders_of_the_path_are_made(cases: Path, root: Path, volume: Path) -> None:
    """S105: those above the job's are root's, those below it the job's."""
    folder = "a/b//x-${SLURM_JOB_ID}-${SLURM_JOB_ID}/c"
    mounts = listed(volume, folder, "/deep/in/it\tro")
    assert mounted(cases, root, mounts, target="/deep/in/it") == f"{ALICE} 700 read-only"
    found = {
        str(path.relative_to(volume)): (path.stat().st_uid, path.stat().st_mode & 0o777)
        for path in (volume / "a").rglob("*")
    }
    assert found == {"a/b": (0, 0o755), "a/b/x-7-7": (ALICE, 0o700), "a/b/x-7-7/c": (ALICE, 0o700)}


def test_a_folder_that_was_not_finished_is_finished(cases: Path, root: Path, volume: Path) -> None:
    """S105: a slurmstepd was killed between two calls, or another node is between them."""
    for name, owner in (("7", 0), ("8", ALICE)):
        (volume / "jobs" / name).mkdir()
        (volume / "jobs" / name).chmod(0)
        os.chown(volume / "jobs" / name, owner, owner)
        assert mounted(cases, root, listed(volume), int(name)) == f"{ALICE} 700"


def link(volume: Path, _: Path) -> str:
    (volume / "jobs/7").symlink_to("/etc")
    return f"openat2({volume}/jobs/7): Too many levels of symbolic links"


def dangling(volume: Path, _: Path) -> str:
    (volume / "jobs/7").symlink_to("nowhere")
    return f"openat2({volume}/jobs/7): Too many levels of symbolic links"


def link_above(volume: Path, _: Path) -> str:
    (volume / "jobs").rmdir()
    (volume / "jobs").symlink_to("/etc")
    return f"openat2({volume}/jobs): Too many levels of symbolic links"


def file(volume: Path, _: Path) -> str:
    (volume / "jobs/7").touch()
    return f"openat2({volume}/jobs/7): Not a directory"


def folder_of_another(volume: Path, _: Path) -> str:
    (volume / "jobs/7").mkdir()
    os.chown(volume / "jobs/7", BOB, BOB)
    return f"this folder of the job has another owner: {volume}/jobs/7"


def folder_of_root(volume: Path, _: Path) -> str:
    (volume / "jobs/7").mkdir()
    return f"this folder of the job has another owner: {volume}/jobs/7"


def open_to_others(volume: Path, _: Path) -> str:
    (volume / "jobs").chmod(0o777)
    return f"others than root may rename folders of jobs (chmod 755) in: {volume}/jobs"


def parent_of_user(volume: Path, _: Path) -> str:
    os.chown(volume / "jobs", ALICE, ALICE)
    return f"folders of jobs need a folder of root's, which is not: {volume}/jobs"


def link_in_jail(_: Path, root: Path) -> str:
    (root / "job").rmdir()
    (root / "job").symlink_to("/etc")
    return f"openat2({root}/job): Too many levels of symbolic links"


def file_in_jail(_: Path, root: Path) -> str:
    (root / "job").rmdir()
    (root / "job").touch()
    return f"openat2({root}/job): Not a directory"


def no_volume(volume: Path, _: Path) -> str:
    shutil.rmtree(volume)
    return f"open({volume}): No such file or directory"


@pytest.mark.parametrize(
    "plant",
    [
        *(link, dangling, link_above, file, folder_of_another, folder_of_root, open_to_others),
        *(parent_of_user, link_in_jail, file_in_jail, no_volume),
    ],
)
def test_nothing_that_is_planted_leads_out(
    cases: Path, root: Path, volume: Path, plant: Callable[[Path, Path], str]
) -> None:
    """S105: the reason names the call or the rule, and the path."""
    mounts, text = listed(volume), plant(volume, root)
    assert mounted(cases, root, mounts) == text


@pytest.mark.parametrize(
    ("folder", "more", "text"),
    [
        (
            "jobs/../../x${SLURM_JOB_ID}",
            "/job\trw",
            "a path with . or .. is not mounted: {}/jobs/..",
        ),
        ("${SLURM_JOB_ID}/./x", "/job\trw", "a path with . or .. is not mounted: {}/7/."),
        ("jobs/${SLURM_JOB_ID}", "/job/../../x\trw", "a path with . or .. is not mounted: "),
        ("jobs", "/job\trw", "the same folder for all jobs: {}/jobs"),
        (
            "jobs/${SLURM_JOB_USER}/${SLURM_JOB_ID}",
            "/job\trw",
            "this variable is not known, only ${SLURM_JOB_ID}: ${SLURM_JOB_USER}",
        ),
        ("jobs/${SLURM_JOB_ID", "/job\trw", "this variable is not known, only ${SLURM_JOB_ID}: "),
        ("jobs/${SLURM_JOB_ID}", "/\trw", "a job's folder cannot be the whole of: "),
        ("jobs/${SLURM_JOB_ID}", "job\trw", "no line of the list of job mounts: {}"),
        ("jobs/${SLURM_JOB_ID}", "/job", "no line of the list of job mounts: {}"),
        ("jobs/${SLURM_JOB_ID}", "/job\trw\tx", "no line of the list of job mounts: {}"),
        ("a" * 255 + "${SLURM_JOB_ID}", "/job\trw", "openat2(aaaa"),
        ("a/" * 2040 + "${SLURM_JOB_ID}", "/job\trw", "open(a): File name too long"),
    ],
)
def test_a_line_that_leads_out_or_is_wrong_is_rejected(
    cases: Path, root: Path, volume: Path, folder: str, more: str, text: str
) -> None:
    """S105."""
    found = mounted(cases, root, listed(volume, folder, more))
    # Deeper than Python can remove a folder.
    subprocess.run(["rm", "-rf", str(volume)], check=True)
    assert found.startswith(text.replace("{}", str(volume))), found


def test_only_a_list_of_root_is_read(cases: Path, root: Path, volume: Path) -> None:
    """S105: never one that a user may write; a large one is rejected."""
    path = Path(listed(volume))
    path.chmod(0o646)
    expected = f"must be a file that root alone can write: {path}"
    assert mounted(cases, root, str(path)) == expected
    path.chmod(0o644)
    os.chown(path, ALICE, ALICE)
    assert mounted(cases, root, str(path)) == expected
    os.chown(path, 0, 0)
    path.write_text("#" * (128 * 1024 + 1))
    assert mounted(cases, root, str(path)) == f"read({path}): File too large"
    path.write_text(" " * (128 * 1024))
    assert mounted(cases, root, str(path)).startswith("no line of the list of job mounts:")
    path.write_text("a\0b")
    assert mounted(cases, root, str(path)) == f"has a zero byte: {path}"
    path.unlink()
    assert mounted(cases, root, str(path)) == f"open({path}): No such file or directory"
    path.symlink_to("/etc/hostname")
    assert mounted(cases, root, str(path)) == f"open({path}): Too many levels of symbolic links"


ELSEWHERE = """
set -e
mount --bind "$1" /mnt
mount -t tmpfs tmpfs /run
mount -t tmpfs -o mode=1777 tmpfs /tmp
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
cp /mnt/cases /run/cases
cd /
eval "$2"
"""
"""The folder of the test at /mnt; all that isolation.c writes is in memory of this process."""


def isolated(cases: Path, root: Path, script: str) -> list[str]:
    """What a script prints that calls /run/cases; the root is /mnt/root."""
    for name in ("tmp", "var/tmp", "dev/shm"):
        (root / name).mkdir(parents=True, exist_ok=True)
    shutil.copy(cases, root.parent / "cases")
    spaces = ["unshare", "--mount", "--propagation=private", "--pid", "--fork", "--kill-child"]
    done = subprocess.run(
        [*spaces, "sh", "-c", ELSEWHERE, "sh", str(root.parent), script],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
        env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0", "LC_ALL": "C"},
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    return done.stdout.splitlines()


def test_steps_of_one_job_share_files_and_memory_that_no_other_job_has(
    cases: Path, root: Path
) -> None:
    """S171: and neither has those of the container."""
    enter = "/run/cases isolated /mnt/root"
    script = (
        f"touch /tmp/of-all /dev/shm/of-all; {enter} 7 {ALICE}; {enter} 7 {ALICE}; "
        f"{enter} 8 {BOB}; /run/cases removed 7 >/dev/null; {enter} 7 {ALICE}; "
        "stat -c %u:%a /tmp/.penstock-jobs /dev/shm/.penstock-jobs; "
        "stat -c 'ipc %i' -L /proc/self/ns/ipc"
    )
    lines = isolated(cases, root, script)
    first, second, other, again = (lines[start : start + 4] for start in (0, 4, 8, 12))
    assert first[1:] == [f"{ALICE} 1777"] * 3
    assert second[1:] == [f"{ALICE} 1777 file"] * 3
    assert other[1:] == [f"{BOB} 1777"] * 3
    assert again[1:] == [f"{ALICE} 1777"] * 3
    assert first[0] == second[0]
    assert len({first[0], other[0], lines[-1]}) == 3
    assert lines[16:18] == ["0:700", "0:700"]


def test_a_job_that_did_not_begin_isolated_has_what_all_have(cases: Path, root: Path) -> None:
    """S171: a change of plugstack.conf counts for jobs that begin afterwards."""
    script = (
        "/run/cases usual 7; mkdir -p /tmp/.penstock-jobs/tmp/7; "
        f"/run/cases isolated /mnt/root 8 {ALICE} >/dev/null; /run/cases usual 7; "
        "ls -d /tmp/.penstock-jobs/tmp/7"
    )
    assert isolated(cases, root, script) == ["usual", "usual", "/tmp/.penstock-jobs/tmp/7"]


def test_what_is_planted_where_files_of_jobs_are_is_not_used(cases: Path, root: Path) -> None:
    """S171: users of the container's /tmp may have written there first."""
    enter = f"/run/cases isolated /mnt/root 7 {ALICE} || :"
    script = (
        f"ln -s /etc /tmp/.penstock-jobs; {enter}; rm /tmp/.penstock-jobs; "
        f"mkdir /tmp/.penstock-jobs; chown {BOB} /tmp/.penstock-jobs; {enter}"
    )
    assert isolated(cases, root, script) == [
        "openat2(/tmp/.penstock-jobs): Too many levels of symbolic links",
        "folders of jobs need a folder of root's, which is not: /tmp/.penstock-jobs",
    ]


def test_each_failing_call_of_isolation_is_reported(cases: Path, root: Path) -> None:
    """S171: while a job begins, and while it ends, after which nothing is left."""
    _, calls = isolated(cases, root, "/run/cases isolated-faults /mnt/root 0")
    count, result = calls.split()
    assert result == "ok"
    lines = isolated(cases, root, f"/run/cases isolated-faults /mnt/root {count}")[2:]
    texts = [line.partition(" ")[2] for line in lines]
    assert len(texts) == int(count)
    assert not [text for text in texts if "(" not in text], texts
    for text in (
        "mkdir(/run/penstock/ipc): ",
        "open(/run/penstock/ipc/lock): ",
        "flock(/run/penstock/ipc/lock): ",
        "unshare(CLONE_NEWIPC): ",
        "mount bind(/run/penstock/ipc/1",
    ):
        assert [one for one in texts if one.startswith(text)], text
    script = (
        f"/run/cases isolated /mnt/root 7 {ALICE} >/dev/null; /run/cases removed 7; "
        "find /run/penstock /tmp /dev/shm -name 7; "
        "grep -c ' /run/penstock' /proc/self/mountinfo || :"
    )
    *failures, done, left = isolated(cases, root, script)
    assert (done, left) == ("ok", "0")
    assert len(failures) == 9
    assert not [one for one in failures if "(" not in one], failures
    for call in ("umount2(", "unlink(", "posix_spawn(", "waitpid("):
        assert [one for one in failures if one.startswith(call)], failures
