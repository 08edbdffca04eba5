"""Status of an external slurmctld: how to query it after the object of its cluster is deleted."""

from __future__ import annotations

from typing import Annotated

from penstock.api.kubernetes.meta import KubeStruct
from penstock.api.kubernetes.schema import about


class ExternalSlurm(KubeStruct, frozen=True):
    """How to query an external slurmctld after its Controller is deleted."""

    rest_api_url: Annotated[str, about("URL of the slurmrestd that was asked last.")] = ""
    jwt_secret: Annotated[str, about("Name of the Secret with the key that signs tokens.")] = ""
    jwt_secret_key: Annotated[str, about("Key within that Secret's data.")] = ""
    silent_since: Annotated[
        str,
        about("Since when it cannot be asked, while NodeSet and Controller are being deleted."),
    ] = ""
