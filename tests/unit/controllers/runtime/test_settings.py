from __future__ import annotations

from pathlib import Path

import pytest

from penstock import __version__
from penstock.controllers.runtime.settings import Webhooks, cluster_domain, parse


def test_nothing_needs_to_be_set():
    found = parse([], {})
    assert found.namespaces == ()
    assert found.images.slurmctld == f"localhost/penstock/slurmctld:26.05-{__version__}"
    assert not found.leader_elect
    assert found.lease_namespace == "default"
    assert found.identity


def test_arguments_go_before_the_environment():
    environment = {
        "PENSTOCK_SLURM_IMAGE": "of/environment/{role}:1",
        "POD_NAMESPACE": "of-environment",
        "POD_NAME": "pod-1",
    }
    found = parse([], environment)
    assert found.images.slurmd == "of/environment/slurmd:1"
    assert (found.lease_namespace, found.identity) == ("of-environment", "pod-1")
    arguments = ["--slurm-image", "mine/{role}:2", "--lease-namespace", "mine", "--leader-elect"]
    found = parse([*arguments, "--namespaces", "a,b", "--workers", "9"], environment)
    assert found.images.login == "mine/login:2"
    assert (found.lease_namespace, found.leader_elect) == ("mine", True)
    assert (found.namespaces, found.workers) == (("a", "b"), 9)


@pytest.mark.parametrize(
    ("text", "apis"),
    [
        ("slinky.slurm.net", ("slinky.slurm.net",)),
        (" slurm.nebius.ai ", ("slurm.nebius.ai",)),
        ("slurm.nebius.ai,slinky.slurm.net", ("slinky.slurm.net", "slurm.nebius.ai")),
        ("penstock.dev,slurm.nebius.ai,", ("slurm.nebius.ai",)),
    ],
)
def test_the_api_groups_are_named_in_the_environment_or_as_an_argument(
    text: str, apis: tuple[str, ...]
):
    assert parse([], {"PENSTOCK_APIS": text}).apis == apis
    assert parse(["--apis", text], {"PENSTOCK_APIS": "slinky.slurm.net"}).apis == apis


def test_a_process_leads_for_both_apis_by_default():
    assert parse([], {}).apis == ("slinky.slurm.net", "slurm.nebius.ai")


@pytest.mark.parametrize(
    "text", ["slurm.example.org", "slinky.slurm.net,nebius", "", " , ", "penstock.dev"]
)
def test_an_api_group_that_has_no_clusters_is_an_error_with_the_known_ones(
    text: str, capsys: pytest.CaptureFixture[str]
):
    with pytest.raises(SystemExit) as ended:
        parse([], {"PENSTOCK_APIS": text})
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert "PENSTOCK_APIS" in said
    assert "name slinky.slurm.net or slurm.nebius.ai, or both with a comma" in said


