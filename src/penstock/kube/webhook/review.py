"""AdmissionReview: what the API server asks before it stores an object, and the answer.

Both versions that API servers speak are read, and each is answered in its own.
Source: Kubernetes documentation, "Dynamic Admission Control"; API reference, AdmissionReview of
admission.k8s.io v1 and v1beta1 (the same fields).
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

import msgspec
from msgspec import Raw, field

from penstock.api.kubernetes.meta import Json, KubeStruct

GROUP = "admission.k8s.io"
VERSIONS = (f"{GROUP}/v1", f"{GROUP}/v1beta1")
LONGEST_WARNING = 256
"""Characters; the API server cuts what is longer, and drops what is over 4096 in all."""
MOST_WARNINGS = 4096

Operation = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]
NOTHING = Raw(b"null")


class AdmissionError(ValueError):
    """The body is not an AdmissionReview that can be answered."""


class GroupVersionKind(KubeStruct, frozen=True):
    """What kind an object is of."""

    group: str = ""
    version: str = ""
    kind: str = ""


class AdmissionRequest(KubeStruct, frozen=True):
    """One write. `object` is absent for a delete, `old_object` for a create."""

    uid: str
    operation: Operation
    kind: GroupVersionKind = GroupVersionKind()
    name: str = ""
    namespace: str = ""
    sub_resource: str = ""
    object: Raw = NOTHING
    old_object: Raw = NOTHING


class _Review(KubeStruct, frozen=True):
    api_version: str = ""
    kind: str = ""
    request: AdmissionRequest | None = None


class Cause(KubeStruct, frozen=True, omit_defaults=False):
    """One field that is rejected."""

    field: str
    message: str
    reason: str = "FieldValueInvalid"


@dataclass(frozen=True, slots=True)
class Answer:
    """Whether the write goes through.

    `causes` reject it, field by field. `warnings` are shown to the user in either case. `patch` is
    a JSON patch (RFC 6902) of the object; only a mutating webhook may give one.
    """

    causes: tuple[Cause, ...] = ()
    warnings: tuple[str, ...] = ()
    patch: tuple[Json, ...] = ()

    @property
    def allowed(self) -> bool:
        """Whether there is no cause to reject it."""
        return not self.causes


Handler = Callable[[AdmissionRequest], Answer]
"""Answers at once, out of what the process knows: a request of a user waits for it.

It runs in a thread, beside the event loop that writes the caches: it may read a cache by key or
through an index, and may change nothing.
"""


class _Details(KubeStruct, frozen=True):
    name: str
    group: str
    kind: str
    causes: tuple[Cause, ...]


class _Status(KubeStruct, frozen=True, omit_defaults=False):
    message: str
    details: _Details
    status: str = "Failure"
    reason: str = "Invalid"
    code: int = 422


class _Response(KubeStruct, frozen=True, omit_defaults=False):
    uid: str
    allowed: bool
    status: _Status | msgspec.UnsetType = msgspec.UNSET
    patch: str | msgspec.UnsetType = msgspec.UNSET
    patch_type: str | msgspec.UnsetType = msgspec.UNSET
    warnings: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET


class _Answered(KubeStruct, frozen=True, omit_defaults=False):
    api_version: str
    response: _Response
    kind: str = field(default="AdmissionReview")


def answer(body: bytes, handler: Handler) -> bytes:
    """The AdmissionReview that answers one, in the version in which it was asked.

    Raises AdmissionError.
    """
    try:
        # What stays undecoded here, such as the object, is decoded by who knows its type.
        body.decode()
        review = msgspec.json.decode(body, type=_Review)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise AdmissionError(f"not an AdmissionReview: {error}") from error
    if review.api_version not in VERSIONS or review.kind != "AdmissionReview":
        known = " or ".join(VERSIONS)
        raise AdmissionError(f"{review.api_version} {review.kind} is no AdmissionReview of {known}")
    if review.request is None:
        raise AdmissionError("the AdmissionReview has no request")
    response = _response(review.request, handler(review.request))
    return msgspec.json.encode(_Answered(review.api_version, response))


def _response(request: AdmissionRequest, given: Answer) -> _Response:
    unset = msgspec.UNSET
    return _Response(
        uid=request.uid,
        allowed=given.allowed,
        status=unset if given.allowed else _rejection(request, given.causes),
        patch=_encoded(given.patch) if given.patch else unset,
        patch_type="JSONPatch" if given.patch else unset,
        warnings=tuple(_shown(given.warnings)) or unset,
    )


def _rejection(request: AdmissionRequest, causes: tuple[Cause, ...]) -> _Status:
    kind = request.kind
    return _Status(
        message="; ".join(f"{one.field}: {one.message}" for one in causes),
        details=_Details(request.name, kind.group, kind.kind, causes),
    )


def _encoded(patch: tuple[Json, ...]) -> str:
    return base64.b64encode(msgspec.json.encode(patch)).decode()


def _shown(warnings: Iterable[str]) -> Iterable[str]:
    """As many as the API server passes on, each as long as it passes on."""
    left = MOST_WARNINGS
    for one in warnings:
        # A header holds one line, and the server counts bytes.
        text = " ".join(one.split())
        raw = text.encode()
        if len(raw) > LONGEST_WARNING:
            text = raw[: LONGEST_WARNING - 3].decode(errors="ignore") + "..."
        left -= len(text.encode())
        if left < 0:
            return
        yield text
