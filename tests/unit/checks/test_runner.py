"""The runner of checks: which run where, what becomes of their results, and what never happens."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from support.check_worker import CHECKS, Worker

FAIL = {"name": "fan", "command": "echo slow >&3; false", "on_fail": "drain"}
PASS = {"name": "fan", "command": "true", "on_ok": "undrain"}
REASON = "[node_problem] fan: slow [hc_program]"


def entries(*given: dict[str, Any]) -> str:
    return json.dumps(list(given))


def test_a_failure_drains_and_its_repair_undrains(worker: Worker) -> None:
    worker.configure(entries(FAIL))
    assert worker.run("hc_program").returncode == 0
    assert (worker.state, worker.reason) == ("IDLE+DRAIN", REASON)
    assert f"drain: {REASON}" in worker.log
    worker.configure(entries(PASS))
    worker.run("hc_program")
    assert (worker.state, worker.reason) == ("IDLE", "")
    assert "undrained the node" in worker.log


def test_a_failed_prolog_requeues_its_job_and_other_contexts_fail_none(worker: Worker) -> None:
    worker.configure(entries(FAIL))
    done = worker.run("prolog")
    assert done.returncode == 1
    assert done.stdout == "print node worker-0 failed [node_problem] fan: slow\n"
    assert worker.reason == "[node_problem] fan: slow [prolog]"
    assert worker.run("epilog").returncode == 0


@pytest.mark.parametrize("reason", ["bad cable", "[node_problem] fan: by hand", ""])
def test_a_users_drain_is_never_touched(worker: Worker, reason: str) -> None:
    worker.drain(reason)
    for check in (PASS, FAIL):
        worker.configure(entries(check))
        worker.run("hc_program")
        assert (worker.state, worker.reason) == ("IDLE+DRAIN", reason)


def test_only_the_health_check_undrains(worker: Worker) -> None:
    worker.drain(REASON)
    worker.configure(entries(PASS))
    for context in ("prolog", "epilog"):
        worker.run(context)
        assert worker.reason == REASON


def test_a_healthy_node_asks_slurmctld_once(worker: Worker) -> None:
    """A thousand workers would ask it eight times a second otherwise."""
    worker.configure(entries(PASS, {**PASS, "node_states": ["drain"]}))
    for _ in range(3):
        worker.run("hc_program")
    assert worker.calls == ["show node worker-0"]
    worker.run("prolog")
    assert worker.calls == ["show node worker-0"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "line 1 column 2: no JSON: Expecting property name enclosed in double quotes"),
        ("{}", "expected a list of checks, found an object"),
        ("[1]", "[0]: expected an object, found a number"),
        ('[{"name": "a", "colour": 1}]', "[0] (a).colour: unknown key, expected one of name, "),
        ('[{"on_fail": "reboot"}]', "found 'reboot', expected one of none, drain, comment"),
        ('[{"contexts": "any"}]', "expected a list of strings, found a string"),
        ('[{"contexts": ["job"]}]', "found 'job', expected some of prolog, epilog, hc_program"),
        ('[{"log": "../x"}]', "expected a path below the folder of outputs, found '../x'"),
        ('[{"on_fail": "drain", "reason_base": " "}]', "it is empty, so its drain has no mark"),
        ("[" * 100000, "nested too deeply"),
        ('[{"run_in_jail": 1}]', "[0] (noname).run_in_jail: expected true or false, found"),
    ],
)
def test_a_broken_configuration_is_logged_and_nothing_else(
    worker: Worker, text: str, words: str
) -> None:
    worker.configure(text)
    for context in ("prolog", "epilog", "hc_program"):
        assert worker.run(context).returncode == 0
        assert words in worker.output(context)
    assert words in worker.log
    assert "no check runs until it is fixed" in worker.log
    assert (worker.state, worker.calls) == ("IDLE", [])


def test_an_absent_configuration_is_logged(worker: Worker) -> None:
    assert worker.run("prolog").returncode == 0
    assert "checks.json: file not found" in worker.log


def test_checks_after_a_failure_do_not_run(worker: Worker) -> None:
    late = {"name": "late", "command": "touch $CHECKS_ROOT/late"}
    worker.configure(entries({**FAIL, "on_fail": "none"}, late))
    worker.run("hc_program")
    assert not (worker.root / "late").exists()
    assert worker.state == "IDLE"


def test_a_job_may_have_no_checks_by_its_comment(worker: Worker) -> None:
    worker.configure(entries(FAIL))
    assert worker.run("prolog", SLURM_JOB_COMMENT="skip_checks").returncode == 0
    assert worker.run("prolog", SLURM_JOB_COMMENT="skip_checks please").returncode == 1


@pytest.mark.parametrize(
    ("check", "context", "job", "why"),
    [
        ({"contexts": ["epilog"]}, "prolog", "", "it runs in epilog"),
        ({"contexts": ["none"]}, "hc_program", "", "it runs in none"),
        ({"skip_for_cpu_jobs": True}, "prolog", "", "the job has no GPU"),
        ({"platforms": ["8xH200"]}, "epilog", "0", "the node is 8xH100, 8xGPU, not 8xH200"),
        ({"skip_for_partial_gpu_jobs": True}, "prolog", "0,1", "the job has 2 of 8 GPUs"),
        ({"node_states": ["drain"]}, "prolog", "", "the node is not drained"),
        ({"run_in_jail": True}, "prolog", "", "the jail has no /opt/slurm_scripts"),
    ],
)
def test_a_check_is_skipped_with_the_reason(
    worker: Worker, check: dict[str, Any], context: str, job: str, why: str
) -> None:
    worker.command("nvidia-smi", "NVIDIA H100 80GB HBM3\n" * 8)
    worker.configure(entries({**FAIL, **check}))
    assert worker.run(context, SLURM_JOB_GPUS=job).returncode == 0
    assert "fan skipped (0." in worker.output(context)
    assert why in worker.output(context)
    assert worker.state == "IDLE"


def test_filters_that_no_check_needs_start_no_program(worker: Worker) -> None:
    worker.command("nvidia-smi")
    (worker.bin / "nvidia-smi").write_text('#!/bin/sh\ntouch "$CHECKS_ROOT/asked"\n')
    worker.configure(entries({**PASS, "on_ok": "none"}, {"platforms": ["8xH100"], "contexts": []}))
    worker.run("prolog")
    assert not (worker.root / "asked").exists()


def test_a_gpu_that_goes_takes_no_check_with_it(worker: Worker) -> None:
    """Seven of eight would be another platform, and the check that finds it would not run."""
    check = {**FAIL, "platforms": ["8xH100"]}
    worker.command("nvidia-smi", "NVIDIA H100 80GB HBM3\n" * 8)
    worker.configure(entries({**PASS, "on_ok": "none", "platforms": ["8xH100"]}))
    worker.run("hc_program")
    worker.command("nvidia-smi", "NVIDIA H100 80GB HBM3\n" * 7)
    worker.configure(entries(check))
    worker.run("hc_program")
    assert worker.reason == REASON
    worker.command("nvidia-smi", "Unable to determine the device handle", status=15)
    assert "fan failed" in worker.output("hc_program")


def test_a_check_without_a_result_is_ended_and_drains_nothing(
    worker: Worker,
) -> None:
    """Slurm's sixty seconds of HealthCheckProgram would end the runner itself."""
    worker.seconds = 0.5
    worker.configure(entries({**FAIL, "command": "sleep 60 & wait"}))
    began = time.monotonic()
    done = worker.run("hc_program")
    assert time.monotonic() - began < 5
    assert done.returncode == 0
    assert "no result in 0." in worker.output("hc_program")
    assert worker.state == "IDLE"


