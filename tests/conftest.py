"""What tests of all layers share: real API servers and nodes, made once for a whole run."""

import contextlib
import os
import secrets
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from penstock.local.components import Size
from penstock.local.linux import why_not
from penstock.local.node import Node
from support.spread import ByNode, layer_of

NICE = 5
"""Niceness of tests that need no node, beside those that do."""
SHORT, WIDE = 8, 400
"""Lines, and characters of each, of a failure in the summary at the very end."""
KEPT = Path(tempfile.gettempdir()) / "penstock-failed-tests"
"""Where failures are written with all that they showed: of a long output, little may be kept."""
MOST_KEPT = 50
"""Files there."""
PRINTED = 2000
"""Characters of each section that are printed as well."""
BEFORE = pytest.StashKey[int]()
FAILED = pytest.StashKey[Counter[str]]()
"""How many tests failed so far, by file."""
MOST_FAILED = 2
"""Of a file that needs a node: tests after them share its cluster, and wait for what it lost."""

# A merge must not depend on luck: CI takes the same examples each time, people get new ones.
settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("people", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "people")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests in tests/api and tests/e2e carry the mark of their folder; files marked `long` begin.

    So no process is left with a long one when the others have ended.
    """
    for item in items:
        if layer := layer_of(item.nodeid):
            item.add_marker(layer)
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """What computes makes way for what waits for a node, once processes run side by side.

    The rest of a file whose cluster is broken is not run in CI: it would take its time limits.
    """
    counts = item.config.stash.setdefault(FAILED, Counter())
    if "CI" in os.environ and counts[_file(item.nodeid)] >= MOST_FAILED:
        pytest.skip(f"{MOST_FAILED} tests of this file failed")
    if not hasattr(item.config, "workerinput"):
        return
    before = item.config.stash.setdefault(BEFORE, os.getpriority(os.PRIO_PROCESS, 0))
    wanted = before if layer_of(item.nodeid) else before + NICE
    if os.getpriority(os.PRIO_PROCESS, 0) != wanted:
        # Only root may take it back, and without root nothing that needs a node runs.
        with contextlib.suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, 0, wanted)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Count failures of tests that need a node."""
    report = yield
    if report.failed and layer_of(item.nodeid):
        item.config.stash.setdefault(FAILED, Counter())[_file(item.nodeid)] += 1
    return report


def _file(nodeid: str) -> str:
    return nodeid.partition("::")[0]


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByNode:
    """How tests are spread over processes."""
    return ByNode(config, log)


class Failures:
    """Prints at once what failed: the whole run takes long, and prints all of it only at its end.

    And once more as the last thing, in a few lines each: what is kept of a long output is its end.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._told: list[tuple[str, list[str]]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Print a failure."""
        if report.failed:
            told = f"{report.when} of {report.nodeid} after {report.duration:.0f} s"
            lines = _why(report)
            self._told.append((told, lines))
            _keep(report)
            report.sections = [(title, text[-PRINTED:]) for title, text in report.sections]
            first = next((one for one in lines if not one.startswith(">")), "")
            self._config.get_terminal_writer().line(f"\nFAILED {told}: {first}")

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter
    ) -> Generator[None, Any, Any]:
        """Print all failures, after everything else."""
        result = yield
        if self._told:
            terminalreporter.section("what failed, in short")
        for told, lines in self._told:
            terminalreporter.line(told)
            for line in lines[:SHORT]:
                terminalreporter.line(f"    {line[:WIDE]}")
        return result


def _keep(report: pytest.TestReport) -> None:
    """Write a failure with its sections to a file of its own, and remove the oldest ones."""
    KEPT.mkdir(exist_ok=True)
    name = report.nodeid.replace("/", "-")[-150:]
    parts = [
        report.longreprtext,
        *(f"---- {title} ----\n{text}" for title, text in report.sections),
    ]
    Path(KEPT, f"{time.strftime('%m%d-%H%M%S')}-{report.when}-{name}.txt").write_text(
        "\n".join(parts)
    )
    for old in sorted(KEPT.iterdir())[:-MOST_KEPT]:
        # Another run may remove it as well.
        old.unlink(missing_ok=True)


def _why(report: pytest.TestReport) -> list[str]:
    """Where a test failed and why: pytest marks these lines by `>` and `E`."""
    marked = [one for one in report.longreprtext.splitlines() if one.startswith((">", "E "))]
    return [one if one[0] == ">" else one[1:].strip() for one in marked]


def pytest_configure(config: pytest.Config) -> None:
    """Where processes run side by side, the controlling one prints.

    SIGTERM ends a run as Ctrl-C does: fixtures take their nodes down.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Failures(config))


@pytest.fixture
def figure(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Print a figure at the end of the run, whichever process measured it."""
    return lambda text: record_property("figure", text)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the figures of the tests that passed."""
    passed: list[pytest.TestReport] = terminalreporter.stats.get("passed", [])
    found = [text for one in passed for name, text in one.user_properties if name == "figure"]
    if found:
        terminalreporter.section("figures")
        for text in found:
            terminalreporter.line(str(text))


@pytest.fixture(scope="session")
def api_node() -> Generator[Node]:
    """A real etcd and kube-apiserver; no controller runs. Use namespaces of your own."""
    yield from _node(Size.API)


@pytest.fixture(scope="session")
def kube_node() -> Generator[Node]:
    """A whole Kubernetes with one real kubelet. Use namespaces of your own."""
    yield from _node(Size.NODE)


def _node(size: Size) -> Generator[Node]:
    reason = why_not()
    if reason:
        pytest.skip(reason)
    with Node(f"test-{size}-{secrets.token_hex(3)}") as node:
        yield node.up(size)
