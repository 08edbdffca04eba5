"""The Kubernetes engine: knows the API server, no Slurm and no kinds."""

from penstock.kube.apply import Applied, Applier
from penstock.kube.backoff import Backoff
from penstock.kube.cache import Cache
from penstock.kube.client import ALL, FIELD_MANAGER, Client, Listing, Selector
from penstock.kube.clock import Clock, SystemClock
from penstock.kube.config import Config, ConfigError, from_kubeconfig, in_cluster, load
from penstock.kube.controller import Controller, Result
from penstock.kube.errors import (
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
from penstock.kube.events import Recorder
from penstock.kube.expectations import Expectations
from penstock.kube.lease import Lease, Timing
from penstock.kube.manager import Manager
from penstock.kube.metrics import Metrics
from penstock.kube.ownership import made_by_others
from penstock.kube.queue import QueueClosedError, WorkQueue
from penstock.kube.rest import Retry
from penstock.kube.serve import serve
from penstock.kube.store import Index
from penstock.kube.transport import HttpTransport, Request, Response, Stream, Transport
from penstock.kube.watch import Pace

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
    "from_kubeconfig",
    "in_cluster",
    "load",
    "made_by_others",
    "serve",
]