def test_a_command_that_is_absent_is_no_failure(worker: Worker) -> None:
    worker.configure(entries({**FAIL, "command": "./absent.sh"}))
    assert worker.run("prolog").returncode == 0
    assert "fan: the command cannot be run: ./absent.sh" in worker.log
    assert worker.state == "IDLE"


def test_a_silent_slurmctld_is_logged(worker: Worker) -> None:
    (worker.node / "refuse").touch()
    worker.configure(entries(FAIL))
    assert worker.run("hc_program").returncode == 0
    assert "Unable to contact slurm controller" in worker.log


def test_facts_are_given_to_the_checks_that_ask(worker: Worker) -> None:
    asks = ["CHECKS_PLATFORM_TAG", "CHECKS_NODE_STATE_FLAGS", "CHECKS_NODE_REAL_MEM_BYTES"]
    check = {"command": "env | grep ^CHECKS_[PN] | sort >&3; false", "need_env": asks}
    worker.configure(entries({**check, "on_fail": "drain"}))
    worker.run("hc_program")
    found = "CHECKS_NODE_REAL_MEM_BYTES=4294967296 CHECKS_NODE_STATE_FLAGS=IDLE"
    assert found in worker.reason
    assert "CHECKS_PLATFORM_TAG=CPU" in worker.reason
    worker.file("run/soperator/node_metadata.env", "SOPERATOR_NODE_REAL_MEMORY_BYTES=7\n")
    worker.drain("")
    worker.run("hc_program")


