"""`python -m wording` checks; `--list [PATH]` prints each offence, `--lower` lowers budgets."""

import sys
from pathlib import Path

from wording.check import compare, count_by_folder, find_all, folder_of, lower_budget, read_rules

ROOT = Path(__file__).parents[2]
RULES = Path(__file__).with_name("exceptions.toml")


def main(args: list[str]) -> int:
    """Return the exit status: 1 where a count differs from its budget."""
    rules = read_rules(RULES.read_text())
    offences = find_all(ROOT)
    if args[:1] == ["--lower"]:
        RULES.write_text(lower_budget(RULES.read_text(), count_by_folder(offences, rules)))
        rules = read_rules(RULES.read_text())
    if args[:1] == ["--list"]:
        below = args[1] if len(args) > 1 else ""
        for each in offences:
            if each.path.startswith(below) and not any(e.covers(each) for e in rules.exceptions):
                print(each)
        return 0
    problems = list(compare(offences, rules))
    over = {problem.split(":")[0] for problem in problems if "reword" in problem}
    for each in offences:
        if folder_of(each.path) in over and not any(e.covers(each) for e in rules.exceptions):
            print(each)
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
