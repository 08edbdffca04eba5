"""Token: a JWT for one Slurm user, kept in a Secret and renewed."""

from __future__ import annotations

from typing import Annotated

from penstock.api.kubernetes.meta import Json, KubeObject, KubeStruct
from penstock.api.kubernetes.resource import Resource
from penstock.api.kubernetes.schema import (
    AGE,
    ATOMIC_MAP,
    DATE_TIME,
    DURATION,
    NULLABLE,
    READY,
    REASON,
    Column,
    KindInfo,
    about,
    rule,
)
from penstock.api.kubernetes.spec_parts import SecretKeySelector, Status
from penstock.api.slinky.common import (
    GROUP,
    KEPT_JWT_KEY,
    SHORT,
    VERSION,
    JwtHs256KeyRef,
    JwtKeyRef,
    fixed_once,
)

_ID: Json = {"format": "int64", "minimum": 0, "maximum": 2**32 - 2}
_PATH: Json = {"pattern": "^/", "maxLength": 4096}


class TokenIdentity(KubeStruct, frozen=True, kw_only=True):
    """Who the user is, for a slurmctld that cannot look the user up itself."""

    uid: Annotated[int, about("The user's number.", _ID)]
    gid: Annotated[int, about("Number of the user's first group.", _ID)]
    groups: Annotated[
        dict[str, Annotated[int, about("Number of the group.", _ID)]] | None,
        about(
            "All groups of the user, numbers by name; the first group alone when absent.", NULLABLE
        ),
    ] = None
    home: Annotated[str, about("Home directory; `/home/<username>` when absent.", _PATH)] = ""
    shell: Annotated[str, about("Login shell; `/bin/bash` when absent.", _PATH)] = ""
    gecos: Annotated[str, about("The user's full name; the username when absent.", SHORT)] = ""


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
    identity: Annotated[
        TokenIdentity | None,
        about(
            "The user's numbers, put into the token. Without it slurmctld looks the username up "
            "in its own container, and takes jobs of a user that it does not find there for "
            "nobody's."
        ),
    ] = None

    @property
    def effective_jwt_key_ref(self) -> SecretKeySelector | None:
        """The signing key under either of its names."""
        return self.jwt_key_ref or self.jwt_hs256_key_ref


class TokenStatus(Status, frozen=True):
    """What a token is."""

    issued_at: Annotated[str, about("When the current token was made.", DATE_TIME)] = ""
    expires_at: Annotated[str, about("When the current token ends.", DATE_TIME)] = ""


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
        ),
    ]
    status: Annotated[TokenStatus, about("What it is.")] = TokenStatus()


TOKENS = Resource(GROUP, VERSION, "Token", "tokens", Token, optional=True)
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
    rules=(
        fixed_once(
            "has(oldSelf.status) && has(oldSelf.status.issuedAt)",
            KEPT_JWT_KEY,
            "jwtKeyRef",
            "once a token was made with it",
        ),
    ),
)
