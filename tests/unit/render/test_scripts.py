"""The shell that runs in the pods, run for real beside a stand-in for scontrol."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.render.config.content import content_hash
from penstock.render.parts.script import script
from support.reconfigure_pod import AWAY, REFUSED, RUNS, Pod, hash_of, lines_until, until


@pytest.fixture
def pod(tmp_path: Path) -> Pod:
    return Pod(tmp_path)


@pytest.fixture
def running(pod: Pod) -> Iterator[subprocess.Popen[str]]:
    process = pod.start()
    lines_until(process, f"tried {hash_of('first')} ok")
    yield process
    process.kill()
    process.communicate()


@pytest.fixture
def impatient(pod: Pod) -> Iterator[subprocess.Popen[str]]:
    """One that gives a trial a second, and makes it again soon."""
    process = pod.start(RECONFIGURE_TRIAL="1", RECONFIGURE_PATIENCE="1")
    lines_until(process, f"tried {hash_of('first')} ok")
    yield process
    process.kill()
    process.communicate()


def test_it_logs_the_version_of_slurm_in_its_image_first(pod: Pod) -> None:
    process = pod.start()
    try:
        assert lines_until(process, "effective")[0] == "penstock: slurm 26.05.5"
    finally:
        process.kill()
        process.communicate()


INCOMPATIBLE = (
    "slurmctld: fatal: Can not recover assoc_usage state, incompatible version, got 11520 need >= "
    "9984 <= 10752, start with '-i' to ignore this"
)
INCOMPLETE = (
    "slurmctld: error: failed to unpack node state\n"
    "slurmctld: fatal: Incomplete node data checkpoint file, start with '-i' to ignore this"
)


@pytest.mark.parametrize("words", [INCOMPATIBLE, INCOMPLETE])
def test_a_trial_that_cannot_read_the_state_blames_no_line(
    pod: Pod, running: subprocess.Popen[str], words: str
) -> None:
    pod.slurmctld(f"cat <<'END'\n{words}\nEND\nexit 1\n")
    pod.candidate.write("PartitionName=long Nodes=ALL")
    found = hash_of("PartitionName=long Nodes=ALL")
    assert f"untried {found}: " in lines_until(running, found)[-1]


def test_what_slurmctld_starts_with_is_in_effect_and_tries_nothing(pod: Pod):
    process = pod.start()
    first = hash_of("first")
    assert lines_until(process, "tried")[1:] == [
        f"penstock: effective {first}",
        f"penstock: tried {first} ok",
    ]
    process.kill()
    process.communicate()
    assert not pod.seen.exists()


def test_candidates_are_tried_and_slurmctld_is_not_asked(pod: Pod, running: subprocess.Popen[str]):
    pod.candidate.write("second")
    lines_until(running, f"tried {hash_of('second')} ok")
    assert not pod.calls.read_text()


def test_a_changed_file_makes_slurmctld_reconfigure(pod: Pod, running: subprocess.Popen[str]):
    """Feature row 6."""
    pod.etc.write("second")
    lines_until(running, f"effective {hash_of('second')}")
    assert pod.calls.read_text() == "x\n"


def test_a_change_that_needs_nothing_of_slurmctld_is_not_reconfigured(
    pod: Pod, running: subprocess.Popen[str]
):
    pod.candidate.write("second", live=hash_of("second"))
    lines_until(running, f"tried {hash_of('second')} ok")
    pod.etc.write("second")
    lines_until(running, f"effective {hash_of('second')}")
    assert not pod.calls.read_text()


def test_a_change_while_nobody_watched_is_taken_up_at_the_next_start(pod: Pod):
    """D39."""
    (pod.state / "applied").write_text("something older")
    process = pod.start()
    lines_until(process, f"effective {hash_of('first')}")
    process.kill()
    process.communicate()
    assert pod.calls.read_text() == "x\n"


def test_a_trial_touches_nothing_of_the_real_slurmctld(pod: Pod, running: subprocess.Popen[str]):
    (pod.spool / "node_state").write_text("nodes")
    (pod.spool / "clustername").write_text("x")
    text = (
        "SlurmctldPort=6817\n AccountingStorageHost=db\nStateSaveLocation=/real\n"
        "SlurmctldParameters=enable_configless,reconfig_on_restart\nSuspendProgram=/bin/off\n"
        "SlurmctldPrimaryOnProg=/bin/on\nPriorityWeightFairshare=9\nKept=1\n"
    )
    pod.candidate.write(text)
    lines_until(running, f"tried {hash_of(text)} ok")
    lines = pod.seen.read_text().split()
    assert lines[:2] == ["SlurmctldParameters=enable_configless", "Kept=1"]
    assert lines[2].startswith(f"StateSaveLocation={pod.state}/trial")
    assert lines[-2:] == ["SlurmctldPort=16817", "AuthInfo=disable_sack"]
    assert "-c" not in Path(f"{pod.seen}.args").read_text().split()
    assert not (pod.state / "trial").exists()


def test_a_trial_of_a_cluster_with_munge_has_a_key_of_its_own(
    pod: Pod, running: subprocess.Popen[str]
):
    """munged would vouch for it, and nodes would believe it."""
    text = "AuthType=auth/munge\nCredType=cred/munge\nKept=1\n"
    pod.candidate.write(text)
    lines_until(running, f"tried {hash_of(text)} ok")
    lines = pod.seen.read_text().split()
    assert lines[0] == "Kept=1"
    wanted = ["AuthType=auth/slurm", "CredType=cred/slurm", "AuthInfo=disable_sack"]
    assert lines[-3:] == wanted


def test_a_trial_reads_the_candidates_of_included_files(pod: Pod, running: subprocess.Popen[str]):
    seen = pod.seen.with_suffix(".files")
    pod.slurmctld(f"cp -r ${{last%/*}} {seen}.new && mv {seen}.new {seen}\n{RUNS}")
    base = "StateSaveLocation=/x\nAccountingStorageHost=y\nKillWait=3\ninclude more.conf\n"
    files = {
        "slurm.conf": "include /etc/slurm/base.conf.noedit\nInclude /etc/slurm/users.conf # his\n",
        "base.conf.noedit": base,
        "more.conf": "AccountingStorageType=accounting_storage/slurmdbd\nWaitTime=1\n",
    }
    pod.candidate.show(files)
    lines_until(running, f"tried {content_hash(files)} ok")
    until(seen.exists)
    head, users, *ours = (seen / "slurm.conf").read_text().split("\n")
    folder, name = head.removeprefix("include ").rsplit("/", 1)
    assert name == "base.conf.noedit"
    assert f"StateSaveLocation={folder.removesuffix('/etc')}/state" in ours
    assert users == "Include /etc/slurm/users.conf # his"
    assert (seen / "base.conf.noedit").read_text() == "KillWait=3\ninclude more.conf\n"
    assert (seen / "more.conf").read_text() == "WaitTime=1\n"


@pytest.mark.parametrize(
    ("program", "verdict"),
    [
        ('echo "slurmctld: fatal: no"\nexit 1\n', "refused: fatal: no"),
        ("kill -SEGV $$\n", "refused: "),
    ],
)
def test_what_is_the_files_fault_is_rejected(
    pod: Pod, running: subprocess.Popen[str], program: str, verdict: str
):
    pod.slurmctld(program)
    pod.candidate.write("second")
    assert f"{hash_of('second')} {verdict}" in lines_until(running, "penstock: tried")[-1]


@pytest.mark.parametrize(
    ("program", "why"),
    [
        ("kill -KILL $$\n", "(ended with status 137)"),
        ('echo "error: no such library"\nexit 127\n', "error: no such library"),
        ("exec sleep 60\n", "slurmctld had not started after 1 s"),
    ],
)
def test_a_trial_without_a_verdict_is_repeated(
    pod: Pod, impatient: subprocess.Popen[str], program: str, why: str
):
    pod.slurmctld(program)
    pod.candidate.write("second")
    (*_, line) = lines_until(impatient, hash_of("second"))
    assert line.startswith(f"penstock: untried {hash_of('second')}: ")
    assert why in line
    assert not (pod.state / "tried").exists()
    pod.slurmctld(RUNS)
    lines = lines_until(impatient, f"tried {hash_of('second')} ok")
    assert not any("refused" in one for one in lines)


def test_a_slow_host_gets_more_time_with_each_trial(pod: Pod, impatient: subprocess.Popen[str]):
    pod.slurmctld(f"sleep 2.5\n{RUNS}")
    pod.candidate.write("second")
    lines = lines_until(impatient, f"tried {hash_of('second')} ok")
    assert any(f"untried {hash_of('second')}" in line for line in lines)


def test_an_image_without_slurmctld_reports_it_and_takes_nothing(
    pod: Pod, running: subprocess.Popen[str]
):
    (pod.bin / "slurmctld").unlink()
    pod.candidate.write("second")
    (line,) = lines_until(running, hash_of("second"))
    assert line.startswith(f"penstock: untried {hash_of('second')}: the image")


def test_a_correction_does_not_wait_for_a_long_trial_of_what_it_corrects(
    pod: Pod, running: subprocess.Popen[str]
):
    """The trial would take its 15 seconds."""
    going = pod.state / "going"
    pod.slurmctld(f'grep -q second "$last" && {{ touch {going}; exec sleep 60; }}\n{RUNS}')
    pod.candidate.write("second")
    until(going.exists)
    pod.candidate.write("third")
    lines = lines_until(running, f"tried {hash_of('third')} ok")
    assert not any("untried" in line for line in lines)


def test_what_takes_effect_by_a_restart_waits_for_it_and_is_not_called_in_effect(
    pod: Pod, running: subprocess.Popen[str]
):
    pod.candidate.write("second", restart=hash_of("second"))
    lines_until(running, f"tried {hash_of('second')} ok")
    pod.etc.write("second")
    lines = lines_until(running, f"penstock: pending {hash_of('second')}")
    assert not any("effective" in line for line in lines)
    assert not pod.calls.read_text()
    # It may have started with these meanwhile, so it reads the former ones once more.
    pod.candidate.write("first", restart="")
    pod.etc.write("first")
    lines_until(running, f"effective {hash_of('first')}")
    assert pod.calls.read_text()


FORGED = "penstock: effective forged"


@pytest.mark.parametrize(
    "end",
    ["\n", "\r", "\v", "\f", "\x1c", "\x1e", "\x85", "\u2028", "\u2029", "\x1b[2K", "\u202e"],
)
def test_nothing_that_slurmctld_logs_can_pass_for_a_line_of_the_containers(
    pod: Pod, running: subprocess.Popen[str], end: str
):
    words = pod.state / "words"
    words.write_text(f"fatal: Ümlaut{end}{FORGED}")
    pod.slurmctld(f"cat {words}\nexit 1\n")
    pod.candidate.write("bad")
    (line,) = lines_until(running, hash_of("bad"))
    between = " / " if end == "\n" else f"?{end[1:]}" if len(end) > 1 else "?"
    expected = f"penstock: tried {hash_of('bad')} refused: fatal: Ümlaut{between}{FORGED}"
    assert line == expected
    pod.reject(f"no{end}{FORGED}")
    pod.candidate.write("bad", reconfigure="now")
    assert lines_until(running, "reconfigured")[-1].endswith(f"refused: no{between}{FORGED}")


def test_words_are_cut_before_the_runtime_would_split_their_line(
    pod: Pod, running: subprocess.Popen[str]
):
    """A runtime keeps 16 KiB in one piece; a tail of the log may begin with the next one."""
    pod.slurmctld(f"head -c 40000 /dev/zero | tr '\\0' x\necho 'fatal: {FORGED}'\nexit 1\n")
    pod.candidate.write("bad")
    (line,) = lines_until(running, hash_of("bad"))
    assert len(line) < 4096


def test_rejected_candidates_are_reported_in_slurms_words_and_the_correction_is_tried_at_once(
    pod: Pod, running: subprocess.Popen[str]
):
    pod.slurmctld(
        'echo "[2026-01-01T00:00:00.123] debug: starts"\n'
        'echo "[2026-01-01T00:00:00.123] error: Invalid node names in partition x" >&2\n'
        'echo "slurmctld: fatal: read_slurm_conf failed"\nexit 1\n'
    )
    pod.candidate.write("bad")
    (line,) = lines_until(running, "tried")
    assert line == (
        f"penstock: tried {hash_of('bad')} refused: debug: starts / "
        "error: Invalid node names in partition x / fatal: read_slurm_conf failed"
    )
    pod.slurmctld(RUNS)
    pod.candidate.write("good")
    assert lines_until(running, "tried") == [f"penstock: tried {hash_of('good')} ok"]
    assert not pod.calls.read_text()


def test_remarks_about_repeated_keys_do_not_push_out_the_line_at_fault(
    pod: Pod, running: subprocess.Popen[str]
):
    remarks = "".join(
        f'echo "error: {key} 1 specified more than once, latest value used"\n'
        for key in ("AuthInfo", "AuthAltParameters", "SlurmctldParameters")
    )
    pod.slurmctld(f'echo "error: Parsing error: Bogus=1"\n{remarks}echo "fatal: no"\nexit 1\n')
    pod.candidate.write("bad")
    (line,) = lines_until(running, "tried")
    assert line.endswith("refused: error: Parsing error: Bogus=1 / fatal: no")


def test_a_container_that_starts_again_logs_what_it_knows(pod: Pod):
    pod.slurmctld('echo "fatal: no"\nexit 1\n')
    pod.candidate.write("bad")
    for _ in range(2):
        process = pod.start()
        lines = lines_until(process, "tried")
        assert lines[1] == f"penstock: effective {hash_of('first')}"
        assert lines[-1] == f"penstock: tried {hash_of('bad')} refused: fatal: no"
        process.terminate()
        assert process.wait() == 0
        process.communicate()
        pod.slurmctld(RUNS)


def test_a_rejected_reconfigure_is_reported_with_the_words_of_a_trial_and_can_be_put_back(
    pod: Pod, running: subprocess.Popen[str]
):
    """slurmctld refuses files with which a trial started: another one says why."""
    pod.reject(REFUSED)
    once = pod.state / "once"
    pod.slurmctld(
        f'[ -e {once} ] || {{ touch {once}; {RUNS} }}\necho "fatal: no such plugin"\nexit 1\n'
    )
    pod.etc.write("bad")
    lines_until(running, f"penstock: refused {hash_of('bad')}: fatal: no such plugin")
    assert pod.calls.read_text()
    pod.etc.write("first")
    lines_until(running, f"effective {hash_of('first')}")
    pod.answer.unlink()
    pod.slurmctld(RUNS)
    pod.etc.write("good")
    lines_until(running, f"effective {hash_of('good')}")


def test_files_that_no_trial_started_with_never_get_to_the_slurmds(
    pod: Pod, running: subprocess.Popen[str]
):
    """A user's ConfigMap is in /etc/slurm without the operator; slurmctld would send it around."""
    pod.slurmctld('echo "fatal: bad cgroup.conf"\nexit 1\n')
    pod.etc.write("bad")
    lines_until(running, f"penstock: refused {hash_of('bad')}: fatal: bad cgroup.conf")
    assert not pod.calls.read_text()
    pod.slurmctld(RUNS)
    pod.etc.write("good")
    lines_until(running, f"effective {hash_of('good')}")
    assert pod.calls.read_text()


