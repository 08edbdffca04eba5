"""`python -m bench [NAME...]`: measure, and print each figure beside its limit.

With `--check` the exit status is 1 when a figure is over its limit; with `--write` the figures
replace those in ranges.json, limits stay, and the plot in docs/ is drawn again.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import sys

from bench import decide, machine, ranges, recover, start
from bench.config import effect
from bench.exporter import run as exporter
from bench.figures import Result
from bench.fleet import growth, scale, sizes, update
from bench.fleet.checks import run as checks
from bench.fleet.many import run as many
from bench.fleet.modes import run as modes
from bench.registry import Bench, Settings
from bench.slurmcluster import run as slurmcluster
from penstock.local.components import Size
from penstock.local.ending import ends_in_order
from penstock.local.errors import LocalError
from penstock.local.node import Node

BENCHES: tuple[Bench, ...] = (
    start.BENCH,
    slurmcluster.BENCH,
    exporter.BENCH,
    recover.BENCH,
    effect.BENCH,
    effect.MANY_BENCH,
    decide.BENCH,
    scale.BENCH,
    update.BENCH,
    modes.BENCH,
    many.BENCH,
    checks.BENCH,
    sizes.BENCH,
    sizes.LARGE_BENCH,
)
NODES = {Size.NODE: "bench", Size.FLEET: "bench-fleet"}


def main() -> int:
    """Run the command; return its exit status."""
    by_name = {bench.name: bench for bench in BENCHES}
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *by_name], metavar="NAME")
    parser.add_argument("--runs", type=int, help="how often each is repeated")
    parser.add_argument("--check", action="store_true", help="fail when a limit is exceeded")
    parser.add_argument("--write", action="store_true", help="keep the figures in ranges.json")
    parser.add_argument(
        "--node", help="use this built-in node and leave it (default: own ones, taken down)"
    )
    parser.add_argument("--full", action="store_true", help="the long ones too")
    given = parser.parse_args()
    chosen = [by_name[name] for name in given.names]
    chosen = chosen or [bench for bench in BENCHES if given.full or not bench.long]
    own = {} if given.node else {size: NODES[size] for bench in chosen if (size := bench.size)}
    with ends_in_order(), contextlib.ExitStack() as nodes:
        for name in own.values():
            nodes.enter_context(Node(name))
        try:
            return _measure(chosen, own, given)
        except LocalError as error:
            print(error, file=sys.stderr)
            return 2


def _measure(benches: list[Bench], own: dict[Size, str], given: argparse.Namespace) -> int:
    known = ranges.read()
    over: list[str] = []
    for bench in benches:
        number = given.runs or bench.runs
        load = machine.load()
        node = given.node or (own[bench.size] if bench.size else "")
        result = bench.run(Settings(number, node))
        print(f"\n{bench.name}: {bench.title} ({number} runs)\n{_table(known, bench, result)}")
        over += ranges.beyond(known, bench.name, result)
        if given.write:
            circumstances = {
                "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
                "runs": number,
                "load": [round(load, 1), round(machine.load(), 1)],
                **machine.facts(),
            }
            known = ranges.written(known, bench.name, result, circumstances)
            ranges.save(known)
            if (drawn := growth.plot(known)) is not None:
                growth.FILE.write_text(drawn)
    for line in over:
        print(f"over the limit: {line}", file=sys.stderr)
    return 1 if given.check and over else 0


def _table(known: ranges.Ranges, bench: Bench, result: Result) -> str:
    limits = ranges.limits(known, bench.name)
    width = max(len(figure.name) for figure in result.figures)
    lines = [f"{'':{width}}        min  median     max   limit"]
    for one in result.figures:
        held = limits.get(one.name)
        limit = f"{held.value:8.2f} ({held.of})" if held else "       -"
        lines.append(
            f"{one.name:{width}} {one.unit:>3} {one.low:7.2f} {one.median:7.2f} {one.high:7.2f}"
            f"{limit}"
        )
    return "\n".join([*lines, "", result.notes])


if __name__ == "__main__":
    sys.exit(main())
