"""The DaemonSet of a NodeConfigurator: the rebooter or a user's container on Kubernetes nodes.

Its name and labels are those of soperator. The rebooter has the program, arguments and variables of
soperator's; without an image of the user's it is the operator's image.
"""

from __future__ import annotations

from typing import Final

from penstock.api.kubernetes.meta import Json
from penstock.api.nebius import labels
from penstock.api.nebius.node_configurator import (
    ConfiguratorContainer,
    NodeConfigurator,
    NodeConfiguratorSpec,
    Rebooter,
)
from penstock.render.nebius.adopted_workload import DeclaredPods, declared_pods
from penstock.render.nebius.container import field_variable, variable
from penstock.render.nebius.pod import place, pod_spec, template
from penstock.render.parts import empty_values as empty
from penstock.render.parts import merge
from penstock.render.parts.owner import owner
from penstock.render.parts.plain import plain

REBOOTER: Final = "rebooter"
PROGRAM: Final = "/usr/bin/rebooter"
CUSTOM: Final = "custom-container"
"""Name of a user's container that has none."""
_NOBODY: Final = 65534


def daemon_set_name(obj: NodeConfigurator) -> str:
    """The name of the DaemonSet."""
    return f"{obj.metadata.name}-ds"


def active(spec: NodeConfiguratorSpec) -> ConfiguratorContainer | None:
    """The container of the pods: the rebooter where both are enabled; None without pods.

    Up to version 1.23.0 the field of the user's container was `nodeConfigurator`.
    """
    for one in (spec.rebooter, spec.custom_container, spec.node_configurator):
        if one is not None and one.enabled:
            return one
    return None


def daemon_set(obj: NodeConfigurator, operator_image: str) -> Json | None:
    """The DaemonSet; None when no container is enabled."""
    spec = obj.spec
    given = active(spec)
    if given is None:
        return None
    is_rebooter = isinstance(given, Rebooter)
    container = _rebooter(given, operator_image) if is_rebooter else _custom(given)
    pod = pod_spec(
        containers=[container],
        volumes=[],
        first=spec.init_containers,
        place=place(given.node_selector, given.affinity, given.tolerations),
        priority_class=given.priority_class_name,
        host_users=given.host_users,
        # The rebooter needs a token in any case.
        service_account=given.service_account_name or ("default" if is_rebooter else ""),
    )
    del pod["volumes"]
    pod |= {
        field: True
        for field, wanted in (
            ("hostNetwork", spec.host_network),
            ("hostIPC", spec.host_ipc),
            # The rebooter runs its command in the root of PID 1.
            ("hostPID", is_rebooter),
            ("shareProcessNamespace", spec.share_process_namespace),
        )
        if wanted
    }
    name = obj.metadata.name
    selector = labels.configurator_selector(name)
    every = {**labels.object_labels(labels.CONFIGURATOR, name), **selector}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {
            "name": daemon_set_name(obj),
            "namespace": obj.metadata.namespace,
            "labels": every,
            "ownerReferences": [owner(obj)],
        },
        "spec": {
            "selector": {"matchLabels": selector},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "20%"}},
            "template": template(every, pod),
        },
    }


def declared(obj: NodeConfigurator) -> DeclaredPods:
    """The pods as the user declares them, by which an adopted DaemonSet keeps its template."""
    given = active(obj.spec)
    images: dict[str, str] = {}
    if given is not None and given.image is not None:
        name = REBOOTER if isinstance(given, Rebooter) else given.name or CUSTOM
        images[name] = given.image.reference
    return declared_pods(images, plain(obj.spec))


def _rebooter(given: Rebooter, operator_image: str) -> Json:
    own = (
        variable("REBOOTER_EVICTION_METHOD", given.eviction_method),
        field_variable("REBOOTER_NODE_NAME", "spec.nodeName"),
    )
    return {
        **_container(REBOOTER, given, operator_image),
        "command": [PROGRAM],
        "args": [f"-log-level={given.log_level}", f"-log-format={given.log_format}"],
        "env": merge.by_key(merge.items(given.env), own, "name"),
        "securityContext": {
            "privileged": True,
            "runAsUser": 0,
            "runAsGroup": 0,
            "readOnlyRootFilesystem": True,
        },
    }


def _custom(given: ConfiguratorContainer) -> Json:
    out = _container(given.name or CUSTOM, given, "")
    if given.command:
        out["command"] = list(given.command)
    if env := merge.items(given.env):
        out["env"] = env
    out["securityContext"] = {
        "runAsUser": _NOBODY,
        "runAsGroup": _NOBODY,
        "runAsNonRoot": True,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    return out


def _container(name: str, given: ConfiguratorContainer, image: str) -> Json:
    out: Json = {"name": name, "image": image, "imagePullPolicy": "IfNotPresent"}
    if given.image is not None:
        out |= {"image": given.image.reference, "imagePullPolicy": given.image.pull_policy}
    declared: Json = {
        "resources": given.resources,
        "livenessProbe": given.liveness_probe or {},
        "readinessProbe": given.readiness_probe or {},
    }
    out["terminationMessagePolicy"] = "FallbackToLogsOnError"
    return out | {field: found for field, one in declared.items() if (found := empty.said(one))}
