"""What an administrator sets for the operator: arguments first, then the environment."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock import __version__
from penstock.controllers.runtime.apis import APIS, VARIABLE, parse_apis
from penstock.controllers.runtime.arguments import LEVELS, add_switch
from penstock.decide.topology.labels import PREFIX
from penstock.render.parts.default_images import Images

KINDS = ("accounting", "controller", "loginset", "nodeset", "partition", "restapi", "token")
IMAGES = f"localhost/penstock/{{role}}:26.05-{__version__}"
"""Images that were loaded into the nodes: no public registry can have one of that name."""
OPERATOR_IMAGE = f"localhost/penstock/operator:{__version__}"
"""The operator's own image: sconfigcontroller runs with it as well."""


WEBHOOKS = "penstock-operator-webhook"


@dataclass(frozen=True, slots=True)
class Webhooks:
    """How admission webhooks are served; with port 0 they are not."""

    port: int = 0
    host: str | None = None
    """Address that is served; None for all."""
    name: str = WEBHOOKS
    """Name of their Service and of both configurations."""
    secret: str = ""
    """Secret of the certificate; `<name>-certificates` when empty."""
    own: bool = True
    """Whether the operator makes and renews the certificate; else it takes what the Secret has."""
    hosts: tuple[str, ...] = ()
    """Names and addresses of the server beside those of the Service."""
    client_ca: str = ""
    """File with the authorities of callers' certificates (PEM); empty: anybody may ask."""
    client_names: tuple[str, ...] = ()
    """Names, one of which a caller's certificate has; empty: any."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The operator's settings, fixed for the life of the process."""

    apis: tuple[str, ...] = APIS
    """API groups whose clusters this process leads; of the others it reads and writes nothing."""
    namespaces: tuple[str, ...] = ()
    """Watched namespaces; empty means all."""
    images: Images = field(default_factory=lambda: Images.of(IMAGES))
    """Images for containers whose kind names none."""
    operator_image: str = OPERATOR_IMAGE
    """Image of sconfigcontroller where a SlurmCluster names none."""
    cluster_domain: str = "cluster.local"
    leader_elect: bool = False
    lease_namespace: str = "default"
    identity: str = "penstock"
    metrics_port: int = 8080
    """0 for no metrics."""
    health_port: int = 8081
    metrics_host: str | None = None
    """The address at which metrics are served; None for that of the health probes."""
    health_host: str | None = None
    """The same for the health probes; None for all."""
    workers: int = 4
    """Reconciles of one kind that may run side by side."""
    workers_by_kind: Mapping[str, int] = field(default_factory=dict[str, int])
    """The same for single kinds, by the kind in small letters."""
    propagated_node_conditions: tuple[str, ...] = ()
    """Types of conditions of Kubernetes nodes that are reported in the reason of a drain."""
    topology_label_prefix: str = PREFIX
    """Of the labels of Kubernetes nodes that name their switches or their block."""
    log_level: str = "info"
    namespace: str = "default"
    """Where the operator itself runs."""
    webhooks: Webhooks = Webhooks()

    def workers_of(self, kind: str) -> int:
        """Reconciles of a kind that may run side by side."""
        return self.workers_by_kind.get(kind, self.workers)


def parse(arguments: Sequence[str], environment: Mapping[str, str] = os.environ) -> Settings:
    """Settings from the command line of `penstock.controllers`.

    Exits with argparse's message (status 2) for arguments that do not parse.
    """
    parser = build_parser(environment)
    given = parser.parse_args(arguments)
    if "{role}" not in given.slurm_image:
        parser.error("--slurm-image needs {role} in it, for example registry/{role}:26.05")
    for option, what in _NOT_SERVED.items():
        if getattr(given, option.removeprefix("--").replace("-", "_")):
            parser.error(f"{option}: {what}")
    try:
        apis = parse_apis(given.apis)
    except ValueError as error:
        parser.error(f"--apis or {VARIABLE}: {error}")
    return Settings(
        apis=apis,
        namespaces=_words(given.namespaces),
        images=Images.of(given.slurm_image),
        operator_image=environment.get("PENSTOCK_OPERATOR_IMAGE", OPERATOR_IMAGE),
        cluster_domain=given.cluster_domain,
        leader_elect=given.leader_elect,
        lease_namespace=given.lease_namespace,
        identity=environment.get("POD_NAME") or f"{os.uname().nodename}-{os.getpid()}",
        metrics_port=given.metrics_port.port,
        metrics_host=given.metrics_port.host,
        health_port=given.health_port.port,
        health_host=given.health_port.host,
        workers=given.workers,
        workers_by_kind=_given(given, "workers", (*KINDS, "slurm")),
        propagated_node_conditions=_words(given.propagated_node_conditions),
        topology_label_prefix=environment.get("TOPOLOGY_LABEL_PREFIX") or PREFIX,
        log_level=given.log_level,
        namespace=environment.get("POD_NAMESPACE", "default"),
        webhooks=Webhooks(
            port=given.webhook_port.port,
            host=given.webhook_port.host,
            name=given.webhook_name,
            secret=given.webhook_secret,
            own=given.webhook_certificates == "own",
            hosts=_words(given.webhook_hosts),
            client_ca=given.webhook_client_ca,
            client_names=_words(given.webhook_client_names),
        ),
    )


