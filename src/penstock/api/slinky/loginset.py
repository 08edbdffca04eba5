"""LoginSet: pods where people log in and submit jobs."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import field

from penstock.api.cluster.cluster_ref import FIXED_REF, NON_EMPTY_REF, ControllerRef
from penstock.api.kubernetes.meta import KubeObject, KubeStruct
from penstock.api.kubernetes.resource import Resource
from penstock.api.kubernetes.schema import AGE, INT32, READY, REASON, Column, KindInfo, about
from penstock.api.kubernetes.spec_parts import Container, PodTemplate, ServiceSpec, Status
from penstock.api.slinky.common import (
    GROUP,
    LONGEST_KEYS,
    SSSD_NAME,
    VERSION,
    ExtraSshdConfig,
    SssdConfRef,
)


class DeploymentRollingUpdate(KubeStruct, frozen=True):
    """How fast a Deployment replaces its pods."""

    max_surge: Annotated[int | str | None, about("Pods above the wanted number.")] = None
    max_unavailable: Annotated[int | str | None, about("Pods below the wanted number.")] = None


class DeploymentStrategy(KubeStruct, frozen=True):
    """DeploymentStrategy of apps/v1."""

    type: Annotated[
        Literal["RollingUpdate", "Recreate"] | None, about("RollingUpdate or Recreate.")
    ] = None
    rolling_update: Annotated[DeploymentRollingUpdate | None, about("For type RollingUpdate.")] = (
        None
    )


class LoginSetSpec(KubeStruct, frozen=True):
    """What a set of login pods should be."""

    controller_ref: Annotated[
        ControllerRef, about("The Slurm cluster to log in to.", NON_EMPTY_REF, FIXED_REF)
    ]
    replicas: Annotated[int, about("Number of pods.", INT32, {"minimum": 0})] = 1
    login: Container = field(default_factory=dict[str, Any])
    initconf: Container = field(default_factory=dict[str, Any])
    template: Annotated[PodTemplate, about("Overrides of the login pods.")] = PodTemplate()
    root_ssh_authorized_keys: Annotated[
        str,
        about("Public keys that may log in as root, one a line.", {"maxLength": LONGEST_KEYS}),
    ] = ""
    extra_sshd_config: ExtraSshdConfig = ""
    sssd_conf_ref: SssdConfRef = None
    strategy: Annotated[
        DeploymentStrategy | None, about("How changed login pods replace older ones.")
    ] = None
    service: Annotated[ServiceSpec, about("Overrides of the Service.")] = ServiceSpec()


class LoginSetStatus(Status, frozen=True, omit_defaults=False):
    """What a set of login pods is. A count of zero is written, not left out."""

    replicas: Annotated[int, about("Pods there are.", INT32)] = 0
    selector: Annotated[str, about("Label selector of the pods, for autoscalers.")] = ""


class LoginSet(KubeObject, frozen=True, kw_only=True):
    """Login pods of a Slurm cluster: sshd and Slurm's client commands."""

    spec: Annotated[LoginSetSpec, about("What the login pods should be.", SSSD_NAME)]
    status: Annotated[LoginSetStatus, about("What they are.", {"required": ["selector"]})] = (
        LoginSetStatus()
    )


LOGINSETS = Resource(GROUP, VERSION, "LoginSet", "loginsets", LoginSet, optional=True)
INFO = KindInfo(
    LOGINSETS,
    ("loginsets", "lss", "sackd"),
    (
        Column("REPLICAS", ".status.replicas", "integer", 0, "Pods there are."),
        AGE,
        READY,
        REASON,
    ),
    scale_selector=".status.selector",
)
