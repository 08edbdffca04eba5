"""An image that a Kubernetes node cannot get: the kubelet's words, and the value to set."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from penstock.api.kubernetes.meta import Json
from penstock.api.slinky.accounting import Accounting
from penstock.api.slinky.controller import Controller
from penstock.api.slinky.loginset import LoginSet
from penstock.api.slinky.nodeset import NodeSet
from penstock.api.slinky.restapi import RestApi
from penstock.decide.observed.job_text import printable

Staffed = Controller | NodeSet | LoginSet | RestApi | Accounting
"""Kinds that have pods."""

REASONS = frozenset({"ErrImageNeverPull", "ErrImagePull", "ImagePullBackOff", "InvalidImageName"})
"""Waiting reasons of a container that are about its image. Source: kubelet."""

_LETTERS = 300
_WRAPPING = re.compile(
    r"rpc error: code = \w+ desc = |failed to pull and unpack image \"[^\"]*\": "
    r"|failed to resolve (?:reference|image)(?: \"[^\"]*\")?: |failed to do request: "
    # The port of the asking side is another one at each attempt.
    r"|(?<=tcp )\S+:\d+->|(?<=udp )\S+:\d+->"
)
_MANAGED_BY = "app.kubernetes.io/managed-by"
_LOCAL = "localhost/"


@dataclass(frozen=True, slots=True)
class Pull:
    """What the kubelet says of a container whose image it cannot get."""

    container: str
    image: str
    reason: str
    message: str

    @property
    def cause(self) -> str:
        """The kubelet's words on one line, the same ones at each attempt."""
        said = printable(_WRAPPING.sub("", self.message.strip()))
        return said if len(said) <= _LETTERS else f"{said[:_LETTERS]}..."

    @property
    def host(self) -> str:
        """The registry, as the image names it; Docker Hub where it names none."""
        host, found, _ = self.image.partition("/")
        named = found and ("." in host or ":" in host or host == "localhost")
        return host if named else "docker.io"


def advice(obj: Staffed, pull: Pull) -> str:
    """The next step, as one sentence without its full stop."""
    value, said = _value(obj, pull.container), pull.message.lower()
    if pull.reason == "InvalidImageName":
        return f"Correct {value}"
    if pull.reason == "ErrImageNeverPull":
        return f"Load the image into the Kubernetes nodes, or set its imagePullPolicy or {value}"
    if "http response to https client" in said:
        return (
            f"Registry {pull.host} serves plain HTTP: configure the container runtime of the "
            f"Kubernetes nodes for that, or set {value}"
        )
    if "x509" in said or "certificate" in said:
        return (
            f"Have the container runtime of the Kubernetes nodes trust the certificate of "
            f"{pull.host}, or set {value}"
        )
    if pull.image.startswith(_LOCAL):
        return f"Load the image into the Kubernetes nodes, or set {value}"
    if re.search(r"unauthorized|authori[sz]ation|authentication|denied|forbidden|\b40[13]\b", said):
        return _login(obj, pull)
    if re.search(r"not found|manifest unknown|name unknown|\b404\b", said):
        return f"Push the image, or set {value}"
    if "no space left" in said:
        return "Make room on the disk of that Kubernetes node"
    return f"Make registry {pull.host} reachable from the Kubernetes nodes, or set {value}"


def _login(obj: Staffed, pull: Pull) -> str:
    secrets = [str(one.get("name")) for one in _items(obj.spec.template.spec, "imagePullSecrets")]
    field = "spec.template.spec.imagePullSecrets"
    value = f"imagePullSecrets of the chart slurm ({field})" if _by_chart(obj) else field
    space = obj.metadata.namespace
    if not secrets:
        return (
            f"If {pull.host} wants a login, name a Secret of type kubernetes.io/dockerconfigjson "
            f"of namespace {space} in {value}"
        )
    return (
        f"Correct the login for {pull.host} in Secret {', '.join(secrets)} of namespace {space}, "
        f"or set {value}"
    )


def _value(obj: Staffed, container: str) -> str:
    """What says which image it is: a chart's value, a field of the kind, the operator's setting."""
    spec = obj.spec.template.spec
    for part in ("containers", "initContainers"):
        for one in _items(spec, part):
            if one.get("name") == container and one.get("image"):
                return f"image of container {container} in spec.template.spec.{part}"
    fields = _fields(obj)
    daemon = next(iter(fields))
    named = container if container in fields and fields[container].get("image") else daemon
    field = f"spec.{named}.image"
    if container not in fields and container == "sssd":
        return "global.imageRegistry of the chart slurm-operator (argument --slurm-image)"
    if not fields[named].get("image"):
        return (
            "global.imageRegistry of the chart slurm-operator (argument --slurm-image), which "
            f"chose it, or {field}"
        )
    if _by_chart(obj):
        return f"global.imageRegistry of the chart slurm, or the image in its values ({field})"
    return field


def _fields(obj: Staffed) -> Mapping[str, Json]:
    """Fields of the kind that say something of its containers, the daemon's first."""
    if isinstance(obj, NodeSet):
        return {"slurmd": obj.spec.slurmd, "logfile": obj.spec.logfile}
    if isinstance(obj, Controller):
        found = {"slurmctld": obj.spec.slurmctld, "reconfigure": obj.spec.reconfigure}
        return {**found, "logfile": obj.spec.logfile}
    if isinstance(obj, LoginSet):
        return {"login": obj.spec.login, "initconf": obj.spec.initconf}
    if isinstance(obj, RestApi):
        return {"slurmrestd": obj.spec.slurmrestd}
    return {"slurmdbd": obj.spec.slurmdbd}


def _by_chart(obj: Staffed) -> bool:
    return (obj.metadata.labels or {}).get(_MANAGED_BY) == "Helm"


def _items(spec: Json, field: str) -> list[Json]:
    """Items of a list that a user writes, as far as they are objects."""
    found = cast("list[Any]", spec.get(field) or [])
    return [cast("Json", one) for one in found if isinstance(one, dict)]
