"""The Kubernetes engine: knows the API server, no Slurm and no kinds."""

from penstock.kube.apply.difference import field_differences
from penstock.kube.apply.field_owners import has_other_managers
from penstock.kube.apply.server_side import Applied, Applier
from penstock.kube.cache.cache import Cache
from penstock.kube.cache.expectations import Expectations
from penstock.kube.cache.reflector import Pace
from penstock.kube.cache.store import Index
from penstock.kube.client.backoff import Backoff
from penstock.kube.client.client import ALL, FIELD_MANAGER, Client, Listing, Selector
from penstock.kube.client.clock import Clock, SystemClock
from penstock.kube.client.config import Config, ConfigError, from_kubeconfig, in_cluster, load
from penstock.kube.client.errors import (
    AlreadyExistsError,
    ApiError,
    BadRequestError,
    ConflictError,
    ForbiddenError,
    GoneError,
    InvalidError,
    KubeError,
    NotFoundError,
    NotLeaderError,
    NotOursError,
    ServerError,
    TooManyRequestsError,
    UnauthorizedError,
    UnreachableError,
)
from penstock.kube.client.metrics import Metrics
from penstock.kube.client.retry import Retry
from penstock.kube.client.transport import HttpTransport, Request, Response, Stream, Transport
from penstock.kube.runtime.controller import Controller, Result
from penstock.kube.runtime.events import Recorder
from penstock.kube.runtime.leader_election import Lease, Timing
from penstock.kube.runtime.manager import Manager
from penstock.kube.runtime.probes import serve
from penstock.kube.runtime.queue import QueueClosedError, WorkQueue

__all__ = [
    "ALL",
    "FIELD_MANAGER",
    "AlreadyExistsError",
    "ApiError",
    "Applied",
    "Applier",
    "Backoff",
    "BadRequestError",
    "Cache",
    "Client",
    "Clock",
    "Config",
    "ConfigError",
    "ConflictError",
    "Controller",
    "Expectations",
    "ForbiddenError",
    "GoneError",
    "HttpTransport",
    "Index",
    "InvalidError",
    "KubeError",
    "Lease",
    "Listing",
    "Manager",
    "Metrics",
    "NotFoundError",
    "NotLeaderError",
    "NotOursError",
    "Pace",
    "QueueClosedError",
    "Recorder",
    "Request",
    "Response",
    "Result",
    "Retry",
    "Selector",
    "ServerError",
    "Stream",
    "SystemClock",
    "Timing",
    "TooManyRequestsError",
    "Transport",
    "UnauthorizedError",
    "UnreachableError",
    "WorkQueue",
    "field_differences",
    "from_kubeconfig",
    "has_other_managers",
    "in_cluster",
    "load",
    "serve",
]
