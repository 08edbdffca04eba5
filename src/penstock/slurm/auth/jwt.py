"""Slurm's tokens: JSON Web Tokens, HS256 over the raw bytes of the key file.

Source: Slurm documentation, "JSON Web Tokens (JWT) Authentication" (claims `sun`, `iat`, `exp`);
RFC 7519 for `nbf`, `iss`, `jti`.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import uuid
from collections.abc import Mapping
from typing import Any, cast

ISSUER = "penstock"


class JwtError(ValueError):
    """The token is not one, is not signed by this key, or is not valid at this time."""


def mint(
    key: bytes,
    username: str,
    lifetime_s: int,
    now: float,
    claims: Mapping[str, Any] | None = None,
) -> str:
    """Make a token with which `username` may speak to slurmctld and slurmrestd.

    `now` is Unix time in seconds. `claims` are added to the standard ones and win over them.
    """
    issued = int(now)
    body: dict[str, Any] = {
        "sun": username,
        "iat": issued,
        "nbf": issued,
        "exp": issued + lifetime_s,
        "iss": ISSUER,
        "jti": str(uuid.uuid4()),
    }
    body.update(claims or {})
    signed = f"{_part({'alg': 'HS256', 'typ': 'JWT'})}.{_part(body)}"
    return f"{signed}.{_encode(_signature(key, signed))}"


def verify(key: bytes, token: str, now: float) -> dict[str, Any]:
    """Return the claims of a token that `key` signed and that is valid at `now`.

    Raises JwtError with the reason otherwise.
    """
    body = signed_claims(key, token)
    expires, begins = body.get("exp"), body.get("nbf")
    if isinstance(expires, int | float) and now >= expires:
        raise JwtError("token has expired")
    if isinstance(begins, int | float) and now < begins:
        raise JwtError("token is not valid yet")
    return body


def signed_claims(key: bytes, token: str) -> dict[str, Any]:
    """Return the claims of a token that `key` signed, whether or not its time has passed.

    Raises JwtError with the reason otherwise.
    """
    signed, dot, signature = token.strip().rpartition(".")
    if not dot or signed.count(".") != 1:
        raise JwtError("not a token: it must have three parts separated by dots")
    head, body = (_object(part) for part in signed.split("."))
    if head.get("alg") != "HS256":
        raise JwtError(f"signed with {head.get('alg')!r}, expected HS256")
    if not hmac.compare_digest(_signature(key, signed), _decode(signature)):
        raise JwtError("signature does not match the key")
    return body


def _signature(key: bytes, signed: str) -> bytes:
    return hmac.new(key, signed.encode(), hashlib.sha256).digest()


def _part(value: Mapping[str, Any]) -> str:
    return _encode(json.dumps(value, separators=(",", ":")).encode())


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise JwtError("not a token: a part is not base64url") from error


def _object(part: str) -> dict[str, Any]:
    data = _decode(part)
    try:
        value: object = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise JwtError("not a token: a part is not a JSON object") from error
    if not isinstance(value, dict):
        raise JwtError("not a token: a part is not a JSON object")
    return cast("dict[str, Any]", value)
