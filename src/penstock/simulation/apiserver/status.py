"""Answers of the API server that are no objects.

Source: Kubernetes API reference, Status v1 (meta/v1).
"""

from __future__ import annotations

import msgspec

from penstock.kube.client.transport import Response

REASONS = {
    400: "BadRequest",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


class StatusError(Exception):
    """The request fails with this HTTP status and reason."""

    def __init__(self, code: int, message: str, reason: str = "", field: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.field = field
        self.reason = reason or REASONS[code]

    @property
    def response(self) -> Response:
        """The answer."""
        return Response(self.code, status_body(self.code, str(self), self.reason, self.field))


def failure(
    code: int, message: str, reason: str = "", retry_after: float | None = None
) -> Response:
    """An error as kube-apiserver formats it."""
    return Response(code, status_body(code, message, reason), retry_after)


def status_body(code: int, message: str, reason: str = "", field: str = "") -> bytes:
    """A Status in JSON; `field` is the one that is wrong."""
    details = {"details": {"causes": [{"field": field, "message": message}]}} if field else {}
    return msgspec.json.encode(
        {
            "kind": "Status",
            "apiVersion": "v1",
            "status": "Failure" if code >= 300 else "Success",
            "code": code,
            "reason": reason or REASONS.get(code, ""),
            "message": message,
            **details,
        }
    )
