"""Every declaration on a real API server with the whole operator: `python -m support.declarations`.

Run from `tests/`. It takes a node of its own, or with `--node NAME` one that is up.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import secrets
import sys
import time
from collections.abc import Iterable, Sequence

from structlog.testing import capture_logs

from declarations.check import every
from declarations.values import Case, Verdict
from penstock.local import node as local
from penstock.local.components import Size
from penstock.render.parts import ssh_host_keys as hostkeys
from support.chains import Account, Play
from support.operator_kit import Node, lab
from support.stage import SERVED_KINDS, Stage

LENGTH = 6
STAGES = 8


def live(found: Iterable[Case]) -> list[Case]:
    """Cases of objects that are served; what the schema rejects needs no stage."""
    return [
        case
        for case in found
        if case.kind in SERVED_KINDS and case.verdict is not Verdict.REFUSED and not _vast(case)
    ]


def _vast(case: Case) -> bool:
    """Whether it asks for more pods than a simulation should have."""
    number = case.value if isinstance(case.value, int) else 0
    return case.path[-1] in ("replicas", "backups") and number > 9


def chains(found: Sequence[Case], seed: int) -> list[tuple[str, list[Case]]]:
    """Cases of one kind, mixed by a seed, in chains."""
    dice, out = random.Random(seed), list[tuple[str, list[Case]]]()
    for kind in SERVED_KINDS:
        mine = [case for case in found if case.kind == kind]
        dice.shuffle(mine)
        out += [(kind, mine[at : at + LENGTH]) for at in range(0, len(mine), LENGTH)]
    dice.shuffle(out)
    return out


async def play(node: Node, todo: Sequence[tuple[str, list[Case]]], stages: int = STAGES) -> Account:
    """Play chains on several stages at once."""
    account, queue = Account(), list(reversed(todo))
    with capture_logs() as logs:
        async with lab(node, clusters=stages) as lab_, lab_.operator() as running:
            plays = [Play(Stage(lab_, running, space), account, logs) for space in lab_.clusters]

            async def work(one: Play) -> None:
                await one.begin()
                while queue:
                    kind, chain = queue.pop()
                    await one.chain(kind, chain)

            async with asyncio.TaskGroup() as group:
                for one in plays:
                    group.create_task(work(one))
    return account


def main() -> int:
    """Play all chains; print the counts and findings. The status is 1 when there are findings."""
    parser = argparse.ArgumentParser(prog="python -m support.declarations", description=__doc__)
    add = parser.add_argument
    add("--node", default="", help="name of a built-in node that is up; else one is made")
    add("--seed", type=int, default=1, help="decides what is in which chain (default: %(default)s)")
    add("--first", type=int, default=None, help="only so many chains")
    args = parser.parse_args()
    keys = hostkeys.generate()
    hostkeys.generate = lambda: keys
    todo = chains(live(every()), args.seed)[: args.first]
    started = time.monotonic()
    if args.node:
        node = local.Node(args.node)
        account = asyncio.run(play(node.up(Size.API), todo))
    else:
        with local.Node(f"declarations-{secrets.token_hex(3)}") as node:
            account = asyncio.run(play(node.up(Size.API), todo))
    print(f"{len(todo)} chains of seed {args.seed} in {time.monotonic() - started:.0f} s")
    for (kind, what), count in sorted(account.tried.items()):
        print(f"{kind:12}{what:12}{count:6}")
    print(f"{account.writes} writes of the operator, at most {account.most} for one declaration")
    print(*account.findings, f"{len(account.findings)} findings", sep="\n")
    return 1 if account.findings else 0


if __name__ == "__main__":
    sys.exit(main())
