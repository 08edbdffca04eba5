"""`make versions`: run the groups of scenarios on each pair of Kubernetes and Slurm.

Files that have passed on a pair are not run again (`--again` forgets them), so that it can be ended
at any time and goes on where it was. A file that fails runs once more by itself.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from e2e_kit.release import CHOICE as SLURM
from penstock.local.versions import CHOICE as KUBERNETES
from reference import pages
from support import child
from support.inotify_limit import raised_limit
from versions import recorder, results
from versions.page import table
from versions.pairs import PAIRS, ROOT, Pair, UnknownPairError, files, parse


def main(arguments: Sequence[str]) -> int:
    """Run what is left; the status is 1 when a file of a pair has not passed."""
    parser = argparse.ArgumentParser(prog="python -m versions", description=__doc__)
    add = parser.add_argument
    add("pairs", nargs="*", metavar="KUBERNETES/SLURM", help="such as 1.35/26.05 (default: all)")
    add("--list", action="store_true", help="only print the table of pairs")
    add("--again", action="store_true", help="also run files that have passed")
    add("--processes", type=int, default=4, help="tests side by side (default: %(default)s)")
    args = parser.parse_args(arguments)
    try:
        wanted = [parse(one) for one in args.pairs] or list(PAIRS)
    except UnknownPairError as error:
        sys.stderr.write(f"{error} What was run:\n{table()}\n")
        return 2
    if args.list:
        print(table())
        return 0
    for pair in wanted:
        if args.again:
            results.path(pair).unlink(missing_ok=True)
        _run(pair, args.processes)
    pages.write()
    print(table())
    return int(any(_left(pair) for pair in wanted))


def _left(pair: Pair) -> list[str]:
    return results.left(files(), results.load(pair))


def _run(pair: Pair, processes: int) -> None:
    todo = _left(pair)
    print(f"{pair}: {len(todo)} of {len(files())} files are left", flush=True)
    if not todo:
        return
    minor = ("local", "prepare", "--kubernetes", pair.kubernetes)
    subprocess.run([Path(sys.executable).with_name("penstock"), *minor], check=True)
    _pytest(pair, todo, "-n", str(processes), "--dist", "loadscope", "--no-loadscope-reorder")
    for one in _left(pair):
        _pytest(pair, [one])


def _pytest(pair: Pair, paths: Sequence[str], *more: str) -> None:
    said = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    environment = {
        **os.environ,
        KUBERNETES: pair.kubernetes,
        SLURM: pair.slurm,
        recorder.PAIR: str(pair),
        recorder.COMMIT: said.stdout.strip(),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "versions.recorder", *more, *paths]
    with raised_limit():
        child.run(command, cwd=ROOT, env=environment)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
