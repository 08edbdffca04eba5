"""The sidecar that has slurmctld read keys of auth/slurm which are beside its configuration."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.reconfigure_pod import AWAY, Pod, hash_of, lines_until, until
from unit.render.test_shared_folder import JailPod, sum_of

ONE, OTHER = "1" * 64, "2" * 64


def report(pod: Pod, text: str) -> None:
    """The entry point of slurmctld's container has put keys into place."""
    new = pod.keys.with_suffix(".new")
    new.write_text(f"{text}\n")
    new.rename(pod.keys)


class KeysPod(Pod):
    has_keys_beside = True


class JailKeysPod(JailPod):
    has_keys_beside = True


@pytest.fixture(params=[KeysPod, JailKeysPod])
def pod(request: pytest.FixtureRequest, tmp_path: Path) -> Pod:
    return request.param(tmp_path)


@pytest.fixture
def running(pod: Pod) -> Iterator[subprocess.Popen[str]]:
    if isinstance(pod, JailPod):
        pod.deliver("first")
        pod.propose("first")
    process = pod.start()
    lines_until(process, "effective ")
    lines_until(process, "tried ")
    yield process
    process.kill()
    process.communicate()


def test_keys_that_slurmctld_starts_with_need_no_reconfigure(
    pod: Pod, running: subprocess.Popen[str]
):
    report(pod, f"{ONE} start")
    assert lines_until(running, "keys") == [f"penstock: keys {ONE}"]
    assert not pod.calls.read_text()


def test_other_keys_are_reported_once_slurmctld_has_reconfigured(
    pod: Pod, running: subprocess.Popen[str]
):
    report(pod, f"{ONE} start")
    lines_until(running, ONE)
    pod.reject(AWAY)
    report(pod, OTHER)
    until(lambda: "x" in pod.calls.read_text())
    pod.answer.unlink()
    assert lines_until(running, "keys")[-1] == f"penstock: keys {OTHER}"
    assert pod.calls.read_text() == "x\nx\n"


def test_a_sidecar_that_starts_again_repeats_its_last_report(
    pod: Pod, running: subprocess.Popen[str]
):
    report(pod, f"{ONE} start")
    lines_until(running, ONE)
    running.kill()
    running.wait()
    again = pod.start()
    lines = lines_until(again, "effective ")
    again.kill()
    again.communicate()
    assert f"penstock: keys {ONE}" in lines
    assert not pod.calls.read_text()


def test_keys_wait_for_files_that_are_being_tried(pod: Pod, running: subprocess.Popen[str]):
    """Slurmctld must not read files of which no trial start is known."""
    if isinstance(pod, JailPod):
        pod.place("slurm.conf", "second")
    else:
        pod.slurmctld("sleep 1\necho fatal: no >&2\nexit 1\n")
        pod.etc.write("second")
    report(pod, OTHER)
    if isinstance(pod, JailPod):
        pod.propose("others")
        lines = lines_until(running, f"tried {sum_of('others')} ok")
        assert not [one for one in lines if "keys" in one]
        assert not pod.calls.read_text()
        pod.deliver("second")
    else:
        lines = lines_until(running, f"refused {hash_of('second')}")
        assert not [one for one in lines if "keys" in one]
        assert not pod.calls.read_text()
        pod.etc.write("first")
    assert lines_until(running, "keys")[-1] == f"penstock: keys {OTHER}"
