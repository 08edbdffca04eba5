"""`python -m penstock.testing.plans`: play fault plans, for a second or for a week."""

from __future__ import annotations

import argparse
import sys
import time

from penstock.testing.plans.play import plan_of, play
from penstock.testing.plans.quiet import logging


def main() -> int:
    """Play the plans of a range of seeds; the status is 1 when a promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m penstock.testing.plans", description=__doc__)
    add = parser.add_argument
    add("--seed", type=int, default=1, help="the first seed (default: %(default)s)")
    add("--count", type=int, default=100, help="how many plans (default: %(default)s)")
    add("--silence", type=float, default=600.0, help="simulated seconds of silence at the end")
    add("--keep-going", action="store_true", help="play on after a broken promise")
    add("--logs", action="store_true", help="show the operator's logs and each plan")
    args = parser.parse_args()
    started, failed, played = time.monotonic(), 0, 0
    with logging(show=args.logs):
        for seed in range(args.seed, args.seed + args.count):
            plan = plan_of(seed)
            if args.logs:
                print(plan)
            outcome = play(plan, silence=args.silence)
            played += 1
            if outcome.broken:
                failed += 1
                print(plan, *(f"  BROKEN {one}" for one in outcome.broken), sep="\n", flush=True)
                if not args.keep_going:
                    break
    taken = time.monotonic() - started
    rate = played / taken if taken else 0.0
    print(f"{played} plans in {taken:.1f} s ({rate:.1f}/s), {failed} broke a promise")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
