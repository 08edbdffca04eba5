"""Quick checks drain no more than a share of the cluster's nodes."""

from __future__ import annotations

import json

import pytest

from support.check_worker import Worker

FAIL = json.dumps([{"name": "fan", "command": "echo slow >&3; false", "on_fail": "drain"}])
REASON = "[node_problem] fan: slow [hc_program]"
OTHER = "[user_problem] boot_disk_full: 88 % [hc_program]"
EARLIER, LATER = "[root@2025-12-31T23:59:59]", "[root@2026-01-01T00:00:01]"
"""Before and after the time at which the stand-in of scontrol drains this node."""


def test_a_node_above_the_share_stays_in_service_and_its_job_runs(worker: Worker) -> None:
    worker.configure(FAIL)
    worker.others(f"{OTHER} {EARLIER}", idle=8)
    for context in ("hc_program", "prolog"):
        done = worker.run(context)
        assert (done.returncode, done.stdout) == (0, "")
        assert (worker.state, worker.reason) == ("IDLE", "")
        words = "checks have drained 1 Slurm nodes, and at most 1 may be"
        assert f"postponed: [node_problem] fan: slow [{context}]: {words}" in worker.log


def test_the_next_node_is_drained_once_one_is_repaired(worker: Worker) -> None:
    worker.configure(FAIL)
    worker.others(f"{OTHER} {EARLIER}")
    worker.run("hc_program")
    assert worker.state == "IDLE"
    worker.others(idle=1)
    worker.run("hc_program")
    assert worker.reason == REASON


@pytest.mark.parametrize(
    ("meanwhile", "is_drained"),
    [
        (f"{OTHER} {EARLIER}", False),
        (f"{OTHER} {LATER}", True),
        (f"[node_problem] gpu-checks: job 7 [slurm_job] {LATER}", False),
        (f"bad cable {EARLIER}", True),
    ],
)
def test_of_nodes_that_drain_at_once_the_first_stays_drained(
    worker: Worker, meanwhile: str, is_drained: bool
) -> None:
    """The operator does not query again, so its drain comes first."""
    worker.configure(FAIL)
    worker.others(idle=1, meanwhile=meanwhile)
    worker.run("hc_program")
    assert worker.state == ("IDLE+DRAIN" if is_drained else "IDLE")
    assert ("postponed" in worker.log) is not is_drained


def test_drains_of_users_take_no_room(worker: Worker) -> None:
    worker.configure(FAIL)
    worker.others(f"bad cable {EARLIER}", "update [slurm@2026-01-01T00:00:00]")
    worker.run("hc_program")
    assert worker.reason == REASON


@pytest.mark.parametrize("file", ["etc/slurm/slurm_base.conf.noedit", "run/slurm/conf/slurm.conf"])
def test_slurm_conf_has_the_declared_share(worker: Worker, file: str) -> None:
    worker.configure(FAIL)
    worker.others(f"{OTHER} {EARLIER}", idle=2)
    worker.file(file, "ClusterName=slurm\n# Checks may drain: 50%\n")
    worker.run("hc_program")
    assert worker.reason == REASON


def test_a_healthy_node_does_not_ask_for_all_nodes(worker: Worker) -> None:
    worker.configure(json.dumps([{"name": "fan", "command": "true", "on_ok": "undrain"}]))
    for _ in range(3):
        worker.run("hc_program")
    assert "show node" not in worker.calls