def test_webhooks_are_off_until_a_port_is_given_and_all_can_be_set_in_the_environment():
    assert parse([], {}).webhooks == Webhooks()
    environment = {
        "POD_NAMESPACE": "system",
        "PENSTOCK_WEBHOOK_PORT": "9443",
        "PENSTOCK_WEBHOOK_NAME": "slurm-operator-webhook",
        "PENSTOCK_WEBHOOK_SECRET": "slurm-operator-webhook-ca",
        "PENSTOCK_WEBHOOK_CERTIFICATES": "given",
        "PENSTOCK_WEBHOOK_HOSTS": "a.example.org,192.0.2.1",
        "PENSTOCK_WEBHOOK_CLIENT_CA": "/ca/ca.crt",
        "PENSTOCK_WEBHOOK_CLIENT_NAMES": "kube-apiserver,front-proxy-client",
    }
    found = parse([], environment)
    assert found.namespace == "system"
    assert found.webhooks == Webhooks(
        port=9443,
        name="slurm-operator-webhook",
        secret="slurm-operator-webhook-ca",
        own=False,
        hosts=("a.example.org", "192.0.2.1"),
        client_ca="/ca/ca.crt",
        client_names=("kube-apiserver", "front-proxy-client"),
    )
    arguments = ["--webhook-port=0", "--webhook-certificates=own", "--webhook-name=mine"]
    found = parse(arguments, environment)
    assert (found.webhooks.port, found.webhooks.own, found.webhooks.name) == (0, True, "mine")


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("9443", None, 9443),
        (":9443", None, 9443),
        ("127.0.0.1:9443", "127.0.0.1", 9443),
        ("[::1]:9443", "::1", 9443),
    ],
)
def test_the_address_of_webhooks_may_be_written_as_slurm_operator_takes_it(
    text: str, host: str | None, port: int
):
    found = parse([f"--server-addr={text}"], {}).webhooks
    assert (found.host, found.port) == (host, port)
    assert parse([f"--webhook-port={text}"], {}).webhooks == found


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--slurm-image", "registry/slurm:26.05"], "{role}"),
        (["--metrics-port", "many"], "invalid port value"),
        (["--enable-http2"], "HTTP/1.1"),
        (["--metrics-secure=true"], "without TLS"),
        (["--profile", "true"], "no pprof"),
        (["--leader-elect=perhaps"], "invalid"),
        (["--zap-log-level", "0"], "invalid choice"),
        (["--log-level", "loud"], "invalid choice"),
        (["--webhook-certificates", "none"], "invalid choice"),
        (["--server-addr", "localhost"], "invalid port value"),
        (["--unknown"], "unrecognized arguments"),
    ],
)
def test_what_cannot_be_used_ends_the_start_and_says_why(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
):
    with pytest.raises(SystemExit) as ended:
        parse(arguments, {})
    assert ended.value.code == 2
    assert words in capsys.readouterr().err


def test_the_cluster_domain_is_that_of_the_search_line(tmp_path: Path):
    path = tmp_path / "resolv.conf"
    path.write_text(
        "nameserver 10.0.0.1\nsearch slurm.svc.example.org svc.example.org example.org\n"
    )
    assert cluster_domain(str(path)) == "example.org"
    path.write_text("nameserver 10.0.0.1\n")
    assert cluster_domain(str(path)) == "cluster.local"
    assert cluster_domain(str(tmp_path / "absent")) == "cluster.local"


def test_a_kind_may_have_workers_of_its_own():
    found = parse(["--workers", "3", "--nodeset-workers", "8"], {})
    assert (found.workers_of("nodeset"), found.workers_of("controller")) == (8, 3)


def test_conditions_of_machines_that_explain_a_drain_are_named():
    """Feature row 34."""
    found = parse(["--propagated-node-conditions", "GpuBroken,DiskBroken"], {})
    assert found.propagated_node_conditions == ("GpuBroken", "DiskBroken")


def test_arguments_of_slurm_operator_are_taken_with_their_meaning() -> None:
    """So that a Deployment that somebody wrote for it works: facts of its `cmd/manager`."""
    given = parse(
        [
            "--zap-log-level=3",
            "--metrics-addr=127.0.0.1:9090",
            "--health-addr=:9091",
            "--leader-elect=true",
            "--leader-elect-namespace=slinky",
            "--enable-http2=false",
            "--metrics-secure=false",
            "--profile=false",
            "--nodeset-workers=7",
            "--slurmclient-workers=2",
            "--profile-addr=localhost:6060",
        ]
    )
    assert given.log_level == "debug"
    assert (given.metrics_host, given.metrics_port) == ("127.0.0.1", 9090)
    assert (given.health_host, given.health_port) == (None, 9091)
    assert (given.leader_elect, given.lease_namespace) == (True, "slinky")
    assert (given.workers_of("nodeset"), given.workers_of("slurm")) == (7, 2)
    off = parse(["--metrics-addr=0", "--leader-elect=false", "--zap-log-level=panic"])
    assert (off.metrics_port, off.leader_elect, off.log_level) == (0, False, "critical")
