"""The table of pairs that were run."""

from __future__ import annotations

import ast

from penstock.local.versions import RELEASES
from reference.page import table as as_table
from versions import results
from versions.pairs import PAIRS, ROOT, Pair, files

HEAD = ("Kubernetes", "Slurm", "Run", "Files", "Passed", "Skipped", "Failed")


def table() -> str:
    """A row for each pair."""
    wanted = files()
    return as_table(HEAD, (_row(pair, wanted) for pair in PAIRS))


def _row(pair: Pair, wanted: list[str]) -> tuple[str, ...]:
    kept = results.load(pair)
    found = [kept[one] for one in wanted if one in kept]
    days = sorted({one.date for one in found})
    when = " to ".join(dict.fromkeys((days[0], days[-1]))) if days else "not yet"
    counts = (sum(getattr(one, name) for one in found) for name in ("passed", "skipped", "failed"))
    return (
        RELEASES[pair.kubernetes],
        pair.slurm,
        when,
        f"{len(found)} of {len(wanted)}",
        *map(str, counts),
    )


def skips() -> list[tuple[str, str]]:
    """Releases of Slurm and what tests need of them, by the marks of tests."""
    found: set[tuple[str, str]] = set()
    for path in (ROOT / "tests/e2e").glob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and _name(node.func) == "needs_slurm":
                words = [one.value for one in node.args if isinstance(one, ast.Constant)]
                if len(words) == len(node.args):
                    found.add((str(words[0]), str(words[1])))
    return sorted(found)


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else ""
