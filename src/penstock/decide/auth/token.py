"""Comparison of the JWT in a Token's Secret with the spec: keep it or issue a new one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from penstock.base import duration, times
from penstock.catalog.reasons.token import TokenReason
from penstock.model.token_request import TokenRequest
from penstock.slurm.auth import jwt

DEFAULT_S = 900
"""Lifetime of a token whose Token names none."""
LONGEST_S = 2**31 - 2
"""Slurm keeps lifetimes in 32 bits; slurm-operator's limit too."""
RENEW_AT = 0.8
"""Part of its life after which a token is renewed."""
AHEAD_S = 60
"""Seconds by which the clock that a token was made by may be ahead of ours."""
ROUTINE = TokenReason.RENEWED
"""Reason of a new token that only its age asks for."""


@dataclass(frozen=True, slots=True)
class SignedToken:
    """A token that the key signed. Times are Unix seconds."""

    claims: Mapping[str, Any]
    issued_at: int
    expires_at: int

    @property
    def renew_at(self) -> float:
        """Time from which on it is replaced if spec.refresh is true."""
        return self.issued_at + RENEW_AT * (self.expires_at - self.issued_at)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The token in the Secret, and reason and words of why it must be replaced; empty if not."""

    token: SignedToken | None
    reason: TokenReason | Literal[""] = ""
    words: str = ""


def lifetime_s(request: TokenRequest) -> int:
    """Seconds that a token lives, whole ones. Raises ValueError for a text that is no duration."""
    wanted = duration.seconds(request.lifetime) if request.lifetime else 0.0
    return min(math.ceil(wanted), LONGEST_S) if wanted > 0 else DEFAULT_S


def identity_claims(request: TokenRequest) -> dict[str, Any]:
    """The claims with which slurmctld needs no look-up of the user; none without an identity.

    Source: slurm.conf(5), AuthAltParameters, use_jwt_client_ids. Slurm takes an identity only
    with name, gecos, home directory and shell, and ignores it otherwise.
    """
    one = request.identity
    if one is None:
        return {}
    user: dict[str, Any] = {
        "name": request.username,
        "gecos": one.gecos or request.username,
        "dir": one.home or f"/home/{request.username}",
        "shell": one.shell or "/bin/bash",
    }
    if one.groups is None:
        user["gids"] = [one.gid]
    else:
        user["groups"] = dict(one.groups)
    return {"uid": one.uid, "gid": one.gid, "id": user}


def judge(request: TokenRequest, key: bytes, token: str | None, now: float) -> Verdict:
    """Compare the token in the Secret with the request. `token` is None without a Secret."""
    if token is None:
        return Verdict(None, TokenReason.MISSING, "the Secret had no token")
    try:
        claims = jwt.signed_claims(key, token)
        signed = SignedToken(claims, int(claims["iat"]), int(claims["exp"]))
    except jwt.JwtError as error:
        words = f"the stored token is not signed with the present key: {error}"
        return Verdict(None, TokenReason.KEY_CHANGED, words)
    except (KeyError, TypeError, ValueError):
        words = "the stored token has no issue or expiry time"
        return Verdict(None, TokenReason.UNREADABLE, words)
    if claims.get("sun") != request.username:
        words = f"the stored token is for user {claims.get('sun')}"
        return Verdict(signed, TokenReason.USER_CHANGED, words)
    wanted = identity_claims(request)
    if {name: claims.get(name) for name in ("uid", "gid", "id")} != {
        name: wanted.get(name) for name in ("uid", "gid", "id")
    }:
        return Verdict(signed, TokenReason.IDENTITY_CHANGED, "spec.identity has changed")
    if signed.expires_at - signed.issued_at != lifetime_s(request):
        return Verdict(signed, TokenReason.LIFETIME_CHANGED, "spec.lifetime has changed")
    if now >= signed.expires_at:
        return Verdict(signed, TokenReason.EXPIRED, f"it ended at {times.write(signed.expires_at)}")
    if now < signed.issued_at - AHEAD_S:
        start = times.write(signed.issued_at)
        words = f"it is not valid before {start}: the clock was ahead then"
        return Verdict(signed, TokenReason.NOT_VALID_YET, words)
    if now >= signed.renew_at:
        return Verdict(signed, ROUTINE, "four fifths of its life have passed")
    return Verdict(signed)
