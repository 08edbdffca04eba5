"""A MariaDB for slurmdbd that the operator runs itself, as each API declares it.

Neither original has such a field.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from penstock.api.kubernetes.meta import Json, KubeStruct, LocalObjectReference
from penstock.api.kubernetes.pvc_spec import Quantity
from penstock.api.kubernetes.schema import ATOMIC_LIST, OPAQUE, about
from penstock.api.kubernetes.spec_parts import LOCAL_REF

USER: Final = "slurm"
DATABASE: Final = "slurm_acct_db"
KEY: Final = "password"
"""Key of the Secret with the password."""
PORT: Final = 3306
CONTAINER: Final = "mariadb"


class DatabaseVolume(KubeStruct, frozen=True):
    """The PVC with the records."""

    size: Annotated[Quantity, about("Size of the PVC.")] = "10Gi"
    storage_class_name: Annotated[
        str | None, about("StorageClass; that of the Kubernetes cluster when absent.")
    ] = None
    when_deleted: Annotated[
        Literal["Retain", "Delete"],
        about("Whether the PVC is deleted with the database's StatefulSet."),
    ] = "Retain"


class EmbeddedDatabase(KubeStruct, frozen=True, kw_only=True):
    """A MariaDB with one pod and one PVC."""

    image: Annotated[
        str, about("Image with mariadbd, mariadb and mariadb-install-db.", {"minLength": 1})
    ]
    image_pull_policy: Annotated[
        Literal["Always", "Never", "IfNotPresent"], about("When the image is pulled.")
    ] = "IfNotPresent"
    image_pull_secrets: Annotated[
        tuple[Annotated[LocalObjectReference, about("A Secret by name.", LOCAL_REF)], ...],
        about("Secrets with credentials of the image registry.", ATOMIC_LIST),
    ] = ()
    resources: Annotated[
        Json | None,
        about(
            "Kubernetes ResourceRequirements; requests of 100m CPU and 512Mi memory when absent. "
            "Half of the requested memory is the InnoDB buffer pool.",
            OPAQUE,
        ),
    ] = None
    storage: Annotated[DatabaseVolume, about("The PVC with the records.")] = DatabaseVolume()
