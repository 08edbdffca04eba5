"""Accounting: slurmdbd and its database."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import field

from penstock.api.cluster.embedded_database import EmbeddedDatabase
from penstock.api.kubernetes.meta import KubeObject, KubeStruct
from penstock.api.kubernetes.resource import Resource
from penstock.api.kubernetes.schema import (
    AGE,
    ATOMIC_MAP,
    INT32,
    READY,
    REASON,
    KindInfo,
    about,
    rule,
)
from penstock.api.kubernetes.spec_parts import (
    Container,
    PodTemplate,
    SecretKeySelector,
    ServiceSpec,
    Status,
    has_condition,
)
from penstock.api.slinky.common import (
    EXTERNAL_CONFIG,
    GROUP,
    KEPT_JWT_KEY,
    LONGEST_CONF,
    NO_HOST_NETWORK,
    ONE_KEY,
    SHORT,
    VERSION,
    ExternalConfig,
    JwksKeyRef,
    JwtHs256KeyRef,
    JwtKeyRef,
    MungeKeyRef,
    SlurmKeyRef,
    fixed_once,
    munge_kept,
)

_WORKS = has_condition("c.type == 'Ready' && c.status == 'True'")


class StorageConfig(KubeStruct, frozen=True, kw_only=True):
    """The MySQL or MariaDB database of slurmdbd."""

    host: Annotated[str, about("Host name or address of the database.", SHORT)]
    port: Annotated[
        int, about("Port of the database.", INT32, {"minimum": 1, "maximum": 65535})
    ] = 3306
    database: Annotated[str, about("Name of the database.", SHORT)] = "slurm_acct_db"
    username: Annotated[str, about("User of the database.", SHORT)] = ""
    password_key_ref: Annotated[
        SecretKeySelector, about("Secret with the user's password.", ATOMIC_MAP)
    ]


class AccountingSpec(KubeStruct, frozen=True):
    """What slurmdbd should be."""

    slurm_key_ref: SlurmKeyRef = None
    munge_key_ref: MungeKeyRef = None
    jwt_hs256_key_ref: JwtHs256KeyRef = None
    jwt_key_ref: JwtKeyRef = None
    jwks_key_ref: JwksKeyRef = None
    external: Annotated[bool, about("Whether slurmdbd runs outside of Kubernetes.")] = False
    external_config: Annotated[
        ExternalConfig | None, about("Address of the external slurmdbd.")
    ] = None
    slurmdbd: Container = field(default_factory=dict[str, Any])
    template: Annotated[PodTemplate, about("Overrides of the slurmdbd pod.", NO_HOST_NETWORK)] = (
        PodTemplate()
    )
    storage_config: Annotated[StorageConfig | None, about("Database of slurmdbd.")] = None
    embedded_database: Annotated[
        EmbeddedDatabase | None,
        about("A MariaDB that the operator runs for slurmdbd, instead of storageConfig."),
    ] = None
    extra_conf: Annotated[
        str, about("Lines added at the end of slurmdbd.conf.", {"maxLength": LONGEST_CONF})
    ] = ""
    service: Annotated[ServiceSpec, about("Overrides of the Service.")] = ServiceSpec()

    @property
    def effective_jwt_key_ref(self) -> SecretKeySelector | None:
        """The JWT key under either of its names."""
        return self.jwt_key_ref or self.jwt_hs256_key_ref


class AccountingStatus(Status, frozen=True):
    """What slurmdbd is."""


class Accounting(KubeObject, frozen=True, kw_only=True):
    """Slurm's accounting daemon slurmdbd."""

    spec: Annotated[
        AccountingSpec,
        about(
            "What slurmdbd should be.",
            rule(
                "self.external || has(self.slurmKeyRef) || has(self.mungeKeyRef)",
                "slurmKeyRef or mungeKeyRef must be set when external is false",
            ),
            rule(
                "self.external || has(self.jwtKeyRef) || has(self.jwtHs256KeyRef)",
                "jwtKeyRef or jwtHs256KeyRef must be set when external is false",
            ),
            EXTERNAL_CONFIG,
            ONE_KEY,
        ),
    ]
    status: Annotated[AccountingStatus, about("What it is.")] = AccountingStatus()


ACCOUNTINGS = Resource(GROUP, VERSION, "Accounting", "accountings", Accounting, optional=True)
INFO = KindInfo(
    ACCOUNTINGS,
    ("slurmdbd",),
    (AGE, READY, REASON),
    rules=(
        fixed_once(
            _WORKS,
            KEPT_JWT_KEY,
            "jwtKeyRef",
            "while slurmdbd works with it",
        ),
        munge_kept(_WORKS, "while slurmdbd works"),
    ),
)
