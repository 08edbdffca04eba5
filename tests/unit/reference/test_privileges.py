"""No privilege of the table is there without a test that takes it away, or a stated exception."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest

from reference.privilege_needs import NEBIUS, NEEDS, Need
from reference.privileges import Privileges, rows
from reference.source import ROOT

Needs = Mapping[tuple[str, str], Mapping[str, Need]]


def faults(found: list[Privileges], needs: Needs) -> Iterator[str]:
    """Privileges without a need, needs without a privilege, and needs without a test."""
    named = {((one.api, one.container), item) for one in found for item in one.items}
    given = {(container, item) for container, items in needs.items() for item in items}
    for container, item in sorted(named ^ given):
        yield f"{' '.join(container)} {item} is in the table or the list alone"
    for container, items in needs.items():
        for item, need in items.items():
            if bool(need.test) == bool(need.untested):
                yield f"{' '.join(container)} {item} needs a test, or an exception"
            elif need.test and not is_test(need.test):
                yield f"{' '.join(container)} {item}: {need.test} is no test"


def is_test(name: str) -> bool:
    """Whether FILE::FUNCTION is one below tests."""
    file, _, function = name.partition("::")
    path = ROOT / "tests" / file
    if not path.is_file():
        return False
    body = ast.parse(path.read_text()).body
    return any(
        isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef) and one.name == function
        for one in body
    )


@pytest.fixture(scope="module")
def table() -> list[Privileges]:
    return rows()


def test_each_privilege_has_a_test_that_takes_it_away_or_a_stated_exception(
    table: list[Privileges],
) -> None:
    assert not list(faults(table, NEEDS))


def test_a_new_privilege_cannot_come_unnoticed(table: list[Privileges]) -> None:
    changed = [replace(one, always=one.always | {"SYS_TIME"}) for one in table[-1:]]
    assert list(faults([*table[:-1], *changed], NEEDS)) == [
        "slurm.nebius.ai slurmd SYS_TIME is in the table or the list alone"
    ]


@pytest.mark.parametrize(
    ("need", "words"),
    [
        (Need("a reason"), "needs a test, or an exception"),
        (Need("a reason", "a::b", "a cause"), "needs a test, or an exception"),
        (Need("a reason", "unit/images/test_backup.py::absent"), "is no test"),
        (Need("a reason", "unit/images/test_absent.py::test_it"), "is no test"),
    ],
)
def test_a_privilege_without_a_test_cannot_come_unnoticed(
    table: list[Privileges], need: Need, words: str
) -> None:
    changed = {**NEEDS, (NEBIUS, "munge"): {"SYS_ADMIN": need}}
    (fault,) = faults(table, changed)
    assert fault.startswith("slurm.nebius.ai munge SYS_ADMIN")
    assert words in fault
