"""An image that a Kubernetes node cannot get: the kubelet's words, and the value to set."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, cast

from penstock.api.kubernetes.meta import Json
from penstock.decide.observed.job_text import printable
from penstock.model.image_sources import ImageSources

REASONS = frozenset({"ErrImageNeverPull", "ErrImagePull", "ImagePullBackOff", "InvalidImageName"})
"""Waiting reasons of a container that are about its image. Source: kubelet."""

_LETTERS = 300
_WRAPPING = re.compile(
    r"rpc error: code = \w+ desc = |failed to pull and unpack image \"[^\"]*\": "
    r"|failed to resolve (?:reference|image)(?: \"[^\"]*\")?: |failed to do request: "
    # The port of the asking side is another one at each attempt.
    r"|(?<=tcp )\S+:\d+->|(?<=udp )\S+:\d+->"
)
_LOCAL = "localhost/"
_NEEDS_LOGIN = re.compile(
    r"unauthorized|authori[sz]ation|authentication|denied|forbidden|\b40[13]\b"
)


@dataclass(frozen=True, slots=True)
class Pull:
    """The kubelet's report about a container whose image it cannot pull."""

    container: str
    image: str
    reason: str
    message: str

    @property
    def cause(self) -> str:
        """The kubelet's words on one line, the same ones at each attempt."""
        cause = printable(_WRAPPING.sub("", self.message.strip()))
        return cause if len(cause) <= _LETTERS else f"{cause[:_LETTERS]}..."

    @property
    def host(self) -> str:
        """The registry, as the image names it; Docker Hub where it names none."""
        host, found, _ = self.image.partition("/")
        named = found and ("." in host or ":" in host or host == "localhost")
        return host if named else "docker.io"


def advice(of: ImageSources, pull: Pull) -> str:
    """The next step, as one sentence without its full stop."""
    value, cause = _value(of, pull.container), pull.message.lower()
    if pull.reason == "InvalidImageName":
        return f"Correct {value}"
    if pull.reason == "ErrImageNeverPull":
        return f"Load the image into the Kubernetes nodes, or set its imagePullPolicy or {value}"
    if "http response to https client" in cause:
        return (
            f"Registry {pull.host} serves plain HTTP: configure the container runtime of the "
            f"Kubernetes nodes for that, or set {value}"
        )
    if "x509" in cause or "certificate" in cause:
        return (
            f"Have the container runtime of the Kubernetes nodes trust the certificate of "
            f"{pull.host}, or set {value}"
        )
    if pull.image.startswith(_LOCAL):
        return f"Load the image into the Kubernetes nodes, or set {value}"
    if _NEEDS_LOGIN.search(cause):
        return _login(of, pull)
    if re.search(r"not found|manifest unknown|name unknown|\b404\b", cause):
        return f"Push the image, or set {value}"
    if "no space left" in cause:
        return "Make room on the disk of that Kubernetes node"
    return f"Make registry {pull.host} reachable from the Kubernetes nodes, or set {value}"


def _login(of: ImageSources, pull: Pull) -> str:
    secrets = [str(one.get("name")) for one in _items(of.template, "imagePullSecrets")]
    field = "spec.template.spec.imagePullSecrets"
    value = f"imagePullSecrets of the chart slurm ({field})" if of.by_chart else field
    space = of.namespace
    if not secrets:
        return (
            f"If {pull.host} wants a login, name a Secret of type kubernetes.io/dockerconfigjson "
            f"of namespace {space} in {value}"
        )
    return (
        f"Correct the login for {pull.host} in Secret {', '.join(secrets)} of namespace {space}, "
        f"or set {value}"
    )


def _value(of: ImageSources, container: str) -> str:
    """Return the setting that names the image: a chart's value, a field, or the operator's own."""
    spec = of.template
    for part in ("containers", "initContainers"):
        for one in _items(spec, part):
            if one.get("name") == container and one.get("image"):
                return f"image of container {container} in spec.template.spec.{part}"
    fields = of.fields
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
    if of.by_chart:
        return f"global.imageRegistry of the chart slurm, or the image in its values ({field})"
    return field


def _items(spec: Json, field: str) -> list[Json]:
    """Items of a list that a user writes, as far as they are objects."""
    found = cast("list[Any]", spec.get(field) or [])
    return [cast("Json", one) for one in found if isinstance(one, dict)]
