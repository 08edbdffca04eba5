import io
import threading

import pytest

from penstock.local.progress import Progress


def clock(times: list[float]) -> float:
    return times.pop(0) if len(times) > 1 else times[0]


def test_a_step_gives_two_plain_lines_with_its_time() -> None:
    out, times = io.StringIO(), [10.0, 12.5]
    progress = Progress(out, clock=lambda: clock(times))
    with progress.step("compiling") as step:
        step.note = "cached"
    start, end = out.getvalue().splitlines()
    assert start.strip() == "…    compiling"
    assert end.strip() == "2.5 s  compiling (cached)"
    assert progress.timings == {"compiling": 2.5}


def test_a_failed_step_reports_it() -> None:
    out = io.StringIO()
    with pytest.raises(ValueError, match="no"), Progress(out).step("compiling"):
        raise ValueError("no")
    assert out.getvalue().endswith("compiling: failed\n")


class Terminal(io.StringIO):
    """Remembers when a line with both steps of a test was drawn."""

    def __init__(self) -> None:
        super().__init__()
        self.both = threading.Event()

    def isatty(self) -> bool:
        return True

    def write(self, s: str) -> int:
        if "compiling" in s and "fetching" in s:
            self.both.set()
        return super().write(s)


def test_a_terminal_gets_one_line_that_is_rewritten() -> None:
    out = Terminal()
    with Progress(out).step("compiling"):
        pass
    assert out.getvalue().count("\n") == 1
    assert "\r" in out.getvalue()


def test_steps_beside_each_other_share_the_line_of_a_terminal_and_end_one_by_one() -> None:
    out = Terminal()
    progress = Progress(out)
    with progress.step("compiling"), progress.step("fetching"):
        assert out.both.wait(10)
    first, second, rest = out.getvalue().split("\n")
    assert first.endswith("s  fetching")
    assert second.endswith("s  compiling")
    assert rest == ""
