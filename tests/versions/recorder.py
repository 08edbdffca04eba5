"""A plug-in of pytest that keeps the result of each file as soon as its last test has ended.

`PENSTOCK_VERSIONS_PAIR` is the pair and `PENSTOCK_VERSIONS_COMMIT` the commit. A run that is ended
in the middle has then lost no file that was complete. In a run of all tests it keeps the files of
the pair's groups.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection
from datetime import UTC, datetime

import pytest

from versions import pairs, results

PAIR, COMMIT = "PENSTOCK_VERSIONS_PAIR", "PENSTOCK_VERSIONS_COMMIT"


class Recorder:
    """Counts the tests of each file, in the process that reports."""

    def __init__(self, pair: pairs.Pair, commit: str, files: Collection[str]) -> None:
        self._pair, self._commit, self._files = pair, commit, files
        self._expected: Counter[str] = Counter()
        self._ended: Counter[str] = Counter()
        self._outcomes: dict[str, str] = {}

    def expect(self, nodeids: list[str]) -> None:
        """These tests are to run."""
        self._expected = Counter(one.partition("::")[0] for one in nodeids)

    def report(self, report: pytest.TestReport) -> None:
        """One phase of a test has ended: its setup, itself or its teardown."""
        file = report.nodeid.partition("::")[0]
        if file not in self._files:
            return
        before = self._outcomes.get(report.nodeid, "passed")
        if before == "passed":
            self._outcomes[report.nodeid] = report.outcome
        if report.when == "teardown":
            self._ended[file] += 1
            if self._ended[file] == self._expected[file]:
                self._keep(file)

    def _keep(self, file: str) -> None:
        outcomes = Counter(
            outcome
            for nodeid, outcome in self._outcomes.items()
            if nodeid.partition("::")[0] == file
        )
        kept = results.load(self._pair)
        kept[file] = results.Result(
            date=datetime.now(UTC).date().isoformat(),
            commit=self._commit,
            passed=outcomes["passed"],
            skipped=outcomes["skipped"],
            failed=outcomes["failed"],
        )
        results.save(self._pair, kept)


def pytest_configure(config: pytest.Config) -> None:
    """Only the process that reports keeps results."""
    if not hasattr(config, "workerinput"):
        pair, commit = pairs.parse(os.environ[PAIR]), os.environ[COMMIT]
        config.pluginmanager.register(_Hooks(Recorder(pair, commit, pairs.files())))


class _Hooks:
    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._recorder.report(report)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        if session.items:
            self._recorder.expect([item.nodeid for item in session.items])

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: object, ids: list[str]) -> None:
        """Of processes side by side, each collects all."""
        del node
        self._recorder.expect(ids)
