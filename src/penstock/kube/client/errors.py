"""What can go wrong with a request to the API server, in Kubernetes' own words.

Source: Kubernetes API reference, Status v1 (meta/v1): `reason` and `details.retryAfterSeconds`.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct, field


class StatusCause(Struct, frozen=True, rename="camel"):
    """One field that was rejected, or one of several reasons."""

    reason: str | None = None
    message: str | None = None
    field: str | None = None


class StatusDetails(Struct, frozen=True, rename="camel"):
    """What the failed request was about."""

    uid: str | None = None
    retry_after_seconds: int | None = None
    causes: tuple[StatusCause, ...] | None = None


class Status(Struct, frozen=True, rename="camel"):
    """The body of an error answer, and of the ERROR event of a watch."""

    kind: str = ""
    status: str = ""
    message: str = ""
    reason: str = ""
    code: int = 0
    details: StatusDetails | None = field(default=None)


class KubeError(Exception):
    """Anything that kept a request from being served."""


class UnreachableError(KubeError):
    """The connection failed, was cut or timed out: a write may or may not have happened."""


class NotLeaderError(KubeError):
    """A write was not sent because this process no longer leads."""


class NotOursError(KubeError):
    """An object of that name exists and is not controlled by the owner it should have."""


class ApiError(KubeError):
    """The API server answered, and the answer is an error.

    `code` is the HTTP status, `reason` and `message` are the server's; `retry_after` are the
    seconds it asks to wait, if it does; `causes` name the fields of a rejected object.
    """

    def __init__(
        self,
        code: int,
        reason: str = "",
        message: str = "",
        retry_after: float | None = None,
        causes: tuple[StatusCause, ...] = (),
    ) -> None:
        super().__init__(message or reason or f"HTTP {code}")
        self.code = code
        self.reason = reason
        self.message = message
        self.retry_after = retry_after
        self.causes = causes


class BadRequestError(ApiError):
    """400: the request makes no sense to the server."""


class UnauthorizedError(ApiError):
    """401: the credentials are not accepted."""


class ForbiddenError(ApiError):
    """403: not allowed by RBAC, admission or a quota."""


class NotFoundError(ApiError):
    """404: no such object, or no such kind."""


class ConflictError(ApiError):
    """409: a precondition (uid, resourceVersion) or a field's owner stands against it.

    Also the 422 with which kube-apiserver answers a patch that names another uid.
    """


class AlreadyExistsError(ConflictError):
    """409 AlreadyExists: also after a create that was cut and had succeeded all the same."""


class GoneError(ApiError):
    """410: the resourceVersion or the continue token is too old."""


class InvalidError(ApiError):
    """422: the object does not validate."""


class TooManyRequestsError(ApiError):
    """429: the server is busy, or an eviction would break a PodDisruptionBudget."""


class ServerError(ApiError):
    """5xx: the server could not do it now."""


_UNTYPED = "failed to create typed patch object"
"""Source: k8s.io/apimachinery, managedfields, structuredmerge.go."""

_BY_CODE: dict[int, type[ApiError]] = {
    400: BadRequestError,
    401: UnauthorizedError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    410: GoneError,
    422: InvalidError,
    429: TooManyRequestsError,
}


def api_error(code: int, body: bytes, retry_after: float | None = None) -> ApiError:
    """The error of an answer. A body that is no Status (a proxy's page) becomes the message."""
    try:
        status = msgspec.json.decode(body, type=Status)
    except (msgspec.DecodeError, msgspec.ValidationError):
        status = Status(message=body[:500].decode(errors="replace"))
    return status_error(status, code, retry_after)


def status_error(status: Status, code: int = 0, retry_after: float | None = None) -> ApiError:
    """The error of a Status, for instance of a watch's ERROR event."""
    code = code or status.code
    details = status.details
    if retry_after is None and details is not None and details.retry_after_seconds:
        retry_after = float(details.retry_after_seconds)
    kind = _BY_CODE.get(code, ServerError if code >= 500 else ApiError)
    if code == 500 and status.message.startswith(_UNTYPED):
        # The API server answers "internal error" for a manifest that does not fit its kind; a
        # retry would fail as well.
        kind = InvalidError
    if code == 409 and status.reason == "AlreadyExists":
        kind = AlreadyExistsError
    causes = (details.causes if details else None) or ()
    if code == 422 and causes and all(cause.field == "metadata.uid" for cause in causes):
        # A patch that names the uid of an object that was replaced meanwhile: a precondition.
        kind = ConflictError
    return kind(code, status.reason, status.message, retry_after, causes)
