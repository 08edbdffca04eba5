"""Which registries a built-in node may pull from without TLS."""

from collections.abc import Sequence

import pytest

from penstock.local import plain_http
from penstock.local.addresses import Addresses
from penstock.local.errors import LocalError
from penstock.local.process import Process


@pytest.mark.parametrize(
    "registry",
    ["registry.example.com:5000", "8.8.8.8:80", "10.200.130.7", "10.200.130.7:a", "10.201.0.1:80"],
)
def test_only_one_in_the_cluster(registry: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(plain_http, "inside")
    with pytest.raises(LocalError, match="a registry elsewhere needs HTTPS"):
        plain_http.allow(Process(1, 1), registry, Addresses(200))


def test_the_runtime_of_the_node_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []

    def run(first: Process, command: Sequence[str]) -> None:
        del first
        told.extend(command)

    monkeypatch.setattr(plain_http, "inside", run)
    plain_http.allow(Process(1, 1), "10.200.130.7:5000", Addresses(200))
    assert 'server = "http://10.200.130.7:5000"' in told[-1]
    assert "/etc/containerd/certs.d/10.200.130.7:5000/hosts.toml" in told[-1]
