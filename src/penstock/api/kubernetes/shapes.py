"""Shapes of fields that our schema leaves open: containers, pod specs, Service specs, PVCs.

The API server stores such fields as they are, so a text where a list belongs reaches the operator.
It is reported to the user before anything is rendered from it. A value of the right shape that is
wrong is rejected by the API server when the object is written.
Source: Kubernetes API reference, Container, PodSpec, ServiceSpec, PersistentVolumeClaim v1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any, Final, cast

from penstock.api.kubernetes import quantity
from penstock.api.kubernetes.meta import Json


class Leaf(Enum):
    """A value without parts, by the description for the user."""

    TEXT = "text (a number or a word like `yes` in quotes)"
    NUMBER = "a whole number without quotes"
    FLAG = "true or false without quotes"
    QUANTITY = quantity.FORM
    PORT = "a number without quotes, or the name of a port"
    MAPPING = "a mapping"


TEXT, NUMBER, FLAG, QUANTITY, PORT, MAPPING = Leaf
Shape = Leaf | list[Any] | Mapping[str, Any]
"""A leaf; a list of one shape; or the shapes of a mapping's fields, with `name!` for one that must
be there and `*` for all that have no other. Fields that are not named may be anything."""

_TEXTS: Final[Shape] = {"*": TEXT}
_QUANTITIES: Final[Shape] = {"*": QUANTITY}
_LIST: Final[Shape] = [TEXT]
_RESOURCES: Final[Shape] = {
    "limits": _QUANTITIES,
    "requests": _QUANTITIES,
    "claims": [{"name!": TEXT}],
}
_EXEC: Final[Shape] = {"command": [TEXT]}
_HANDLER: Final[Shape] = {
    "exec": _EXEC,
    "httpGet": {"path": TEXT, "host": TEXT, "scheme": TEXT, "httpHeaders": [MAPPING], "port": PORT},
    "tcpSocket": {"host": TEXT, "port": PORT},
    "grpc": MAPPING,
    "sleep": MAPPING,
}
_PROBE: Final[Shape] = {
    **_HANDLER,
    **dict.fromkeys(
        (
            "initialDelaySeconds",
            "timeoutSeconds",
            "periodSeconds",
            "successThreshold",
            "failureThreshold",
            "terminationGracePeriodSeconds",
        ),
        NUMBER,
    ),
}
CONTAINER: Final[Shape] = {
    **dict.fromkeys(
        ("name", "imagePullPolicy", "workingDir", "restartPolicy"),
        TEXT,
    ),
    **dict.fromkeys(("terminationMessagePath", "terminationMessagePolicy"), TEXT),
    **dict.fromkeys(("stdin", "stdinOnce", "tty"), FLAG),
    **dict.fromkeys(("args", "command"), _LIST),
    **dict.fromkeys(("livenessProbe", "readinessProbe", "startupProbe"), _PROBE),
    "env": [{"name!": TEXT, "value": TEXT, "valueFrom": MAPPING}],
    "envFrom": [{"prefix": TEXT, "configMapRef": {"name": TEXT}, "secretRef": {"name": TEXT}}],
    "lifecycle": {"postStart": _HANDLER, "preStop": _HANDLER, "stopSignal": TEXT},
    "ports": [{"name": TEXT, "protocol": TEXT, "containerPort": NUMBER, "hostPort": NUMBER}],
    "resizePolicy": [MAPPING],
    "resources": _RESOURCES,
    "securityContext": {
        **dict.fromkeys(
            ("privileged", "readOnlyRootFilesystem", "runAsNonRoot", "allowPrivilegeEscalation"),
            FLAG,
        ),
        **dict.fromkeys(("runAsUser", "runAsGroup"), NUMBER),
        "capabilities": {"add": [TEXT], "drop": [TEXT]},
    },
    "volumeDevices": [{"name!": TEXT, "devicePath!": TEXT}],
    "volumeMounts": [
        {"name!": TEXT, "mountPath!": TEXT, "subPath": TEXT, "subPathExpr": TEXT, "readOnly": FLAG}
    ],
}
_SELECTOR: Final[Shape] = {"matchLabels": _TEXTS, "matchExpressions": [MAPPING]}
_TERM: Final[Shape] = {"topologyKey": TEXT, "labelSelector": _SELECTOR, "namespaces": [TEXT]}
_NEAR: Final[Shape] = {
    "requiredDuringSchedulingIgnoredDuringExecution": [_TERM],
    "preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": NUMBER, "podAffinityTerm": _TERM}
    ],
}
_REQUIREMENTS: Final[Shape] = [{"key": TEXT, "operator": TEXT, "values": [TEXT]}]
_NODES: Final[Shape] = {
    "requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchExpressions": _REQUIREMENTS, "matchFields": _REQUIREMENTS}]
    }
}
POD: Final[Shape] = {
    **dict.fromkeys(
        ("dnsPolicy", "nodeName", "preemptionPolicy", "priorityClassName", "restartPolicy"),
        TEXT,
    ),
    **dict.fromkeys(("runtimeClassName", "schedulerName", "serviceAccountName", "subdomain"), TEXT),
    **dict.fromkeys(("automountServiceAccountToken", "enableServiceLinks", "hostIPC"), FLAG),
    **dict.fromkeys(("hostPID", "hostUsers", "setHostnameAsFQDN", "shareProcessNamespace"), FLAG),
    **dict.fromkeys(("activeDeadlineSeconds", "priority", "terminationGracePeriodSeconds"), NUMBER),
    **{key: [{**CONTAINER, "name!": TEXT}] for key in ("containers", "initContainers")},
    "imagePullSecrets": [{"name": TEXT}],
    "affinity": {"nodeAffinity": _NODES, "podAffinity": _NEAR, "podAntiAffinity": _NEAR},
    "dnsConfig": {"nameservers": [TEXT], "searches": [TEXT], "options": [MAPPING]},
    "hostAliases": [{"ip": TEXT, "hostnames": [TEXT]}],
    "nodeSelector": _TEXTS,
    "os": {"name": TEXT},
    "overhead": _QUANTITIES,
    "readinessGates": [{"conditionType": TEXT}],
    "resourceClaims": [{"name!": TEXT}],
    "resources": _RESOURCES,
    "schedulingGates": [{"name!": TEXT}],
    "securityContext": {
        **dict.fromkeys(("runAsUser", "runAsGroup", "fsGroup"), NUMBER),
        "runAsNonRoot": FLAG,
        "supplementalGroups": [NUMBER],
        "sysctls": [{"name!": TEXT, "value": TEXT}],
    },
    "tolerations": [
        {"key": TEXT, "operator": TEXT, "value": TEXT, "effect": TEXT, "tolerationSeconds": NUMBER}
    ],
    "topologySpreadConstraints": [
        {
            "maxSkew": NUMBER,
            "topologyKey": TEXT,
            "whenUnsatisfiable": TEXT,
            "labelSelector": _SELECTOR,
        }
    ],
    "volumes": [{"name!": TEXT, "*": MAPPING}],
}
SERVICE: Final[Shape] = {
    **dict.fromkeys(
        ("type", "clusterIP", "loadBalancerClass", "loadBalancerIP", "sessionAffinity"), TEXT
    ),
    **dict.fromkeys(("externalTrafficPolicy", "internalTrafficPolicy", "ipFamilyPolicy"), TEXT),
    **dict.fromkeys(("externalName", "trafficDistribution"), TEXT),
    **dict.fromkeys(("allocateLoadBalancerNodePorts", "publishNotReadyAddresses"), FLAG),
    **dict.fromkeys(("clusterIPs", "externalIPs", "ipFamilies", "loadBalancerSourceRanges"), _LIST),
    "ports": [
        {"name": TEXT, "protocol": TEXT, "appProtocol": TEXT, "port": NUMBER, "nodePort": NUMBER}
    ],
    "selector": _TEXTS,
    "sessionAffinityConfig": MAPPING,
}
PVC: Final[Shape] = {
    "metadata": {"name": TEXT, "labels": _TEXTS, "annotations": _TEXTS},
    "spec": {
        **dict.fromkeys(("storageClassName", "volumeMode", "volumeName"), TEXT),
        "accessModes": [TEXT],
        "resources": _RESOURCES,
        "selector": _SELECTOR,
    },
}


MOST_LEVELS: Final = 64
"""How deep lists and mappings may be nested. A pod template in full has fewer than twenty levels;
some hundred are more than Python's own functions take."""
MOST_ITEMS: Final = 1024
"""How many items one list may have: lists of containers, variables and volumes are merged by name
and compared item by item."""


