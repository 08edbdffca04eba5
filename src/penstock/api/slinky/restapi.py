"""RestApi: slurmrestd in front of a Slurm cluster."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import field

from penstock.api.cluster.cluster_ref import NON_EMPTY_REF, ControllerRef
from penstock.api.kubernetes.meta import KubeObject, KubeStruct
from penstock.api.kubernetes.resource import Resource
from penstock.api.kubernetes.schema import AGE, INT32, READY, REASON, KindInfo, about
from penstock.api.kubernetes.spec_parts import Container, PodTemplate, ServiceSpec, Status
from penstock.api.slinky.common import GROUP, VERSION


class RestApiSpec(KubeStruct, frozen=True):
    """What a REST endpoint should be."""

    controller_ref: Annotated[ControllerRef, about("The Slurm cluster it serves.", NON_EMPTY_REF)]
    replicas: Annotated[int, about("Number of pods.", INT32, {"minimum": 0})] = 1
    slurmrestd: Container = field(default_factory=dict[str, Any])
    template: Annotated[PodTemplate, about("Overrides of the slurmrestd pods.")] = PodTemplate()
    service: Annotated[ServiceSpec, about("Overrides of the Service.")] = ServiceSpec()


class RestApiStatus(Status, frozen=True):
    """What a REST endpoint is."""


class RestApi(KubeObject, frozen=True, kw_only=True):
    """Slurm's REST API of a cluster: slurmrestd."""

    spec: Annotated[RestApiSpec, about("What the endpoint should be.")]
    status: Annotated[RestApiStatus, about("What it is.")] = RestApiStatus()


RESTAPIS = Resource(GROUP, VERSION, "RestApi", "restapis", RestApi, optional=True)
INFO = KindInfo(RESTAPIS, ("slurmrestd",), (AGE, READY, REASON))