def build_parser(environment: Mapping[str, str]) -> argparse.ArgumentParser:
    """The parser of the operator's command line, with the defaults of an environment."""
    parser = argparse.ArgumentParser(prog="penstock-operator", description=__doc__)
    add = parser.add_argument
    add(
        "--apis",
        default=environment.get(VARIABLE, ",".join(APIS)),
        metavar="GROUPS",
        help="comma-separated; API groups whose clusters it leads (default: %(default)s)",
    )
    add("--namespaces", default="", help="comma-separated; watch only these (default: all)")
    add(
        "--slurm-image",
        default=environment.get("PENSTOCK_SLURM_IMAGE", IMAGES),
        metavar="TEMPLATE",
        help="image for containers that name none, with {role} for slurmctld, slurmd, slurmrestd, "
        "slurmdbd or login (default: %(default)s)",
    )
    add("--cluster-domain", default=cluster_domain(), help="DNS domain (default: %(default)s)")
    add_switch(parser, "--leader-elect", "act only while holding the Lease")
    add(
        "--lease-namespace",
        "--leader-elect-namespace",
        default=environment.get("POD_NAMESPACE", "default"),
        help="namespace of the Lease (default: %(default)s)",
    )
    where: dict[str, Any] = {"type": _address, "metavar": "[[HOST]:]PORT"}
    add("--metrics-port", "--metrics-addr", default="8080", help="0: no metrics", **where)
    add("--health-port", "--health-addr", default="8081", help="/healthz and /readyz", **where)
    add("--profile-addr", metavar="[[HOST]:]PORT", help="of --profile")
    for option, what in _NOT_SERVED.items():
        add_switch(parser, option, f"only as false: {what}")
    add("--workers", type=int, default=4, help="reconciles of one kind side by side")
    for kind in KINDS:
        add(f"--{kind}-workers", type=int, metavar="N", help=f"the same for {kind}s only")
    add(
        "--slurm-workers",
        "--slurmclient-workers",  # by this name slurm-operator takes it
        type=int,
        metavar="N",
        help="the same for connections to Slurm only",
    )
    add(
        "--propagated-node-conditions",
        default="",
        metavar="TYPES",
        help="comma-separated; conditions of Kubernetes nodes that a drain's reason names",
    )
    _add_webhooks(parser, environment)
    words = f"one of {', '.join(LEVELS)}"
    add("--log-level", "--zap-log-level", default="info", type=_level, choices=LEVELS, help=words)
    return parser


_NOT_SERVED = {
    "--enable-http2": "metrics and webhooks speak HTTP/1.1",
    "--metrics-secure": "metrics are served without TLS; put a proxy before them",
    "--profile": "there is no pprof here; see the metrics",
}
"""Arguments of slurm-operator that ask for what there is not; as false they are taken."""


def _level(text: str) -> str:
    """A level of ours, or one of zap's: `panic`, or a number, the greater the more is logged.

    Source: controller-runtime, flag zap-log-level.
    """
    if text.isdecimal() and int(text) > 0:
        return "debug"
    return {"panic": "critical", "warn": "warning"}.get(text.lower(), text.lower())


def _add_webhooks(parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
    add, variable = parser.add_argument, environment.get
    add(
        "--webhook-port",
        "--server-addr",  # by this name slurm-operator's webhook takes it
        type=_address,
        default=variable("PENSTOCK_WEBHOOK_PORT", "0"),
        metavar="[[HOST]:]PORT",
        help="serve admission webhooks there; 0 switches them off (default: %(default)s)",
    )
    add(
        "--webhook-name",
        default=variable("PENSTOCK_WEBHOOK_NAME", WEBHOOKS),
        help="name of their Service and configurations (default: %(default)s)",
    )
    add(
        "--webhook-secret",
        default=variable("PENSTOCK_WEBHOOK_SECRET", ""),
        help="Secret of their certificate (default: <name>-certificates)",
    )
    add(
        "--webhook-certificates",
        default=variable("PENSTOCK_WEBHOOK_CERTIFICATES", "own"),
        choices=["own", "given"],
        help="own: made and renewed here; given: by cert-manager or by you (default: %(default)s)",
    )
    add(
        "--webhook-hosts",
        default=variable("PENSTOCK_WEBHOOK_HOSTS", ""),
        help="comma-separated; names and addresses in the certificate beside the Service's",
    )
    add(
        "--webhook-client-ca",
        default=variable("PENSTOCK_WEBHOOK_CLIENT_CA", ""),
        metavar="FILE",
        help="authorities (PEM) of the certificate that the API server has to send; "
        "without it anybody who reaches the port may ask",
    )
    add(
        "--webhook-client-names",
        default=variable("PENSTOCK_WEBHOOK_CLIENT_NAMES", ""),
        metavar="NAMES",
        help="comma-separated; names, one of which that certificate has (default: any)",
    )


@dataclass(frozen=True, slots=True)
class _Address:
    host: str | None
    port: int


def _address(text: str) -> _Address:
    host, _, port = text.rpartition(":")
    return _Address(host.strip("[]") or None, int(port))


_address.__name__ = "port"  # argparse prints the name: "invalid port value: 'x'"


def _words(text: str) -> tuple[str, ...]:
    return tuple(word for word in text.split(",") if word)


def _given(given: argparse.Namespace, suffix: str, names: Sequence[str]) -> dict[str, int]:
    """The numbers that were given for some of the names."""
    found = {name: getattr(given, f"{name}_{suffix}") for name in names}
    return {name: number for name, number in found.items() if number is not None}


def cluster_domain(resolv_conf: str = "/etc/resolv.conf") -> str:
    """The cluster's DNS domain, from the search line that the kubelet wrote."""
    try:
        lines = Path(resolv_conf).read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    words = [word for line in lines if line.startswith("search") for word in line.split()[1:]]
    return next((w.removeprefix("svc.") for w in words if w.startswith("svc.")), "cluster.local")
