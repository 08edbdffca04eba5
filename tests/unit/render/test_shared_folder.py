"""The sidecar with an /etc/slurm that is a plain folder on a shared volume, with a manifest."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.render.config.content import content_hash, manifest
from penstock.render.parts.script import script
from penstock.slurm.conf.manifest import MANIFEST
from support.reconfigure_pod import RUNS, Pod, hash_of, lines_until, until

CGROUP = "CgroupPlugin=disabled\n"


class JailPod(Pod):
    """A pod whose /etc/slurm is a symlink into the jail, which is not filled yet."""

    is_shared_folder = True

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.folder, self.link = root / "jail" / "etc" / "slurm", root / "etc-slurm"
        self.link.symlink_to(self.folder)

    def start(self, **more: str) -> subprocess.Popen[str]:
        return super().start(SLURM_ETC=str(self.link), **more)

    def place(self, name: str, text: str) -> None:
        """Rename one file into place, as the writer does."""
        new = self.folder / f".{name}.new"
        new.write_text(text)
        new.rename(self.folder / name)

    def deliver(self, text: str) -> None:
        """Another complete generation: its files one by one, and last the manifest."""
        self.folder.mkdir(parents=True, exist_ok=True)
        files = files_of(text)
        for name, content in files.items():
            self.place(name, content)
        self.place(MANIFEST, manifest(files))

    def propose(self, text: str, **annotations: str) -> None:
        """Candidates with all files of the cluster."""
        self.candidate.show(
            files_of(text) | {f".{name}": value for name, value in annotations.items()}
        )


def files_of(text: str) -> dict[str, str]:
    return {"cgroup.conf": CGROUP, "slurm.conf": text}


def sum_of(text: str) -> str:
    return content_hash(files_of(text))


@pytest.fixture
def pod(tmp_path: Path) -> JailPod:
    return JailPod(tmp_path)


@pytest.fixture
def running(pod: JailPod) -> Iterator[subprocess.Popen[str]]:
    pod.deliver("first")
    process = pod.start()
    lines_until(process, f"effective {sum_of('first')}")
    lines_until(process, f"tried {hash_of('first')} ok")
    yield process
    process.kill()
    process.communicate()


def is_unmoved(pod: JailPod, process: subprocess.Popen[str]) -> bool:
    """Whether nothing but two trials is logged: the loop was repeated between them."""
    lines: list[str] = []
    for text in ("others", "more"):
        pod.propose(text)
        lines += lines_until(process, f"tried {sum_of(text)} ok")
    return len(lines) == 2 and not pod.calls.read_text()


def test_a_complete_folder_is_reconfigured_once(pod: JailPod, running: subprocess.Popen[str]):
    pod.deliver("second")
    lines = lines_until(running, f"effective {sum_of('second')}")
    assert lines == [f"penstock: effective {sum_of('second')}"]
    pod.propose("others")
    lines_until(running, f"tried {sum_of('others')} ok")
    pod.propose("second")
    lines_until(running, f"tried {sum_of('second')} ok")
    assert pod.calls.read_text() == "x\n"


def test_a_half_written_folder_is_not_reconfigured(pod: JailPod, running: subprocess.Popen[str]):
    pod.place("slurm.conf", "second")
    assert is_unmoved(pod, running)
    pod.deliver("second")
    lines_until(running, f"effective {sum_of('second')}")


def test_a_folder_without_one_listed_file_is_not_reconfigured(
    pod: JailPod, running: subprocess.Popen[str]
):
    (pod.folder / "cgroup.conf").unlink()
    pod.place("slurm.conf", "second")
    pod.place(MANIFEST, manifest(files_of("second")))
    assert is_unmoved(pod, running)
    pod.place("cgroup.conf", CGROUP)
    lines_until(running, f"effective {sum_of('second')}")


def test_no_request_makes_slurmctld_read_a_half_written_folder(
    pod: JailPod, running: subprocess.Popen[str]
):
    pod.place("slurm.conf", "second")
    pod.propose("first", reconfigure="now")
    (*_, line) = lines_until(running, "waits")
    assert line == (
        f"penstock: waits {sum_of('first')}: {pod.link} is incomplete: its files are not those "
        f"that its {MANIFEST} lists"
    )
    assert not pod.calls.read_text()
    pod.deliver("second")
    lines_until(running, f"effective {sum_of('second')}")
    lines_until(running, "penstock: reconfigured now ok")


def test_a_file_of_a_user_beside_changes_nothing(pod: JailPod, running: subprocess.Popen[str]):
    pod.place("users.conf", "NodeName=mine\n")
    (pod.folder / "scripts").mkdir()
    assert is_unmoved(pod, running)


def test_a_file_of_a_user_beside_is_there_in_a_trial(pod: JailPod, running: subprocess.Popen[str]):
    """slurm.conf may include it."""
    pod.place("users.conf", "mine")
    pod.slurmctld(
        f'[ -f "${{last%/*}}/users.conf" ] || {{ echo "fatal: no users.conf"; exit 1; }}\n{RUNS}'
    )
    pod.deliver("Include users.conf")
    lines_until(running, f"effective {sum_of('Include users.conf')}")


@pytest.mark.parametrize(
    "broken",
    [
        None,
        "",
        "\n",
        "no sums at all\n",
        manifest({**files_of("second"), "users.conf": "mine"}).rstrip("\n"),
        manifest({"cgroup.conf": CGROUP}),
        manifest({"cgroup.conf": CGROUP, "slurm.conf": "third"}),
        manifest({**files_of("second"), "topology.conf": "absent"}),
    ],
    ids=["removed", "empty", "blank", "text", "cut", "without", "other", "absent"],
)
def test_a_broken_manifest_changes_nothing_until_it_is_right(
    pod: JailPod, running: subprocess.Popen[str], broken: str | None
):
    pod.place("users.conf", "mine")
    pod.place("slurm.conf", "second")
    if broken is None:
        (pod.folder / MANIFEST).unlink()
    else:
        pod.place(MANIFEST, broken)
    assert is_unmoved(pod, running)
    pod.deliver("second")
    lines_until(running, f"effective {sum_of('second')}")


def test_a_manifest_that_returns_unchanged_changes_nothing(
    pod: JailPod, running: subprocess.Popen[str]
):
    (pod.folder / MANIFEST).unlink()
    assert is_unmoved(pod, running)
    pod.deliver("first")
    pod.propose("first")
    assert len(lines_until(running, f"tried {sum_of('first')} ok")) == 1
    assert not pod.calls.read_text()


def test_a_manifest_that_is_no_file_ends_nothing(pod: JailPod, running: subprocess.Popen[str]):
    """Who is root in the jail can put a pipe there, at which a reader would wait for ever."""
    (pod.folder / MANIFEST).unlink()
    os.mkfifo(pod.folder / MANIFEST)
    assert is_unmoved(pod, running)


def test_nothing_is_reported_before_the_jail_is_filled(pod: JailPod):
    process = pod.start()
    try:
        assert lines_until(process, "slurm")[-1] == "penstock: slurm 26.05.5"
        pod.folder.mkdir(parents=True)
        pod.place("slurm.conf", "first")
        pod.deliver("first")
        assert lines_until(process, "effective") == [f"penstock: effective {sum_of('first')}"]
        assert not pod.calls.read_text()
    finally:
        process.kill()
        process.communicate()


def test_a_container_that_starts_again_finds_what_changed_meanwhile(pod: JailPod):
    (pod.state / "applied").write_text(sum_of("first"))
    pod.deliver("second")
    process = pod.start()
    try:
        lines_until(process, f"effective {sum_of('second')}")
        assert pod.calls.read_text() == "x\n"
    finally:
        process.kill()
        process.communicate()


def test_files_that_are_renamed_while_they_are_hashed_are_not_taken_for_complete(
    pod: JailPod, running: subprocess.Popen[str]
):
    going, go = pod.state / "going", pod.state / "go"
    real = shutil.which("sha256sum")
    pod.program(
        "sha256sum",
        f'case "$*" in *--check*) touch {going}; until [ -e {go} ]; do sleep 0.01; done ;; esac\n'
        f'exec {real} "$@"\n',
    )
    pod.deliver("second")
    until(going.exists)
    pod.place("slurm.conf", "third")
    go.touch()
    pod.propose("fourth")
    lines = lines_until(running, f"tried {sum_of('fourth')} ok")
    pod.deliver("third")
    lines += lines_until(running, f"effective {sum_of('third')}")
    assert not any(sum_of("second") in line for line in lines)


def test_a_rejection_of_half_replaced_files_is_no_rejection_of_any(
    pod: JailPod, running: subprocess.Popen[str]
):
    """slurmctld has read one file of the next generation beside those of this one."""
    next_one = pod.folder / ".next"
    pod.program(
        "scontrol",
        f"echo x >>{pod.calls}\n[ $(wc -l <{pod.calls}) = 1 ] || exit 0\n"
        f"printf third >{next_one}\nmv {next_one} {pod.folder}/slurm.conf\n"
        "echo 'fatal: cgroup.conf and slurm.conf contradict'\nexit 1\n",
    )
    pod.deliver("second")
    (*before, _) = lines_until(running, "incomplete")
    assert not before
    pod.deliver("third")
    assert lines_until(running, f"effective {sum_of('third')}") == [
        f"penstock: effective {sum_of('third')}"
    ]


def test_a_reconfigure_with_half_replaced_files_is_not_called_in_effect(
    pod: JailPod, running: subprocess.Popen[str]
):
    next_one = pod.folder / ".next"
    pod.program(
        "scontrol",
        f"echo x >>{pod.calls}\n[ $(wc -l <{pod.calls}) = 1 ] || exit 0\n"
        f"printf third >{next_one}\nmv {next_one} {pod.folder}/slurm.conf\n",
    )
    pod.deliver("second")
    lines = lines_until(running, "incomplete")
    pod.deliver("third")
    lines += lines_until(running, f"effective {sum_of('third')}")
    assert not any(f"effective {sum_of('second')}" in line for line in lines)


def test_files_that_no_trial_started_with_are_tried_before_slurmctld_reads_them(
    pod: JailPod, running: subprocess.Popen[str]
):
    pod.slurmctld('echo "fatal: bad cgroup.conf"\nexit 1\n')
    pod.deliver("bad")
    lines_until(running, f"penstock: refused {sum_of('bad')}: fatal: bad cgroup.conf")
    assert not pod.calls.read_text()


def test_candidates_have_the_hash_that_the_folder_has_with_their_files(
    pod: JailPod, running: subprocess.Popen[str]
):
    pod.propose("second")
    lines_until(running, f"tried {sum_of('second')} ok")
    pod.slurmctld('echo "fatal: tried again"\nexit 1\n')
    pod.deliver("second")
    lines_until(running, f"effective {sum_of('second')}")


def test_a_change_that_needs_nothing_of_slurmctld_is_not_reconfigured(
    pod: JailPod, running: subprocess.Popen[str]
):
    pod.propose("second", live=sum_of("second"))
    lines_until(running, f"tried {sum_of('second')} ok")
    pod.deliver("second")
    lines_until(running, f"effective {sum_of('second')}")
    assert not pod.calls.read_text()


def test_the_manifest_is_what_sha256sum_prints(tmp_path: Path):
    files = {"slurm.conf": "a\n", "Zebra": "b", "a-b_c.conf": "", "a.conf": "ü"}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    (tmp_path / ".hidden").write_text("left out")
    printed = subprocess.run(
        ["bash", "-c", "LC_ALL=C; sha256sum -- *"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert manifest(files | {".hidden": "left out"}) == printed.stdout
    (tmp_path / MANIFEST).write_text(printed.stdout)
    summed = subprocess.run(
        ["sha256sum", MANIFEST], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert summed.stdout.split()[0] == content_hash(files)


def test_script_and_writer_have_one_name_for_the_manifest():
    assert f"manifest={MANIFEST}\n" in script("reconfigure_shared_folder")
