"""Results of a pure function for its last few arguments."""

from __future__ import annotations

from penstock.base.recent_results import RecentResults


class Counting:
    """Doubles a list, and counts how often it is asked to."""

    def __init__(self) -> None:
        self.asked: list[list[int]] = []

    def __call__(self, given: list[int]) -> list[int]:
        self.asked.append(given)
        return given * 2


def test_an_equal_argument_is_not_computed_again() -> None:
    function = Counting()
    recent = RecentResults(function, 2)
    assert [recent([1]), recent([2]), recent([1]), recent([2])] == [[1, 1], [2, 2]] * 2
    assert function.asked == [[1], [2]]


def test_only_the_last_few_arguments_are_kept() -> None:
    function = Counting()
    recent = RecentResults(function, 2)
    for one in (1, 2, 3, 1):
        recent([one])
    assert function.asked == [[1], [2], [3], [1]]
