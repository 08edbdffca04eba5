"""Arguments of sconfigcontroller, as Deployments of both versions pass them."""

from __future__ import annotations

import pytest

from penstock.controllers.jailed_config.arguments import parse
from penstock.controllers.runtime.arguments import Address

WRONG = [
    (["--unknown=1"], "unrecognized arguments: --unknown=1"),
    (["--leader"], "unrecognized arguments: --leader"),
    (["--reconfigure-poll-interval=5"], "invalid duration value: '5'"),
    (["--reconfigure-poll-interval=-5s"], "invalid duration value: '-5s'"),
    (["--reconfigure-poll-interval=5m"], "must be longer than --reconfigure-poll-interval"),
    (["--metrics-secure=maybe"], "invalid true or false value: 'maybe'"),
    (["--metrics-bind-address=x"], "invalid address value: 'x'"),
    (["--jail-path=mnt"], "--jail-path mnt must be an absolute path"),
    (["--cluster-name="], "must not be empty"),
    (["--log-level=loud"], "invalid choice: 'loud'"),
]


def test_arguments_of_a_captured_deployment_are_accepted() -> None:
    found = parse(
        [
            "--cluster-namespace=soperator",
            "--cluster-name=soperator",
            "--jail-path=/mnt/jail",
            "--slurmapiserver=http://soperator-rest-svc.soperator.svc:6820",
            "--metrics-bind-address=:8443",
            "--metrics-secure=true",
            "--leader-elect",
            "--reconfigure-poll-interval=20s",
            "--reconfigure-wait-timeout=5m",
        ],
        {"POD_NAME": "pod"},
    )
    assert (found.namespace, found.cluster, found.jail) == ("soperator", "soperator", "/mnt/jail")
    assert found.slurmrestd == "http://soperator-rest-svc.soperator.svc:6820"
    assert (found.metrics, found.metrics_secure) == (Address(None, 8443), True)
    assert found.health == Address(None, 8081)
    assert (found.leader_elect, found.identity) == (True, "pod")
    assert (found.poll_s, found.timeout_s) == (20.0, 300.0)


def test_a_switch_may_be_false_and_metrics_may_be_off() -> None:
    found = parse(["--leader-elect=false", "--metrics-bind-address=0"])
    assert not found.leader_elect
    assert found.metrics == Address(None, 0)


@pytest.mark.parametrize(("arguments", "words"), WRONG, ids=[words for _, words in WRONG])
def test_a_wrong_argument_is_named(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(arguments)
    assert ended.value.code == 2
    assert words in capsys.readouterr().err