def test_output_of_a_check_is_in_its_file_and_no_link_is_followed(worker: Worker) -> None:
    worker.configure(entries({"name": "talk", "command": "echo out; echo err >&2"}))
    worker.run("epilog")
    folder = worker.root / "mnt/jail/opt/soperator-outputs/local/slurm_scripts"
    assert (folder / "worker-0.talk.epilog.out").read_text() == "out\nerr\n"
    victim = worker.file("victim", "kept")
    (folder / "worker-0.talk.epilog.out").unlink()
    (folder / "worker-0.talk.epilog.out").symlink_to(victim)
    assert worker.run("epilog").returncode == 0
    assert victim.read_text() == "kept"


def test_details_are_one_line_without_quotes(worker: Worker) -> None:
    words = {**FAIL, "command": """printf 'a "b"\\n\\tc' >&3; false"""}
    worker.configure(entries(words))
    worker.run("hc_program")
    assert worker.reason == "[node_problem] fan: a 'b' c [hc_program]"


@pytest.mark.parametrize("path", sorted((CHECKS / "entries").glob("*.json")), ids=lambda p: p.stem)
def test_the_reader_accepts_each_shipped_entry(worker: Worker, path: Any) -> None:
    worker.shipped(path.stem)
    assert worker.run("epilog", SLURM_JOB_ID="1").returncode == 0
    assert worker.log == ""


def test_the_images_configuration_is_the_catalogue() -> None:
    found = [json.loads(path.read_text()) for path in sorted((CHECKS / "entries").glob("*.json"))]
    shipped = [one for one in found if one["name"] != "nvme_raid_health"]
    assert json.loads((CHECKS / "checks.json").read_text()) == shipped


OPERATORS = '{"pod":"worker-0","node":"machine-0"}'
COMMENTS = {"name": "fan", "command": "echo slow >&3; false", "on_fail": "comment"}


def test_a_comment_stands_beside_the_operators_own(worker: Worker) -> None:
    (worker.node / "comment").write_text(OPERATORS)
    worker.configure(entries(COMMENTS))
    worker.run("hc_program")
    found = json.loads((worker.node / "comment").read_text())
    assert found == {**json.loads(OPERATORS), "check": REASON}
    worker.configure(entries({"name": "fan", "command": "true", "on_ok": "uncomment"}))
    worker.run("hc_program")
    assert (worker.node / "comment").read_text() == OPERATORS


def test_the_operators_comment_costs_no_further_question(worker: Worker) -> None:
    (worker.node / "comment").write_text(OPERATORS)
    worker.configure(entries(PASS))
    for _ in range(3):
        worker.run("hc_program")
    assert worker.calls == ["show node worker-0"]
