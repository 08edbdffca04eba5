"""`python -m bench [NAME...]`: measure, and print each figure beside its limit.

With `--check` the exit status is 1 when a figure is over its limit; with `--write` the figures
take the place of those in ranges.json, limits stay.
"""

from __future__ import annotations

import argparse
import datetime
import sys

from bench import machine, ranges, start
from bench.figures import Result
from bench.registry import Bench
from penstock.local.errors import LocalError
from penstock.local.node import Node

BENCHES: tuple[Bench, ...] = (start.BENCH,)
NODE = "bench"


def main() -> int:
    """Run the command; return its exit status."""
    by_name = {bench.name: bench for bench in BENCHES}
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *by_name], metavar="NAME")
    parser.add_argument("--runs", type=int, help="how often each is repeated")
    parser.add_argument("--check", action="store_true", help="fail when a limit is exceeded")
    parser.add_argument("--write", action="store_true", help="keep the figures in ranges.json")
    parser.add_argument(
        "--node", help="use this built-in node and leave it (default: one of its own, taken down)"
    )
    given = parser.parse_args()
    chosen = [by_name[name] for name in given.names] or list(BENCHES)
    node = given.node or NODE
    try:
        return _measure(chosen, node, given.runs, check=given.check, write=given.write)
    except LocalError as error:
        print(error, file=sys.stderr)
        return 2
    finally:
        if not given.node:
            Node(node).down()


def _measure(benches: list[Bench], node: str, runs: int | None, *, check: bool, write: bool) -> int:
    known = ranges.read()
    over: list[str] = []
    for bench in benches:
        number = runs or bench.runs
        load = machine.load()
        result = bench.run(number, node)
        print(f"\n{bench.name}: {bench.title} ({number} runs)\n{_table(known, bench, result)}")
        over += ranges.beyond(known, bench.name, result)
        if write:
            circumstances = {
                "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
                "runs": number,
                "load": [round(load, 1), round(machine.load(), 1)],
                **machine.facts(),
            }
            known = ranges.written(known, bench.name, result, circumstances)
            ranges.save(known)
    for line in over:
        print(f"over the limit: {line}", file=sys.stderr)
    return 1 if check and over else 0


def _table(known: ranges.Ranges, bench: Bench, result: Result) -> str:
    limits = ranges.limits(known, bench.name)
    width = max(len(figure.name) for figure in result.figures)
    lines = [f"{'':{width}}       min  median     max   limit"]
    for one in result.figures:
        held = limits.get(one.name)
        limit = f"{held.value:8.2f} ({held.of})" if held else "       -"
        lines.append(
            f"{one.name:{width}} {one.unit:>2} {one.low:7.2f} {one.median:7.2f} {one.high:7.2f}"
            f"{limit}"
        )
    return "\n".join([*lines, "", result.notes])


if __name__ == "__main__":
    sys.exit(main())
