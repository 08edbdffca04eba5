"""Token: a JWT for one Slurm user, kept in a Secret and renewed."""

from __future__ import annotations

from typing import Annotated

from penstock.api.meta import KubeObject, KubeStruct
from penstock.api.resource import Resource
from penstock.api.schema import (
    AGE,
    ATOMIC_MAP,
    DATE_TIME,
    DURATION,
    READY,
    REASON,
    Column,
    KindInfo,
    about,
    rule,
)
from penstock.api.slinky.shared import (
    FIXED_JWT_KEY,
    GROUP,
    VERSION,
    JwtHs256KeyRef,
    JwtKeyRef,
    SecretKeySelector,
    Status,
)


class TokenSpec(KubeStruct, frozen=True, kw_only=True):
    """What a token should be."""

    jwt_hs256_key_ref: JwtHs256KeyRef = None
    jwt_key_ref: JwtKeyRef = None
    username: Annotated[str, about("Slurm user that the token speaks for.", {"minLength": 1})]
    lifetime: Annotated[
        str, about("How long a token lives, such as 1h30m; 15m when absent.", DURATION)
    ] = ""
    refresh: Annotated[
        bool, about("Whether the token is renewed before it ends. false: made once.")
    ] = True
    secret_ref: Annotated[
        SecretKeySelector | None,
        about("Where it is put; `<name>-jwt-<username>`, `SLURM_JWT` when absent.", ATOMIC_MAP),
    ] = None

    @property
    def effective_jwt_key_ref(self) -> SecretKeySelector | None:
        """The signing key under either of its names."""
        return self.jwt_key_ref or self.jwt_hs256_key_ref


class TokenStatus(Status, frozen=True):
    """What a token is."""

    issued_at: Annotated[str, about("When the current token was made.", DATE_TIME)] = ""


class Token(KubeObject, frozen=True, kw_only=True):
    """A JWT of one Slurm user."""

    spec: Annotated[
        TokenSpec,
        about(
            "What the token should be.",
            rule(
                "has(self.jwtKeyRef) || has(self.jwtHs256KeyRef)",
                "jwtKeyRef or jwtHs256KeyRef must be set",
            ),
            FIXED_JWT_KEY,
        ),
    ]
    status: Annotated[TokenStatus, about("What it is.")] = TokenStatus()


TOKENS = Resource(GROUP, VERSION, "Token", "tokens", Token)
INFO = KindInfo(
    TOKENS,
    ("tokens", "jwt"),
    (
        Column("USER", ".spec.username", "string", 0, "Slurm user of the token."),
        Column("IAT", ".status.issuedAt", "date", 0, "When the token was made."),
        AGE,
        READY,
        REASON,
    ),
)
