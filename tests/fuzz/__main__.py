"""`make fuzz`: give each target inputs that reach new code, for a time or a number of inputs.

Each target has a process of its own, as libFuzzer ends its process at a fault. An input that
found one is kept below tests/fuzz/corpus/<target>, and a unit test plays it from then on.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import atheris

CORPUS = Path(__file__).parent / "corpus"
SLOWEST_S, MOST_MIB = 20, 1024
"""libFuzzer's own bounds for one input, in seconds of the clock, and for the process."""
_DONE = re.compile(r"Done (\d+) (?:runs )?in")
_STATE = re.compile(r"#(\d+)\s+\w+\s+cov: (\d+) ft: (\d+) corp: (\d+)")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one target."""

    target: str
    executions: int
    coverage: int
    inputs: int
    finding: str = ""
    """The last words of the process, when it found a fault."""

    def __str__(self) -> str:
        told = f"{self.target:15} {self.executions:>9} inputs, {self.coverage:>5} branches"
        return f"{told}, {self.inputs:>5} kept{f': FAULT {self.finding}' if self.finding else ''}"


def main() -> int:
    """Fuzz; 1 when a target has a fault."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", help="names; all without one")
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--runs", type=int, default=-1, help="inputs for each target, at most")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", help=argparse.SUPPRESS)
    options, rest = parser.parse_known_args()
    if options.only:
        _fuzz(options.only, [*options.targets, *rest])
        return 0
    found = [
        _run(one, options.seconds, options.runs, options.seed)
        for one in options.targets or sorted(_names())
    ]
    return 1 if any(one.finding for one in found) else 0


def _names() -> list[str]:
    from fuzz.targets import TARGETS

    return [one.name for one in TARGETS]


def _run(target: str, seconds: int, runs: int, seed: int) -> Outcome:
    # What is fuzzed is instrumented when it is imported, so the other process imports none of it.
    from fuzz.seeds import seeds

    kept = CORPUS / target
    kept.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="penstock-fuzz-") as name:
        grown = Path(name) / "grown"
        grown.mkdir()
        for number, content in enumerate(seeds(target)):
            (grown / f"seed-{number}").write_bytes(content)
        words = Path(name) / "words"
        words.write_text(_dictionary(target), encoding="utf-8")
        done = subprocess.run(
            [
                *(sys.executable, "-m", "fuzz", "--only", target, str(grown), str(kept)),
                f"-max_total_time={seconds}",
                f"-runs={runs}",
                f"-seed={seed}",
                f"-timeout={SLOWEST_S}",
                f"-rss_limit_mb={MOST_MIB}",
                f"-dict={words}",
                f"-artifact_prefix={kept}/fault-",
                "-print_final_stats=1",
                "-max_len=65536",
            ],
            cwd=Path(__file__).parents[1],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    outcome = _outcome(target, done.returncode, done.stdout + done.stderr)
    sys.stdout.write(f"{outcome}\n")
    sys.stdout.flush()
    return outcome


def _outcome(target: str, status: int, log: str) -> Outcome:
    states = _STATE.findall(log)
    ended = _DONE.findall(log)
    executions = int(ended[-1]) if ended else int(states[-1][0]) if states else 0
    coverage, inputs = (int(states[-1][1]), int(states[-1][3])) if states else (0, 0)
    if status == 0:
        return Outcome(target, executions, coverage, inputs)
    lines = [one for one in log.splitlines() if one.strip()]
    errors = [one for one in lines if re.match(r"[\w.]+(Error|Exception)\b|ALARM|==\d+==", one)]
    artifact = next((one.rpartition(" ")[2] for one in lines if "Test unit written" in one), "")
    return Outcome(
        target, executions, coverage, inputs, f"{(errors or lines or ['?'])[0]} {artifact}"
    )


def _dictionary(target: str) -> str:
    """libFuzzer's form of a target's words. Source: llvm.org/docs/LibFuzzer.html, Dictionaries."""
    from fuzz.targets import TARGETS

    (one,) = (one for one in TARGETS if one.name == target)
    escaped = ("".join(f"\\x{byte:02x}" for byte in word.encode()) for word in one.words)
    return "".join(f'"{word}"\n' for word in escaped)


def _fuzz(target: str, arguments: list[str]) -> None:
    # It has no types.
    with cast("Any", atheris).instrument_imports(include=["penstock"]):
        from fuzz.targets import TARGETS
    (one,) = (one for one in TARGETS if one.name == target)
    atheris.Setup([sys.argv[0], *arguments], one)
    atheris.Fuzz()


if __name__ == "__main__":
    sys.exit(main())
