"""What slurm-operator makes every object of: labels, owners, pods with a user's template."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from penstock.api.kubernetes.meta import Json
from penstock.simulation.slurm_operator.parts import (
    http,
    labels,
    overlaid,
    owner,
    port,
    secret_hash,
    spoken,
    sub,
)


@dataclass
class Cluster:
    """The objects of the kinds, and what they name, as the API server has them.

    `host_keys` is what the logins' sshd has: no keys when it is not to run. Without `http` the
    images are of a release whose slurmctld and slurmd serve none, so their probes only connect.
    """

    objects: list[Json]
    host_keys: Mapping[str, str] = field(default_factory=dict[str, str])
    http: bool = True
    by: dict[tuple[str, str], Json] = field(default_factory=dict[tuple[str, str], Json])

    def __post_init__(self) -> None:
        for one in self.objects:
            self.by[one["kind"], one["metadata"]["name"]] = one
        self.controller = self.of("Controller")[0]
        self.namespace: str = self.controller["metadata"]["namespace"]
        self.name: str = self.controller["metadata"]["name"]

    def probe(self, path: str, port: str) -> Json:
        """What a probe of slurmctld or slurmd asks."""
        return http(path, port) if self.http else {"tcpSocket": {"port": port}}

    def of(self, kind: str) -> list[Json]:
        """The objects of a kind."""
        return [one for one in self.objects if one["kind"] == kind]

    def cluster_name(self) -> str:
        """Slurm's name of the cluster."""
        return self.controller["spec"].get("clusterName") or f"{self.namespace}_{self.name}"

    def server(self) -> str:
        """Where slurmd and sackd fetch their configuration."""
        return f"{self.name}-controller.{self.namespace}:6817"

    def search(self) -> Json:
        """DNS settings with which workers are found."""
        domain = f"slurm-workers-{self.name}.{self.namespace}.svc.cluster.local"
        return {"searches": [domain]}

    def data(self, name: str) -> Mapping[str, str]:
        """The data of a Secret or ConfigMap that is named."""
        found = self.by.get(("Secret", name)) or self.by.get(("ConfigMap", name)) or {}
        return cast("Mapping[str, str]", sub(found, "data"))

    def key(self, ref: Json, path: str, mode: int | None = None) -> Json:
        """One key of a Secret as a file."""
        item: Json = {"key": ref["key"], "path": path} | ({"mode": mode} if mode else {})
        return {"secret": {"name": ref["name"], "items": [item]}}

    def value_hash(self, ref: Json) -> str:
        """Hash of one key of a Secret, whatever else is in it."""
        return secret_hash({ref["key"]: self.data(ref["name"])[ref["key"]]})

    def keys(self, spec: Json) -> dict[str, str]:
        """Hashes of the two keys."""
        return {
            f"slinky.slurm.net/{kind}-key-hash": secret_hash(self.data(ref["name"]))
            for kind, ref in (("slurm", spec["slurmKeyRef"]), ("jwt", spec["jwtKeyRef"]))
        }

    def pod(
        self,
        of: Json,
        daemon: str,
        container: Json,
        *,
        volumes: list[Json],
        init: Iterable[Json] = (),
        extra: Json | None = None,
        hashes: Mapping[str, str] | None = None,
    ) -> Json:
        """A pod's template. Marks of the object itself go into it as well."""
        meta, template = of["metadata"], sub(of["spec"], "template")
        user: Json = spoken(sub(template, "spec"))
        mine = overlaid(container, of["spec"].get(daemon) or {}, {})
        spec: Json = {
            "automountServiceAccountToken": False,
            **(extra or {}),
            **{k: v for k, v in user.items() if k not in ("containers", "volumes")},
            "initContainers": [*init, *(user.get("initContainers") or [])],
            "containers": [mine, *(user.get("containers") or [])],
            "volumes": [*volumes, *(user.get("volumes") or [])],
        }
        wishes: Json = sub(template, "metadata")
        return {
            "metadata": {
                "labels": {
                    **sub(meta, "labels"),
                    **sub(wishes, "labels"),
                    **labels(daemon, meta["name"]),
                },
                "annotations": {
                    **sub(meta, "annotations"),
                    **sub(wishes, "annotations"),
                    **(hashes or {}),
                    "kubectl.kubernetes.io/default-container": daemon,
                },
            },
            "spec": spec,
        }

    def owned(
        self, of: Json, version: str, kind: str, name: str, daemon: str, **fields: Any
    ) -> Json:
        """An object with the labels and marks of the one that it is made for."""
        meta = of["metadata"]
        return {
            "apiVersion": version,
            "kind": kind,
            "metadata": {
                "name": name,
                "namespace": self.namespace,
                "labels": {**sub(meta, "labels"), **labels(daemon, meta["name"])},
                "annotations": dict(sub(meta, "annotations")),
                "ownerReferences": [owner(of)],
            },
            **fields,
        }

    def service(
        self, of: Json, name: str, daemon: str, number: int, select: Json, *, headless: bool = False
    ) -> Json:
        """A daemon's Service."""
        user: Json = spoken(sub(sub(of["spec"], "service"), "spec"))
        spec: Json = {**user, "selector": dict(select), "ports": [port(daemon, number)]}
        if headless:
            spec = {
                "selector": dict(select),
                "ports": [port(daemon, number)],
                "clusterIP": "None",
                "publishNotReadyAddresses": True,
            }
        return self.owned(of, "v1", "Service", name, daemon, spec=spec)

    def stateful(
        self,
        of: Json,
        name: str,
        service: str,
        select: Json,
        pod: Json,
        *,
        pvcs: list[Json] | None = None,
        policy: str = "OrderedReady",
    ) -> Json:
        """A StatefulSet."""
        spec: Json = {
            "replicas": 1,
            "revisionHistoryLimit": 0,
            "serviceName": service,
            "podManagementPolicy": policy,
            "selector": {"matchLabels": dict(select)},
            "template": self._named(pod, name),
        }
        if pvcs:
            spec["volumeClaimTemplates"] = pvcs
        daemon = select["app.kubernetes.io/name"]
        return self.owned(of, "apps/v1", "StatefulSet", name, daemon, spec=spec)

    def _named(self, pod: Json, name: str) -> Json:
        """Its templates have the workload's name and namespace."""
        return {**pod, "metadata": {**pod["metadata"], "name": name, "namespace": self.namespace}}

    def deployment(
        self, of: Json, name: str, daemon: str, select: Json, pod: Json, replicas: int
    ) -> Json:
        """A Deployment."""
        spec: Json = {
            "replicas": replicas,
            "revisionHistoryLimit": 0,
            "selector": {"matchLabels": dict(select)},
            "template": self._named(pod, name),
        }
        return self.owned(of, "apps/v1", "Deployment", name, daemon, spec=spec)
