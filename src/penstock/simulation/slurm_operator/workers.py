"""Workers as slurm-operator makes them, and all of a cluster."""

from __future__ import annotations

import copy

from penstock.api.kubernetes.meta import Json
from penstock.simulation.slurm_operator.daemons import Daemons
from penstock.simulation.slurm_operator.parts import (
    amounts,
    feature,
    logfile,
    memory,
    mount,
    owner,
    port,
    projected,
    sub,
)

REVISION = "7c9f4b6d5c"
"""Hash of the worker pods: what it is made from, nobody but slurm-operator knows."""
SSH = (
    ("/etc/ssh/sshd_config", "sshd_config", "ssh-config"),
    ("/etc/sssd/sssd.conf", "sssd.conf", "sssd-conf"),
)


def _as_go(fields: Json) -> Json:
    """What Go leaves of a structure: no empty lists and texts, but pointers to empty ones."""
    return {
        key: one
        for key, one in fields.items()
        if one not in ("", []) and (one is not None or key == "containers")
    }


class Upstream(Daemons):
    """slurm-operator, once."""

    def made(self) -> list[Json]:
        """All that it makes, but for what Kubernetes makes of it and for worker pods."""
        return [
            *self.slurmctld_objects(),
            *(one for found in self.of("Accounting") for one in self.slurmdbd_objects(found)),
            *(one for found in self.of("RestApi") for one in self.slurmrestd_objects(found)),
            *(one for found in self.of("LoginSet") for one in self.login_objects(found)),
            *self.worker_objects(),
        ]

    def status(self, nodeset: Json) -> Json:
        """What it writes to a NodeSet's status when all is settled."""
        count = nodeset["spec"]["replicas"]
        meta = nodeset["metadata"]
        counts = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "desired")
        return {
            **dict.fromkeys(counts, count),
            "slurmIdle": count,
            "observedGeneration": meta["generation"],
            "nodeSetHash": REVISION,
            "selector": f"app.kubernetes.io/instance={meta['name']},app.kubernetes.io/name=slurmd",
        }

    def worker_objects(self) -> list[Json]:
        """What workers of a cluster share, and what their templates were."""
        nodesets = sorted(self.of("NodeSet"), key=lambda one: one["metadata"]["name"])
        if not nodesets:
            return []
        owners = [owner(one, controller=False) for one in nodesets]
        shared: Json = {"namespace": self.namespace, "ownerReferences": owners}
        select = {"app.kubernetes.io/name": "slurmd", "slinky.slurm.net/cluster": self.name}
        protect = {
            "nodeset.slinky.slurm.net/pod-protect": "true",
            "slinky.slurm.net/cluster": self.name,
        }
        return [
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": f"slurm-workers-{self.name}", **shared},
                "spec": {
                    "clusterIP": "None",
                    "publishNotReadyAddresses": True,
                    "selector": select,
                    "ports": [port("slurmd", 6818)],
                },
            },
            {
                "apiVersion": "policy/v1",
                "kind": "PodDisruptionBudget",
                "metadata": {"name": f"slurm-workers-pdb-{self.name}", **shared},
                "spec": {"maxUnavailable": 0, "selector": {"matchLabels": protect}},
            },
            *(self._revision(one) for one in nodesets),
        ]

    def _revision(self, nodeset: Json) -> Json:
        """As Go writes the structures that it knows: with fields that nobody filled."""
        spec, meta = nodeset["spec"], nodeset["metadata"]
        template = copy.deepcopy(sub(spec, "template"))
        pod: Json = {"containers": None, **sub(template, "spec")}
        data: Json = {
            "template": {"metadata": sub(template, "metadata"), "spec": _as_go(pod)},
            "slurmd": {"name": "", "resources": {}, **_as_go(amounts(sub(spec, "slurmd")))},
            "logfile": {"name": "", "resources": {}, **_as_go(sub(spec, "logfile"))},
        }
        if spec.get("ssh"):
            data["ssh"] = _as_go(spec["ssh"])
        plain: Json = {
            "extraConf": spec.get("extraConf"),
            "ordinalPadding": spec.get("ordinalPadding") or 0,
            "oversubscribeNode": spec.get("oversubscribeNode") or False,
        }
        return {
            "apiVersion": "apps/v1",
            "kind": "ControllerRevision",
            "metadata": {
                "name": f"{meta['name']}-{REVISION}",
                "namespace": self.namespace,
                "labels": {**sub(meta, "labels"), "controller.kubernetes.io/hash": REVISION},
                "annotations": dict(sub(meta, "annotations")),
                "ownerReferences": [owner(nodeset)],
            },
            "data": {
                "spec": {
                    **{key: {**value, "$patch": "replace"} for key, value in data.items()},
                    **{key: value for key, value in plain.items() if value is not None},
                }
            },
            "revision": 1,
        }

    def _ssh_volumes(self, name: str, ssh: Json) -> list[Json]:
        files: Json = {"key": "sshd_config", "path": "sshd_config", "mode": 0o600}
        config: Json = {"name": f"{name}-ssh-config", "items": [files]}
        key = self.key(ssh["sssdConfRef"], "sssd.conf", 0o600)
        return [
            projected("ssh-config", 0o600, [{"configMap": config}]),
            projected("sssd-conf", 0o600, [key]),
        ]

    def worker(self, nodeset: Json, ordinal: int) -> Json:
        """A worker pod as it makes it."""
        spec, meta = nodeset["spec"], nodeset["metadata"]
        name = f"{meta['name']}-{ordinal}"
        user: Json = sub(spec, "template").get("spec") or {}
        host = f"{user['hostname']}{ordinal}" if user.get("hostname") else name
        stop = (
            "scontrol update nodename=$(hostname) state=down "
            "reason='slurm-operator: Pod is terminating';"
        )
        probe = {"periodSeconds": 10, "failureThreshold": 6}
        ssh: Json = sub(spec, "ssh") if sub(spec, "ssh").get("enabled") else {}
        words = f"Features={feature(nodeset)} Topology='\"$SLINKY_TOPOLOGY\"'"
        words = f"{words} {spec.get('extraConf') or ''}".strip()
        limits: Json = sub(sub(spec, "slurmd"), "resources").get("limits") or {}
        container: Json = {
            "name": "slurmd",
            "args": ["-Z", "--conf-server", self.server(), "--conf", f"'{words}'"],
            "env": [
                {
                    "name": "SLINKY_TOPOLOGY",
                    "valueFrom": {
                        "fieldRef": {
                            "fieldPath": "metadata.annotations['topology.slinky.slurm.net/spec']"
                        }
                    },
                },
                {"name": "POD_CPUS", "value": "1" if limits.get("cpu") else "0"},
                {"name": "POD_MEMORY", "value": str(limits.get("memory", "0")).removesuffix("Mi")},
            ],
            "ports": [
                {"name": "slurmd", "containerPort": 6818, "protocol": "TCP"},
                *([{"name": "ssh", "containerPort": 22, "protocol": "TCP"}] if ssh else []),
            ],
            "startupProbe": {**self.probe("/livez", "slurmd"), **probe},
            "livenessProbe": {**self.probe("/livez", "slurmd"), **probe},
            "readinessProbe": self.probe("/readyz", "slurmd"),
            "lifecycle": {"preStop": {"exec": {"command": ["/usr/bin/sh", "-c", stop]}}},
            "securityContext": {
                "privileged": True,
                "capabilities": {"add": ["BPF", "NET_ADMIN", "SYS_ADMIN", "SYS_NICE"]},
            },
            "volumeMounts": [
                mount("slurm-etc", "/etc/slurm", read_only=True),
                mount("slurm-logfile", "/var/log/slurm"),
                *(
                    {"name": volume, "mountPath": path, "subPath": file, "readOnly": True}
                    for path, file, volume in (SSH if ssh else ())
                ),
            ],
        }
        key = self.key(self.controller["spec"]["slurmKeyRef"], "slurm.key")
        pod = self.pod(
            nodeset,
            "slurmd",
            container,
            volumes=[
                projected("slurm-etc", 0o600, [key]),
                memory("slurm-logfile"),
                *(self._ssh_volumes(meta["name"], ssh) if ssh else []),
            ],
            init=[logfile("slurmd", sub(spec, "logfile"), spec["slurmd"])],
            extra={
                "enableServiceLinks": False,
                "hostname": host,
                "subdomain": f"slurm-workers-{self.name}",
                "dnsConfig": self.search(),
                "tolerations": [
                    {
                        "key": "nodeset.slinky.slurm.net/worker",
                        "operator": "Equal",
                        "effect": "NoExecute",
                    }
                ],
            },
            hashes={"topology.slinky.slurm.net/spec": ""},
        )
        pod["spec"]["hostname"] = host
        pod["metadata"]["labels"] |= {
            "slinky.slurm.net/cluster": self.name,
            "nodeset.slinky.slurm.net/pod-name": name,
            "nodeset.slinky.slurm.net/pod-index": str(ordinal),
            "nodeset.slinky.slurm.net/pod-hostname": host,
            "nodeset.slinky.slurm.net/scaling-mode": "StatefulSet",
            "controller.kubernetes.io/hash": REVISION,
        }
        pod["metadata"] |= {
            "name": name,
            "namespace": self.namespace,
            "ownerReferences": [owner(nodeset)],
        }
        return {"apiVersion": "v1", "kind": "Pod", **pod}
