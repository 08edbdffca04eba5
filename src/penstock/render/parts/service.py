"""Services: one generated port on top of what the user asks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.api.kubernetes.meta import Json
from penstock.api.kubernetes.spec_parts import ServiceSpec
from penstock.render.parts import merge
from penstock.render.parts.pod_template import object_metadata


@dataclass(frozen=True, slots=True)
class Port:
    """A port of a Service that leads to the container port of the same or another name.

    The only port of a Service may have no name.
    """

    name: str
    number: int
    target: str
    node_port: int | None = None

    def manifest(self) -> Json:
        """As in ServiceSpec's `ports`."""
        out: Json = {"port": self.number, "protocol": "TCP", "targetPort": self.target}
        if self.name:
            out["name"] = self.name
        if self.node_port is not None:
            out["nodePort"] = self.node_port
        return out


def service(
    name: str,
    namespace: str,
    selector: Mapping[str, str],
    ports: tuple[Port, ...],
    *owners: Json,
    labels: Mapping[str, str] | None = None,
    user: ServiceSpec | None = None,
    headless: bool = False,
    unready: bool = False,
) -> Json:
    """A Service.

    The user's spec is the base; of two ports with the same name or number ours stays, with the
    user's other fields; the selector is joined and ours wins. `externalIPs` never pass: they can
    take over other people's traffic (CVE-2020-8554). A headless one gives addresses of pods that
    are not ready too, since Slurm's daemons need their names while they start; another one does
    if it is `unready` and the user does not say otherwise.
    """
    wish = user or ServiceSpec()
    spec: Json = {k: merge.prune(v) for k, v in wish.spec.items() if v is not None}
    spec.pop("externalIPs", None)
    spec["selector"] = {**spec.get("selector", {}), **selector}
    spec["ports"] = _ports(merge.items(spec.get("ports")), ports)
    if headless:
        spec["clusterIP"] = "None"
        spec["publishNotReadyAddresses"] = True
    if unready:
        spec.setdefault("publishNotReadyAddresses", True)
    metadata = object_metadata(
        name, namespace, {**(wish.metadata.labels or {}), **(labels or {})}, *owners
    )
    if wish.metadata.annotations:
        metadata["annotations"] = dict(wish.metadata.annotations)
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def _ports(user: list[Json], ours: tuple[Port, ...]) -> list[Json]:
    out = list(user)
    for port in ours:
        generated = port.manifest()
        same = [
            entry
            for entry in out
            if entry.get("name") == port.name
            or (entry.get("port"), entry.get("protocol", "TCP")) == (port.number, "TCP")
        ]
        out = [entry for entry in out if entry not in same]
        for entry in same:
            generated = {**entry, **generated}
        out.append(generated)
    return out
