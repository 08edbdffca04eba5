"""What readers of strangers' texts were given once, and a short search for more."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from fuzz.seeds import seeds
from fuzz.targets import TARGETS, SlowError, Target

CORPUS = Path(__file__).parents[2] / "fuzz/corpus"
INPUTS = [
    pytest.param(one, file, id=f"{one.name}-{file.name}")
    for one in TARGETS
    for file in sorted((CORPUS / one.name).glob("*"))
]
SHORT_RUNS = 300


@pytest.mark.parametrize(("target", "file"), INPUTS)
def test_an_input_that_found_a_fault_finds_none_any_more(target: Target, file: Path) -> None:
    target(file.read_bytes())


@pytest.mark.parametrize("target", TARGETS, ids=lambda one: one.name)
def test_what_users_and_daemons_write_is_read(target: Target) -> None:
    every = seeds(target.name)
    assert every
    for one in every:
        target(one)


def test_each_folder_of_the_corpus_has_a_target() -> None:
    assert {one.name for one in CORPUS.iterdir()} <= {one.name for one in TARGETS}


def test_a_fault_and_a_slow_input_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(data: bytes) -> None:
        raise ValueError(data)

    with pytest.raises(ValueError, match="x"):
        Target("broken", broken, ())(b"x")
    monkeypatch.setattr("fuzz.targets.LIMIT_S", 0.0)
    with pytest.raises(SlowError, match="CPU-seconds for 1 bytes"):
        Target("slow", lambda _: time.thread_time(), ())(b"x")


def test_a_short_search_finds_no_fault() -> None:
    pytest.importorskip("atheris", reason="there is none for this Python")
    done = subprocess.run(
        [sys.executable, "-m", "fuzz", "--runs", str(SHORT_RUNS), "--seconds", "20"],
        cwd=CORPUS.parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == len(TARGETS)
    assert all(" 0 inputs" not in line for line in lines)
