"""What Kubernetes has below the fields that our schemas leave open, as far as users write it.

Each row: the field, a legal value, and values of the wrong shape that our schema lets pass.
Source: Kubernetes API reference 1.36, Container, PodSpec, ServiceSpec, PersistentVolumeClaim v1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, cast

_PROBE = {"httpGet": {"path": "/sample", "port": 1234}, "periodSeconds": 7}
_SOME = {"matchLabels": {"sample": "yes"}}

CONTAINER: Final[dict[str, Any]] = {
    "args": ["-vvv"],
    "command": ["sample"],
    "env": [{"name": "SAMPLE", "value": "yes"}],
    "envFrom": [{"configMapRef": {"name": "files"}}],
    "imagePullPolicy": "Always",
    "lifecycle": {"postStart": {"exec": {"command": ["true"]}}},
    "livenessProbe": _PROBE,
    "ports": [{"name": "sample", "containerPort": 1234}],
    "readinessProbe": _PROBE,
    "resources": {"limits": {"cpu": "2", "memory": "1Gi"}},
    "securityContext": {"readOnlyRootFilesystem": True},
    "startupProbe": _PROBE,
    "stdin": True,
    "terminationMessagePath": "/dev/sample",
    "terminationMessagePolicy": "File",
    "tty": True,
    "volumeMounts": [{"name": "slurm-etc", "mountPath": "/sample"}],
    "workingDir": "/sample",
}
POD: Final[dict[str, Any]] = {
    "affinity": {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "sample", "labelSelector": _SOME}
            ]
        }
    },
    "automountServiceAccountToken": True,
    "containers": [{"name": "sample", "image": "sample"}],
    "dnsConfig": {"searches": ["sample.example.com"]},
    "dnsPolicy": "None",
    "enableServiceLinks": True,
    "hostAliases": [{"ip": "192.0.2.1", "hostnames": ["sample"]}],
    "hostIPC": True,
    "hostPID": True,
    "imagePullSecrets": [{"name": "sample"}],
    "initContainers": [{"name": "sample", "image": "sample"}],
    "nodeSelector": {"sample": "yes"},
    "os": {"name": "linux"},
    "priorityClassName": "system-node-critical",
    "readinessGates": [{"conditionType": "example.com/sample"}],
    "runtimeClassName": "sample",
    "schedulerName": "sample",
    "securityContext": {"supplementalGroups": [7]},
    "serviceAccountName": "sample",
    "setHostnameAsFQDN": True,
    "shareProcessNamespace": True,
    "terminationGracePeriodSeconds": 77,
    "tolerations": [{"key": "sample", "operator": "Exists"}],
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "topologyKey": "sample",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": _SOME,
        }
    ],
    "volumes": [{"name": "sample", "emptyDir": {}}],
}
SERVICE: Final[dict[str, Any]] = {
    "allocateLoadBalancerNodePorts": False,
    "externalIPs": ["192.0.2.1"],
    "externalTrafficPolicy": "Local",
    "internalTrafficPolicy": "Local",
    "ipFamilyPolicy": "PreferDualStack",
    "loadBalancerClass": "example.com/sample",
    "loadBalancerSourceRanges": ["192.0.2.0/24"],
    "ports": [{"name": "sample", "port": 1234}],
    "publishNotReadyAddresses": True,
    "selector": {"sample": "yes"},
    "sessionAffinity": "ClientIP",
    "trafficDistribution": "PreferClose",
    "type": "NodePort",
}
NEEDS_LOAD_BALANCER: Final = frozenset(
    {"allocateLoadBalancerNodePorts", "loadBalancerClass", "loadBalancerSourceRanges"}
)
NEEDS_OUTSIDE: Final = frozenset({"externalTrafficPolicy"})
CLAIM: Final[dict[str, Any]] = {
    "metadata": {"name": "sample", "labels": {"sample": "yes"}},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


def table(path: str) -> dict[str, Any]:
    """The fields below an open property."""
    if path.endswith("template.spec"):
        return POD
    if path.endswith("service.spec"):
        return SERVICE
    return CLAIM if path.endswith("volumeClaimTemplates[]") else CONTAINER


def misshapen(legal: Any) -> Iterator[Any]:
    """Values of another shape than a legal one, at any depth of its first items."""
    match legal:
        case bool():
            yield "sample"
        case str() | int():
            # No text, no number, no quantity and no port.
            yield True
        case list():
            yield "sample"
            yield [True]
            yield {"sample": 7}
            for inner in misshapen(legal[0]) if legal else ():
                yield [inner]
        case dict():
            yield "sample"
            yield [True]
            for key, value in cast("dict[str, Any]", legal).items():
                for inner in misshapen(value):
                    yield {**cast("dict[str, Any]", legal), key: inner}
        case _:
            return