def excess(path: str, value: Any) -> Iterator[tuple[str, str]]:
    """Where a value has too many levels, or a list too many items. Linear, without recursion."""
    layer: list[tuple[str, Any]] = [(path, value)]
    for level in range(MOST_LEVELS + 1):
        inner: list[tuple[str, Any]] = []
        for here, one in layer:
            if level == MOST_LEVELS and isinstance(one, dict | list):
                yield path, f"nested in more than {MOST_LEVELS} levels: write fewer"
                return
            if isinstance(one, list):
                items = cast("list[Any]", one)
                if len(items) > MOST_ITEMS:
                    yield here, f"a list of {len(items)} items, expected at most {MOST_ITEMS}"
                inner += ((here, given) for given in items)
            elif isinstance(one, dict):
                # A path that grows at each level would be quadratic.
                inner += (
                    (f"{path}.{key}" if level == 0 else here, given)
                    for key, given in cast("Json", one).items()
                )
        layer = inner


def shape_problems(path: str, value: Any, shape: Shape) -> Iterator[tuple[str, str]]:
    """Paths where a value is not of a shape, each with what to write there.

    Null is the same as nothing, but for an item of a list.
    """
    if isinstance(shape, Leaf):
        if not _fits(value, shape):
            yield path, f"write {shape.value}"
    elif isinstance(shape, list):
        if not isinstance(value, list):
            yield path, "write a list"
            return
        for index, item in enumerate(cast("list[Any]", value)):
            yield from shape_problems(f"{path}[{index}]", item, shape[0])
    elif not isinstance(value, dict):
        yield path, f"write {MAPPING.value}"
    else:
        yield from _fields(path, cast("dict[str, Any]", value), shape)


def _fields(
    path: str, value: Mapping[str, Any], shape: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    for wanted in shape:
        if wanted.endswith("!") and value.get(wanted[:-1]) in (None, ""):
            yield f"{path}.{wanted[:-1]}", "must be given"
    for name, inner in value.items():
        known = shape.get(name, shape.get(f"{name}!", shape.get("*")))
        if known is not None and inner is not None:
            yield from shape_problems(f"{path}.{name}", inner, known)


def _fits(value: Any, leaf: Leaf) -> bool:
    match leaf:
        case Leaf.TEXT:
            return isinstance(value, str)
        case Leaf.FLAG:
            return isinstance(value, bool)
        case Leaf.NUMBER:
            return isinstance(value, int) and not isinstance(value, bool)
        case Leaf.QUANTITY:
            return quantity.is_quantity(value)
        case Leaf.PORT:
            return isinstance(value, (int, str)) and not isinstance(value, bool)
        case Leaf.MAPPING:
            return isinstance(value, dict)