def test_files_that_a_trial_of_the_candidates_took_are_not_tried_again(
    pod: Pod, running: subprocess.Popen[str]
):
    pod.candidate.write("second")
    lines_until(running, f"tried {hash_of('second')} ok")
    pod.slurmctld('echo "fatal: asked again"\nexit 1\n')
    pod.etc.write("second")
    lines_until(running, f"effective {hash_of('second')}")


def test_a_rejection_while_the_files_are_exchanged_is_no_rejection_of_either(
    pod: Pod, running: subprocess.Popen[str]
):
    """slurmctld read the files of before, of after, or none: it is asked again."""
    pod.program(
        "scontrol",
        f"echo x >>{pod.calls}\n"
        f"[ $(wc -l <{pod.calls}) = 1 ] || exit 0\n"
        f"until grep -q third {pod.etc.path}/slurm.conf; do sleep 0.01; done\n"
        "echo 'fatal: Unable to find slurm.conf file'\nexit 1\n",
    )
    pod.etc.write("second")
    until(lambda: bool(pod.calls.read_text()))
    pod.etc.write("third")
    lines = lines_until(running, f"effective {hash_of('third')}")
    assert not any("refused" in line for line in lines)


def test_a_trial_of_files_that_are_exchanged_meanwhile_is_made_again(
    pod: Pod, running: subprocess.Popen[str]
):
    """A copy that has files of two generations, or lacks some, tells nothing of either."""
    going, go = pod.state / "going", pod.state / "go"
    cp = shutil.which("cp")
    pod.program(
        "cp",
        f'touch {going}\nuntil [ -e {go} ]; do sleep 0.01; done\nexec {cp} "$@"\n',
    )
    pod.slurmctld('grep -q second "$last" && { echo "fatal: no"; exit 1; }\n' + RUNS)
    pod.candidate.write("second")
    until(going.exists)
    pod.candidate.write("third")
    go.touch()
    lines = lines_until(running, f"tried {hash_of('third')} ok")
    assert not any("refused" in line or hash_of("second") in line for line in lines)


