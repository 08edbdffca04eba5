"""What the operator makes of the API server's version."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
import structlog
import yaml
from structlog.testing import LogCapture
from structlog.typing import EventDict

from penstock.controllers.runtime import kubernetes_version
from penstock.controllers.runtime.kubernetes_version import Version, parse
from penstock.kube import UnreachableError
from penstock.kube.client.transport import Request, Response, Stream
from penstock.local.recipes import LATEST
from versions import results
from versions.pairs import PAIRS, files

CHARTS = Path(__file__).parents[4] / "charts"


class Server:
    """Answers `/version`, or nothing."""

    def __init__(self, body: bytes | None) -> None:
        self._body = body

    async def send(self, request: Request) -> Response:
        assert request.path == "/version"
        if self._body is None:
            raise UnreachableError("refused")
        return Response(200, self._body, None)

    def stream(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        raise NotImplementedError

    async def close(self) -> None: ...


@pytest.fixture
def logs(monkeypatch: pytest.MonkeyPatch) -> list[EventDict]:
    """What is logged, also in a process where other tests have configured logs."""
    capture = LogCapture()
    own = structlog.wrap_logger(
        None,
        processors=[capture],
        wrapper_class=structlog.make_filtering_bound_logger(0),
        cache_logger_on_first_use=False,
    )
    monkeypatch.setattr(kubernetes_version, "log", own)
    return capture.entries


def of(major: str, minor: str) -> Server:
    return Server(f'{{"major": "{major}", "minor": "{minor}", "gitVersion": "v"}}'.encode())


def test_what_was_run_is_what_results_are_kept_of() -> None:
    done = [
        pair.kubernetes
        for pair in PAIRS
        if pair.slurm == LATEST.tag and not results.left(files(), results.load(pair))
    ]
    assert [str(one) for one in kubernetes_version.RUN] == done


@pytest.mark.parametrize(
    ("body", "version"),
    [
        (b'{"major": "1", "minor": "34"}', Version(1, 34)),
        (b'{"major": "1", "minor": "33+"}', Version(1, 33)),
        (b'{"major": "2", "minor": "0"}', Version(2, 0)),
        (b'{"major": "", "minor": ""}', None),
        (b'{"major": 1}', None),
        (b"Forbidden", None),
        (b"{}", None),
        (b"", None),
    ],
)
def test_an_answer_is_read_also_with_the_plus_of_providers(
    body: bytes, version: Version | None
) -> None:
    assert parse(body) == version


@pytest.mark.parametrize("minor", ["33", "34", "35+", "36"])
async def test_a_version_that_was_run_is_not_worth_a_line(
    minor: str, logs: list[EventDict]
) -> None:
    await kubernetes_version.check(of("1", minor))
    assert not logs


@pytest.mark.parametrize("minor", ["29", "32", "37"])
async def test_another_version_works_with_a_warning(minor: str, logs: list[EventDict]) -> None:
    await kubernetes_version.check(of("1", minor))
    (line,) = logs
    assert line["log_level"] == "warning"
    assert line["reason"].startswith(f"No test was run on Kubernetes 1.{minor}, only on 1.33,")


async def test_one_that_is_too_old_is_not_started_on_and_those_that_were_run_are_named(
    logs: list[EventDict],
) -> None:
    with pytest.raises(SystemExit) as ended:
        await kubernetes_version.check(of("1", "28+"))
    assert ended.value.code == 1
    assert logs[0]["reason"] == (
        "Kubernetes 1.28 is not supported: the operator needs 1.29 or later. "
        "Tests were run on 1.33, 1.34, 1.35, 1.36"
    )


async def test_a_server_that_does_not_answer_is_waited_for_as_ever(logs: list[EventDict]) -> None:
    await kubernetes_version.check(Server(None))
    await kubernetes_version.check(Server(b"not yet"))
    assert not logs


def test_the_charts_have_the_same_bound() -> None:
    bounds = {
        path.parent.name: yaml.safe_load(path.read_text())["kubeVersion"]
        for path in CHARTS.glob("*/Chart.yaml")
        if "kubeVersion" in path.read_text()
    }
    assert set(bounds.values()) == {f">= {kubernetes_version.OLDEST}.0-0"}
    assert {"slurm-operator", "soperator"} <= bounds.keys()
