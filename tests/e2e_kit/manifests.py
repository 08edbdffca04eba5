"""Objects that tests apply. Each call gives a new one, to be changed at will."""

from __future__ import annotations

from typing import Any

from e2e_kit.api import Json

GROUP = "slinky.slurm.net/v1beta1"
NAME = "slurm"
EXTRA_CONF = "ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\n"
"""For hosts with version 1 of cgroups."""


def of(kind: str, name: str, **spec: Any) -> Json:
    """An object of one of the kinds."""
    return {"apiVersion": GROUP, "kind": kind, "metadata": {"name": name}, "spec": spec}


def namespace(name: str) -> Json:
    """A namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def config_map(name: str, **data: str) -> Json:
    """A ConfigMap."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def slurm_files() -> Json:
    """The ConfigMap that `controller` names."""
    return config_map("slurm-files", **{"cgroup.conf": "CgroupPlugin=disabled\n"})


def controller(extra_conf: str = EXTRA_CONF, **spec: Any) -> Json:
    """A Controller named `slurm`."""
    return of(
        "Controller",
        NAME,
        **{
            "clusterName": "test",
            "persistence": {"enabled": False},
            "configFileRefs": [{"name": "slurm-files"}],
            "extraConf": extra_conf,
            **spec,
        },
    )


def restapi(name: str = NAME, **spec: Any) -> Json:
    """A RestApi of it."""
    return of("RestApi", name, **{"controllerRef": {"name": NAME}, **spec})


def nodeset(replicas: int, name: str = "compute", **spec: Any) -> Json:
    """A NodeSet of it whose workers fit on one machine."""
    return of(
        "NodeSet",
        name,
        **{
            "controllerRef": {"name": NAME},
            "replicas": replicas,
            "oversubscribeNode": True,
            "partition": {"enabled": True, "config": "Default=YES MaxTime=UNLIMITED"},
            **spec,
        },
    )


def on_shared_disk(nodeset: Json, path: str) -> Json:
    """A NodeSet whose workers have a folder of the machine as /shared: it outlives them."""
    spec = nodeset["spec"]
    volume = {"name": "shared", "hostPath": {"path": path, "type": "Directory"}}
    spec["template"] = {"spec": {"volumes": [volume]}}
    spec["slurmd"] = {"volumeMounts": [{"name": "shared", "mountPath": "/shared"}]}
    return nodeset


def loginset(key: str = "", **spec: Any) -> Json:
    """A LoginSet of it; `key` may log in as root."""
    return of(
        "LoginSet",
        "login",
        **{"controllerRef": {"name": NAME}, "rootSshAuthorizedKeys": key, **spec},
    )