def test_a_slurmctld_that_is_away_is_no_rejection(pod: Pod, running: subprocess.Popen[str]):
    pod.reject(AWAY)
    pod.etc.write("second")
    lines_until(running, f"penstock: waits {hash_of('second')}: {AWAY}")
    pod.answer.unlink()
    assert not any(
        "refused" in line for line in lines_until(running, f"effective {hash_of('second')}")
    )


def test_a_slurmctld_that_was_away_is_asked_to_read_what_it_had(
    pod: Pod, running: subprocess.Popen[str]
):
    """It may have started with the files between, and nobody would see that it did."""
    pod.reject(AWAY)
    pod.etc.write("second")
    lines_until(running, "penstock: waits")
    before = pod.calls.read_text().count("x")
    pod.candidate.write("first", live=hash_of("first"))
    pod.etc.write("first")
    pod.answer.unlink()
    lines_until(running, f"effective {hash_of('first')}")
    assert pod.calls.read_text().count("x") > before


def test_a_reconfigure_that_is_asked_for_is_done_once(pod: Pod, running: subprocess.Popen[str]):
    pod.candidate.write("first", reconfigure="now")
    lines_until(running, "penstock: reconfigured now ok")
    pod.reject("slurm_reconfigure error: no")
    pod.candidate.write("first", reconfigure="again")
    lines_until(running, "penstock: reconfigured again refused: slurm_reconfigure error: no")
    pod.etc.write("second", live="x")
    pod.answer.unlink()
    lines_until(running, f"effective {hash_of('second')}")
    assert pod.calls.read_text().count("x") >= 3
    assert (pod.state / "asked").read_text() == "again"


