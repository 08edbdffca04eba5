"""`python -m declarations`: count and check all declarations, in a few seconds."""

from __future__ import annotations

import argparse
import sys
from collections import Counter

from declarations.check import every, findings
from declarations.rules import BREACHES
from declarations.samples import BASE
from declarations.values import Verdict


def main() -> int:
    """Print the counts by kind and what is wrong; the status is 1 when anything is."""
    parser = argparse.ArgumentParser(prog="python -m declarations", description=__doc__)
    parser.add_argument("--list", action="store_true", help="print each declaration")
    args = parser.parse_args()
    found = every()
    counted = Counter((case.kind, case.verdict) for case in found)
    print(f"{'kind':12}" + "".join(f"{verdict:>9}" for verdict in Verdict) + "    rules")
    for kind in BASE:
        rules = sum(1 for one in BREACHES if one.kind == kind)
        row = "".join(f"{counted[kind, verdict]:9}" for verdict in Verdict)
        print(f"{kind:12}{row}{rules:9}")
    if args.list:
        print(*(f"{case.verdict:8} {case.name}" for case in found), sep="\n")
    wrong = list(findings(found))
    print(*wrong, f"{len(found)} declarations, {len(wrong)} findings", sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
