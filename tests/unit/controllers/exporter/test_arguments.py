"""Arguments, environment variables and tokens of the exporter."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.controllers.exporter.access import ScontrolTokens, StaticToken
from penstock.controllers.exporter.arguments import parse
from penstock.controllers.exporter.history import Saved
from penstock.controllers.exporter.saved_state import FileState
from penstock.controllers.runtime.arguments import Address
from penstock.simulation.manual_clock import ManualClock
from penstock.slurm.rest.errors import AuthError


def test_arguments_of_the_deployment_and_its_variables():
    found = parse(
        ["--cluster-namespace=ns", "--cluster-name=c", "--slurm-api-server=http://rest:6820"],
        {
            "SLURM_EXPORTER_COLLECTION_INTERVAL": "1d",
            "SLURM_EXPORTER_MAX_COLLECTOR_INFLIGHT": "2",
            "SLURM_EXPORTER_JOB_SOURCE": "accounting",
            "SLURM_EXPORTER_ACCOUNTING_JOBS_LOOKBACK": "1w2d",
            "SLURM_EXPORTER_CLUSTER_NAME": "other",
            "SLURM_EXPORTER_TOKEN": "t",
        },
    )
    assert (found.cluster, found.namespace, found.slurmrestd) == ("c", "ns", "http://rest:6820")
    assert (found.interval_s, found.lookback_s) == (86400, 9 * 86400)
    assert (found.inflight, found.job_source, found.static_token) == (2, "accounting", "t")
    assert (found.metrics, found.monitoring) == (Address(None, 8080), Address(None, 8081))
    assert (found.standalone, found.vpenso_names) == (False, False)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "--cluster-name is required"),
        (["--cluster-name=c", "--collection-interval=0s"], "duration"),
        (["--cluster-name=c", "--max-collector-inflight=0"], "at least 1"),
        (["--cluster-name=c", "--job-source=slurmd"], "slurmd"),
        (["--cluster-name=c", "--metrics-bind-address=x"], "address"),
        (["--cluster-name=c", "--standalone=perhaps"], "true or false"),
    ],
)
def test_a_wrong_argument_is_named(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
):
    with pytest.raises(SystemExit, match="2"):
        parse(arguments, {})
    assert words in capsys.readouterr().err


def test_the_help_shows_no_token(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        parse(
            ["--help"], {f"SLURM_EXPORTER_{name}": "secret" for name in ("TOKEN", "STATIC_TOKEN")}
        )
    assert "secret" not in capsys.readouterr().out


def scontrol(folder: Path, script: str) -> str:
    program = folder / "scontrol"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return str(program)


async def test_a_token_of_scontrol_is_made_again_when_it_is_due(tmp_path: Path):
    count = tmp_path / "count"
    program = scontrol(tmp_path, f'echo x >>{count}; echo "SLURM_JWT=$1.$2.$(wc -l <{count})"')
    clock = ManualClock()
    tokens = ScontrolTokens(clock, program, 1800)
    await tokens.renew()
    await tokens.renew()
    assert tokens.token() == "token.lifespan=2400.1"
    await clock.advance(1800)
    await tokens.renew()
    assert tokens.token() == "token.lifespan=2400.2"


@pytest.mark.parametrize(
    ("script", "words"),
    [("echo no such user >&2; exit 1", "no such user"), ("echo hello", "it printed no token")],
)
async def test_words_of_scontrol_are_reported(tmp_path: Path, script: str, words: str):
    tokens = ScontrolTokens(ManualClock(), scontrol(tmp_path, script), 60)
    with pytest.raises(AuthError, match=words):
        await tokens.renew()


async def test_the_last_token_stays_while_no_new_one_can_be_made(tmp_path: Path):
    program = scontrol(tmp_path, "echo SLURM_JWT=first")
    clock = ManualClock()
    tokens = ScontrolTokens(clock, program, 60)
    await tokens.renew()
    scontrol(tmp_path, "exit 1")
    await clock.advance(60)
    await tokens.renew()
    assert tokens.token() == "first"
    # Once slurmrestd rejected it, it is of no use.
    tokens.expire()
    with pytest.raises(AuthError):
        await tokens.renew()


async def test_a_program_that_is_not_there_is_named():
    with pytest.raises(AuthError, match="/nowhere/scontrol cannot be run"):
        await ScontrolTokens(ManualClock(), "/nowhere/scontrol", 60).renew()
    static = StaticToken(ManualClock(), "t")
    await static.renew()
    assert static.token() == "t"


async def test_durations_in_a_file_outlive_the_process(tmp_path: Path):
    state = FileState(tmp_path / "durations")
    assert await state.load() is None
    saved = Saved()
    saved.unavailable.follow("w-0", 5.0, is_on=True)
    await state.save(saved)
    assert await state.load() == saved
