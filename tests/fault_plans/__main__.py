"""`make plans`: play fault plans, for a second or for a week."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Iterator

from fault_plans.logs import logging
from fault_plans.pool import Played, plan_for, play_all, play_one

TOLD_EACH_S = 60.0


def main() -> int:
    """Play the plans of a range of seeds; the status is 1 when a promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m fault_plans", description=__doc__)
    add = parser.add_argument
    add("--seed", type=int, default=1, help="the first seed (default: %(default)s)")
    add("--count", type=int, default=100, help="how many plans (default: %(default)s)")
    add("--workers", type=int, default=0, help="processes (default: one for each core)")
    add("--silence", type=float, help="simulated seconds of silence at the end of each plan")
    add(
        "--external",
        dest="kind",
        action="store_const",
        const="external",
        default="usual",
        help="plans of clusters with an external slurmctld",
    )
    add(
        "--tiny",
        dest="kind",
        action="store_const",
        const="tiny",
        help="plans of clusters with workers of a second, tiny API",
    )
    add(
        "--nebius",
        dest="kind",
        action="store_const",
        const="nebius",
        help="plans of SlurmClusters",
    )
    add(
        "--nebius-left",
        dest="kind",
        action="store_const",
        const="nebius-left",
        help="plans of SlurmClusters that soperator left",
    )
    add(
        "--together",
        dest="kind",
        action="store_const",
        const="together",
        help="plans of two SlurmClusters and a Slinky cluster in one namespace",
    )
    add("--keep-going", action="store_true", help="play on after a broken promise")
    add("--logs", action="store_true", help="show each plan and the operator's logs, in order")
    args = parser.parse_args()
    seeds = range(args.seed, args.seed + args.count)
    played = (
        _aloud(seeds, args.silence, args.kind)
        if args.logs or args.count == 1
        else play_all(seeds, workers=args.workers, silence=args.silence, kind=args.kind)
    )
    with logging(show=args.logs):
        return _tell(played, args.count, keep_going=args.keep_going)


def _aloud(seeds: Iterable[int], silence: float | None, kind: str) -> Iterator[Played]:
    for seed in seeds:
        print(plan_for(seed, kind), flush=True)
        yield play_one(seed, silence, kind)


def _tell(played: Iterable[Played], count: int, *, keep_going: bool) -> int:
    began = told_at = time.monotonic()
    failed, ended, cpu = 0, 0, 0.0
    for one in played:
        ended += 1
        cpu += one.cpu
        if one.broken:
            failed += 1
            print(one, flush=True)
            if not keep_going:
                break
        if time.monotonic() - told_at > TOLD_EACH_S:
            told_at = time.monotonic()
            print(f"{ended} of {count} plans, {failed} broke a promise", flush=True)
    taken = time.monotonic() - began
    print(
        f"{ended} plans in {taken:.1f} s ({cpu:.1f} CPU-seconds, {ended / cpu if cpu else 0:.1f} "
        f"a CPU-second), {failed} broke a promise"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
