"""The program of checks in Slurm jobs: which nodes get a job, and what it reports. S113."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from types import ModuleType

import msgspec
import pytest

from penstock.api.kubernetes.kinds import Pod as KubePod
from penstock.decide.check.submission import reported

CHECK = "gpu-checks"
MARK = f"[node_problem] {CHECK}: job 5 [slurm_job] [root@2026-11-26T12:00:00]"
STAND_IN = f"""#!{sys.executable}
import os, sys
folder = os.path.dirname(sys.argv[0])
name = os.path.basename(sys.argv[0])
with open(os.path.join(folder, "calls"), "a") as calls:
    print(name, *sys.argv[1:], file=calls)
if name == "sbatch":
    if any(one.endswith("=worker-9") for one in sys.argv):
        sys.exit("sbatch: error: Requested node configuration is not available")
    count = open(os.path.join(folder, "calls")).read().count("\\nsbatch ")
    print(100 + count)
elif sys.argv[1:3] == ["show", "node"]:
    print(open(os.path.join(folder, "nodes")).read())
elif sys.argv[1:3] == ["show", "reservation"]:
    path = os.path.join(folder, "reservations")
    print(open(path).read() if os.path.exists(path) else "No reservations in the system")
elif sys.argv[1:] == ["--version"]:
    print("slurm-wlm", os.environ.get("RELEASE", "26.05.2"))
elif sys.argv[1:3] == ["show", "partition"]:
    sys.exit("slurm_load_partitions error: Invalid partition name specified")
"""


def line(
    name: str, state: str = "IDLE+DYNAMIC_NORM", gres: str = "(null)", reason: str = ""
) -> str:
    words = f"   Reason={reason}\n" if reason else ""
    return (
        f"NodeName={name} Arch=x86_64 \n   Gres={gres}\n   State={state} Weight=1 \n"
        f'   Partitions=main,all \n   Comment={{"drain":"State=DOWN"}}\n{words}'
    )


@dataclass
class Pod:
    """The container of a check, with stand-ins for Slurm's commands."""

    module: ModuleType
    folder: Path

    def run(self, *nodes: str) -> int:
        (self.folder / "nodes").write_text("\n".join(nodes))
        return self.module.main()

    @property
    def report(self) -> str:
        return (self.folder / "report").read_text()

    def calls(self, word: str) -> list[str]:
        lines = (self.folder / "calls").read_text().splitlines()
        return [one for one in lines if word in one]