def test_the_side_container_ends_when_asked(running: subprocess.Popen[str]):
    running.terminate()
    assert running.wait() == 0


def test_log_lines_come_out_of_the_pipe_and_go_on_after_the_daemon_restarts(tmp_path: Path):
    log = tmp_path / "slurmctld.log"
    process = subprocess.Popen(
        ["sh", "-c", script("logfile")],
        env={"PATH": os.environ["PATH"], "SOCKET": str(log)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    while not log.is_fifo():
        assert process.poll() is None
    for line in ("one\n", "two\n"):
        with log.open("a") as daemon:
            daemon.write(line)
        assert process.stdout.readline() == line
    process.terminate()
    process.communicate()
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("state", "updates"), [("IDLE", 1), ("ALLOCATED+DRAIN", 0), ("IDLE+DRAIN+DYNAMIC_NORM", 0)]
)
def test_a_worker_that_goes_is_set_down_unless_it_drains(state: str, updates: int, tmp_path: Path):
    """D9, D10."""
    scontrol = tmp_path / "scontrol"
    calls = tmp_path / "calls"
    calls.touch()
    scontrol.write_text(
        f'#!/bin/sh\necho "$@" >> {calls}\n'
        f'[ "$1" = show ] && printf "NodeName=x\\n   State={state} Reason=DRAIN\\n"\nexit 0\n'
    )
    scontrol.chmod(0o755)
    subprocess.run(
        ["sh", "-c", script("prestop")],
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}"},
        check=True,
    )
    lines = [line for line in calls.read_text().splitlines() if line.startswith("update")]
    assert len(lines) == updates
    if updates:
        assert lines[0].endswith("state=down reason=slurm-operator: Pod is terminating")


def test_a_worker_whose_slurmctld_went_first_ends_without_a_failed_hook(tmp_path: Path):
    scontrol = tmp_path / "scontrol"
    scontrol.write_text("#!/bin/sh\necho 'Unable to contact slurm controller' >&2\nexit 1\n")
    scontrol.chmod(0o755)
    subprocess.run(
        ["sh", "-c", script("prestop")],
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}"},
        check=True,
    )


@pytest.mark.parametrize("name", ["reconfigure", "logfile", "initconf", "prestop"])
def test_kubernetes_expands_nothing_in_the_scripts(name: str):
    assert "$$" not in script(name)
