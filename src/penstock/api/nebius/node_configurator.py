"""NodeConfigurator: a DaemonSet that configures Kubernetes nodes and reboots them.

It has a status subresource, which the original lacks. Nothing has ever written its status, so no
client depends on that; without one, each write of a status would be a new generation.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import field

from penstock.api.kubernetes.meta import Json, KubeObject, KubeStruct
from penstock.api.kubernetes.resource import Resource
from penstock.api.kubernetes.schema import AGE, DEFAULT, OPAQUE, Column, KindInfo, about
from penstock.api.nebius.common import (
    GROUP,
    VERSION,
    Affinity,
    Env,
    HostUsers,
    Image,
    NodeSelector,
    PodContainer,
    PriorityClass,
    Probe,
    Tolerations,
    Words,
)
from penstock.api.nebius.timed_condition import TimedStatus


class ConfiguratorContainer(KubeStruct, frozen=True):
    """A container of the DaemonSet, and where its pods run."""

    enabled: Annotated[bool, about("Whether the container is there.")]
    name: Annotated[str, about("Name of the container.")] = ""
    image: Annotated[Image | None, about("The image.")] = None
    command: Annotated[Words, about("Command instead of the image's entrypoint.")] = ()
    env: Env = ()
    resources: Annotated[Json, about("Kubernetes ResourceRequirements.", OPAQUE, {DEFAULT: {}})] = (
        field(default_factory=dict[str, Any])
    )
    liveness_probe: Probe = None
    readiness_probe: Probe = None
    node_selector: NodeSelector = None
    affinity: Affinity = None
    tolerations: Tolerations = ()
    priority_class_name: PriorityClass = ""
    service_account_name: Annotated[str, about("ServiceAccount of the pods.")] = ""
    host_users: HostUsers = None


class Rebooter(ConfiguratorContainer, frozen=True):
    """The container that drains and reboots its Kubernetes node."""

    eviction_method: Annotated[Literal["evict"], about("How pods leave the node.")] = "evict"
    log_level: Annotated[Literal["debug", "info", "warn", "error"], about("Level of the log.")] = (
        "info"
    )
    log_format: Annotated[str, about("Format of the log.")] = ""


class NodeConfiguratorSpec(KubeStruct, frozen=True):
    """What the DaemonSet should be."""

    host_network: Annotated[bool, about("hostNetwork of the pods.")] = True
    host_ipc: Annotated[bool, about("hostIPC of the pods.")] = field(default=False, name="hostIPC")
    share_process_namespace: Annotated[bool, about("shareProcessNamespace of the pods.")] = False
    init_containers: Annotated[
        tuple[PodContainer, ...], about("Init containers, such as one that sets sysctls.")
    ] = ()
    rebooter: Annotated[Rebooter, about("The rebooter.", {DEFAULT: {"enabled": True}})] = Rebooter(
        enabled=True
    )
    custom_container: Annotated[
        ConfiguratorContainer | None, about("Another container, while the rebooter is off.")
    ] = None
    node_configurator: Annotated[
        ConfiguratorContainer | None, about("customContainer, up to version 1.23.0.")
    ] = None


class NodeConfiguratorStatus(TimedStatus, frozen=True):
    """What the DaemonSet is."""


class NodeConfigurator(KubeObject, frozen=True):
    """A DaemonSet that configures Kubernetes nodes and reboots them."""

    spec: Annotated[NodeConfiguratorSpec, about("What the DaemonSet should be.")] = (
        NodeConfiguratorSpec()
    )
    status: Annotated[NodeConfiguratorStatus, about("What it is.")] = NodeConfiguratorStatus()


NODE_CONFIGURATORS = Resource(
    GROUP, VERSION, "NodeConfigurator", "nodeconfigurators", NodeConfigurator, optional=True
)
INFO = KindInfo(
    NODE_CONFIGURATORS,
    (),
    (
        Column("Rebooter Enabled", ".spec.rebooter.enabled", "boolean"),
        Column("NodeConfigurator Enabled", ".spec.customContainer.enabled", "boolean"),
        Column("Age", AGE.path, "date"),
    ),
)