@pytest.fixture
def pod(jail_check: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pod:
    for name in ("sbatch", "scontrol", "scancel"):
        program = tmp_path / name
        program.write_text(STAND_IN)
        program.chmod(0o755)
    (tmp_path / "calls").write_text("\n")
    script = tmp_path / "sbatch.sh"
    script.write_text("#!/bin/bash\ntrue\n")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("ACTIVE_CHECK_NAME", CHECK)
    monkeypatch.setenv("EACH_WORKER_JOBS", "true")
    monkeypatch.setattr(jail_check, "SCRIPT", script)
    monkeypatch.setattr(jail_check, "REPORT", tmp_path / "report")
    monkeypatch.setattr(jail_check, "PAUSE_SECONDS", 0)
    monkeypatch.setattr(jail_check, "start_sackd", lambda: None)
    monkeypatch.setattr(jail_check.jail, "JAIL", tmp_path / "jail")
    monkeypatch.setattr(jail_check.jail, "wait_for_configuration", lambda: None)
    return Pod(jail_check, tmp_path)


def test_each_worker_that_takes_jobs_gets_one(pod: Pod) -> None:
    out = ("IDLE+DRAIN", "DOWN*", "IDLE+NOT_RESPONDING", "IDLE+POWERED_DOWN", "MIXED+RESERVED")
    nodes = [line(f"out-{number}", state) for number, state in enumerate(out)]
    assert pod.run(line("worker-0"), line("worker-1", "MIXED"), *nodes) == 0
    submitted = pod.calls("sbatch --parsable")
    assert ["--nodelist=worker-0" in submitted[0], "--nodelist=worker-1" in submitted[1]] == [
        True,
        True,
    ]
    assert len(submitted) == 2
    assert all(f"--job-name={CHECK}" in one and "--no-requeue" in one for one in submitted)
    assert pod.report.startswith("slurm-job-id=101-102\n")
    assert pod.calls("scancel") == [f"scancel --name={CHECK} --state=PENDING"]


def test_one_job_is_submitted_without_a_node(pod: Pod, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EACH_WORKER_JOBS")
    assert pod.run(line("worker-0")) == 0
    (submitted,) = pod.calls("sbatch --parsable")
    assert "--nodelist" not in submitted
    assert pod.report == "slurm-job-id=101\n\n"


def test_a_limited_run_has_no_more_jobs(pod: Pod, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACTIVE_CHECK_MAX_NUMBER_OF_JOBS", "2")
    assert pod.run(*(line(f"worker-{number}") for number in range(5))) == 0
    assert len(pod.calls("sbatch --parsable")) == 2


@pytest.mark.parametrize("gres", ["(null)", "nic:2"])
def test_a_check_of_gpus_is_skipped_where_no_node_has_any(
    pod: Pod, monkeypatch: pytest.MonkeyPatch, gres: str
) -> None:
    """D57."""
    monkeypatch.setenv("SBATCH_GPUS_PER_NODE", "8")
    assert pod.run(line("worker-0", gres=gres)) == 0
    assert pod.report.startswith("slurm-skipped-reason=the script asks for GPUs")
    assert not pod.calls("sbatch")


@pytest.mark.parametrize(
    "option", ["--gpus=8", "--gpus-per-node 8", "--gres=gpu:8", "-G 8", "--gres gpu:h100:8"]
)
def test_nodes_without_gpus_get_no_job_of_a_check_of_gpus(pod: Pod, option: str) -> None:
    (pod.folder / "sbatch.sh").write_text(f"#!/bin/bash\n#SBATCH {option}\ntrue\n")
    assert pod.run(line("worker-0"), line("gpu-0", gres="gpu:h100:8(S:0)")) == 0
    (submitted,) = pod.calls("sbatch --parsable")
    assert "--nodelist=gpu-0" in submitted


def test_a_node_that_the_check_drained_gets_a_job_in_a_reservation(pod: Pod) -> None:
    drained = "IDLE+DRAIN+DYNAMIC_NORM"
    others = [
        line("user-0", drained, reason="bad cable [root@2026-11-26T12:00:00]"),
        line("net-0", drained, reason=MARK.replace(CHECK, "net-checks")),
        line("busy-0", "MIXED+DRAIN", reason=MARK),
        line("down-0", "DOWN+DRAIN", reason=MARK),
    ]
    assert pod.run(line("worker-0", drained, reason=MARK), *others) == 0
    name = f"activecheck.{CHECK}.worker-0"
    calls = pod.calls("")
    made = next(at for at, one in enumerate(calls) if "create reservation" in one)
    resumed = next(at for at, one in enumerate(calls) if "state=resume" in one)
    assert made < resumed
    assert f"reservationname={name}" in calls[made]
    assert "nodename=worker-0 state=resume" in calls[resumed]
    (submitted,) = pod.calls("sbatch --parsable")
    assert f"--nodelist=worker-0 --reservation={name}" in submitted


@pytest.mark.parametrize(
    ("release", "kind"), [("24.11.5", "purge_comp=00:05:00"), ("25.05.0", "maint")]
)
def test_a_reservation_ends_by_itself_where_the_operator_cannot_end_it(
    pod: Pod, monkeypatch: pytest.MonkeyPatch, release: str, kind: str
) -> None:
    """Seen with Slurm 24.11: its slurmrestd deletes none, and the node never came back."""
    monkeypatch.setenv("RELEASE", release)
    assert pod.run(line("worker-0", "IDLE+DRAIN+DYNAMIC_NORM", reason=MARK)) == 0
    (made,) = pod.calls("create reservation")
    assert made.endswith(f"flags={kind},ignore_jobs")


def test_a_run_for_one_node_leaves_the_others_and_their_jobs(
    pod: Pod, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S174."""
    monkeypatch.setenv("ACTIVE_CHECK_NODE", "worker-0")
    drained = "IDLE+DRAIN+DYNAMIC_NORM"
    nodes = [line(f"worker-{number}", drained, reason=MARK) for number in range(2)]
    assert pod.run(*nodes, line("worker-2")) == 0
    (submitted,) = pod.calls("sbatch --parsable")
    assert "--nodelist=worker-0 " in submitted
    assert not pod.calls("scancel")
    assert not pod.calls("nodename=worker-1")


def test_the_reservation_of_an_earlier_run_is_used_again_and_others_are_not(pod: Pod) -> None:
    """Seen with Slurm 26.05: the next run began before the operator had ended the reservation."""
    state = "IDLE+DRAIN+MAINTENANCE+RESERVED+DYNAMIC_NORM"
    name = f"activecheck.{CHECK}.worker-0"
    (pod.folder / "reservations").write_text(f"ReservationName={name} StartTime=x\n")
    nodes = [line(f"worker-{number}", state, reason=MARK) for number in range(2)]
    assert pod.run(*nodes) == 0
    (submitted,) = pod.calls("sbatch --parsable")
    assert f"--nodelist=worker-0 --reservation={name}" in submitted
    assert not pod.calls("create reservation")
    assert len(pod.calls("state=resume")) == 1


def test_a_drained_node_that_the_reaction_reserved_as_well_is_tried_again(
    pod: Pod, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a check with both reactions would never take its drain back."""
    monkeypatch.setenv("ACTIVE_CHECK_FAILURE_PREFIX", "suspicious")
    state = "IDLE+DRAIN+MAINTENANCE+RESERVED+DYNAMIC_NORM"
    (pod.folder / "reservations").write_text("ReservationName=suspicious-worker-1 StartTime=x\n")
    nodes = [line(f"worker-{number}", state, reason=MARK) for number in (1, 10)]
    assert pod.run(*nodes) == 0
    (submitted,) = pod.calls("sbatch --parsable")
    name = f"activecheck.{CHECK}.worker-1"
    assert f"--nodelist=worker-1 --reservation={name}" in submitted
    (made,) = pod.calls("create reservation")
    assert f"reservationname={name} " in made


def test_a_reservation_of_a_node_with_a_longer_name_is_not_that_of_the_node(pod: Pod) -> None:
    """Without its own reservation the resumed node would run the next job of any user."""
    (pod.folder / "reservations").write_text(
        f"ReservationName=activecheck.{CHECK}.worker-10 StartTime=x\n"
    )
    assert pod.run(line("worker-1", "IDLE+DRAIN+DYNAMIC_NORM", reason=MARK)) == 0
    calls = pod.calls("")
    made = next(at for at, one in enumerate(calls) if "create reservation" in one)
    assert made < next(at for at, one in enumerate(calls) if "state=resume" in one)
    assert f"reservationname=activecheck.{CHECK}.worker-1 " in calls[made]


def test_a_node_that_a_reaction_reserved_gets_a_job_in_that_reservation(
    pod: Pod, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise no success would ever end it."""
    monkeypatch.setenv("ACTIVE_CHECK_RESERVATION_PREFIX", "suspicious-node")
    (pod.folder / "reservations").write_text(
        "ReservationName=suspicious-node-worker-1 StartTime=x\n"
        "ReservationName=suspicious-node-worker-2 StartTime=x\n"
        "ReservationName=theirs StartTime=x\n"
    )
    nodes = [
        line("worker-1", "IDLE+MAINTENANCE+RESERVED+DYNAMIC_NORM"),
        line("worker-2", "DOWN+MAINTENANCE+RESERVED+DYNAMIC_NORM"),
        line("worker-3", "IDLE+MAINTENANCE+RESERVED+DYNAMIC_NORM"),
    ]
    assert pod.run(*nodes) == 0
    (submitted,) = pod.calls("sbatch --parsable")
    assert "--nodelist=worker-1 --reservation=suspicious-node-worker-1" in submitted
    assert not pod.calls("create reservation")


def test_a_node_whose_name_has_a_dot_is_not_resumed(pod: Pod) -> None:
    """In the name of its reservation the operator could not separate it from the check."""
    assert pod.run(line("rack.worker-1", "IDLE+DRAIN+DYNAMIC_NORM", reason=MARK)) == 0
    assert not pod.calls("state=resume")


def test_a_node_that_rejects_its_job_fails_the_run_and_no_other_job(pod: Pod) -> None:
    assert pod.run(line("worker-0"), line("worker-9")) == 1
    assert pod.report.startswith("slurm-job-id=101\n")
    assert pod.run(line("worker-9")) == 1
    assert "not available" in pod.report


def test_no_node_is_a_reason_to_skip(pod: Pod) -> None:
    assert pod.run(line("worker-0", "DOWN")) == 0
    assert pod.report == "slurm-skipped-reason=no Slurm node takes jobs now\n"


def test_thousands_of_ids_fit_into_a_termination_message(jail_check: ModuleType) -> None:
    assert jail_check.ranges([5, 7, 8, 9, 12]) == "5,7-9,12"
    assert len(jail_check.ranges(range(10_000))) < 4096


def scattered(count: int) -> list[int]:
    """Ids of jobs between which others submit some."""
    chance = random.Random(1)
    return [*accumulate(chance.randint(2, 4) for _ in range(count))]


def separate(ids: Iterable[int]) -> str:
    return ",".join(map(str, ids))


def test_ids_of_jobs_among_those_of_others_fit_too(jail_check: ModuleType) -> None:
    """The kubelet keeps the last 4096 bytes, which would begin within a list of ids."""
    ids = [1_000_000 + one for one in scattered(5000)]
    text = jail_check.listed(ids)
    assert len(text) <= jail_check.LONGEST_LIST
    ended = {"terminated": {"exitCode": 0, "message": f"slurm-job-id={text}\n\n"}}
    status = {"containerStatuses": [{"name": "check", "state": ended}]}
    found = reported([msgspec.convert({"metadata": {}, "status": status}, KubePod)], "check")
    assert list(found.ids) == ids


def test_a_job_that_has_no_room_in_the_report_is_cancelled(
    pod: Pod, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pod.module, "LONGEST_LIST", len("101"))
    monkeypatch.setattr(pod.module, "ranges", separate)
    assert pod.run(*(line(f"worker-{number}") for number in range(3))) == 1
    assert pod.report.startswith("slurm-job-id=101\n1 of 3 jobs")
    assert pod.calls("scancel")[-1] == "scancel 102"
