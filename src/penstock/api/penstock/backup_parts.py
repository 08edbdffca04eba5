"""Fields that a Backup and a Restore have in common: the parts of a cluster and the repository."""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias

from penstock.api.kubernetes.meta import Json, KubeStruct
from penstock.api.kubernetes.schema import DEFAULT, NULLABLE, about, rule
from penstock.api.kubernetes.spec_parts import SecretKeySelector

GROUP: Final = "penstock.dev"
VERSION: Final = "v1alpha1"

JAIL: Final = "jail"
STATE: Final = "state"
ACCOUNTING: Final = "accounting"
DEFAULT_PARTS: Final[tuple[Part, ...]] = (JAIL, STATE)
PATH_PATTERN: Final = r"^[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*$"
ENDPOINT_PATTERN: Final = r"^https?://[A-Za-z0-9.\[\]:-]+(/[A-Za-z0-9_./-]*)?$"
BUCKET_PATTERN: Final = r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$"
ACCESS_KEY_ID: Final = "AWS_ACCESS_KEY_ID"
SECRET_ACCESS_KEY: Final = "AWS_SECRET_ACCESS_KEY"  # noqa: S105 (the name of a key)

Part: TypeAlias = Literal["jail", "state", "accounting"]
_NAME: Json = {DEFAULT: "", "maxLength": 253}

Parts = Annotated[
    tuple[Annotated[Part, about("One of them.")], ...],
    about(
        "Parts of the cluster. jail is the volume that jobs and logins have as their root, without "
        "volumes that are mounted into it. state is slurmctld's StateSaveLocation, and accounting "
        "the tables of slurmdbd in its database.",
        {"x-kubernetes-list-type": "set", "minItems": 1, "maxItems": 3},
    ),
]
Image = Annotated[
    str,
    about(
        "Image with restic, and mariadb-dump and mariadb for accounting; the operator's own when "
        "absent.",
        {"maxLength": 512},
    ),
]


class SlurmClusterRef(KubeStruct, frozen=True):
    """A SlurmCluster of the same namespace."""

    name: Annotated[str, about("Name of the SlurmCluster.", _NAME)] = ""


class PvcRepository(KubeStruct, frozen=True):
    """A folder of a PVC."""

    claim_name: Annotated[str, about("Name of the PVC.", _NAME)] = ""
    path: Annotated[
        str,
        about(
            "Folder of the repository; the root of the volume when absent.",
            {"pattern": f"{PATH_PATTERN}|^$", "maxLength": 512},
        ),
    ] = ""


class S3Repository(KubeStruct, frozen=True):
    """A bucket of storage that speaks S3."""

    endpoint: Annotated[
        str, about("Address, as https://s3.example.com.", {"pattern": ENDPOINT_PATTERN})
    ] = ""
    bucket: Annotated[str, about("Name of the bucket.", {"pattern": BUCKET_PATTERN})] = ""
    path: Annotated[
        str,
        about(
            "Prefix of the objects; none when absent.",
            {"pattern": f"{PATH_PATTERN}|^$", "maxLength": 512},
        ),
    ] = ""
    region: Annotated[str, about("Region of the bucket.", {"maxLength": 63})] = ""
    credentials_secret_name: Annotated[
        str, about(f"Secret with the keys {ACCESS_KEY_ID} and {SECRET_ACCESS_KEY}.", _NAME)
    ] = ""


class Repository(KubeStruct, frozen=True, kw_only=True):
    """A repository of restic: where it is, and the Secret with its password."""

    pvc: Annotated[PvcRepository | None, about("A folder of a PVC.", NULLABLE)] = None
    s3: Annotated[S3Repository | None, about("A bucket.", NULLABLE)] = None
    password_secret_ref: Annotated[
        SecretKeySelector,
        about("The password. Without it nobody can read the repository: keep a copy elsewhere."),
    ] = SecretKeySelector(key="password")


ONE_REPOSITORY: Final = rule("has(self.pvc) != has(self.s3)", "name either pvc or s3 of repository")
