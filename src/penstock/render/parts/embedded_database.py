"""The MariaDB that the operator runs for slurmdbd: a Service and a StatefulSet with one PVC.

Its pod fits a namespace with the Pod Security Standard `restricted`. The Secret with the password
is made once (`password_secret`) and outlives the objects, as the PVC does.
Source for the settings of InnoDB: Slurm's documentation, "Accounting and Resource Limits".
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, cast

from penstock.api.cluster import labels as app_labels
from penstock.api.cluster.embedded_database import (
    CONTAINER,
    DATABASE,
    KEY,
    PORT,
    USER,
    EmbeddedDatabase,
)
from penstock.api.kubernetes.meta import Json, KubeObject
from penstock.api.kubernetes.quantity import quantity
from penstock.catalog.marks import penstock
from penstock.render.parts.key_secret import key_secret
from penstock.render.parts.pod_template import memory, names_of, object_metadata, secret_source
from penstock.render.parts.script import script
from penstock.render.parts.service import Port, service

HASH: Final = penstock.DATABASE_PASSWORD_HASH.key
_UID: Final = 999
"""The user `mysql` of Debian's and of MariaDB's images; the script needs none of that name."""
_DATA, _RUN, _SECRET = "/var/lib/penstock/mariadb", "/run/penstock", "/etc/penstock/database"
_TMP: Final = "/tmp"  # noqa: S108 (the pod's own)
_MIB: Final = 1 << 20
_RESOURCES: Final[Json] = {"requests": {"cpu": "100m", "memory": "512Mi"}}


@dataclass(frozen=True, slots=True)
class DatabaseInputs:
    """What the database of one object is rendered from. `place` are fields of its pod's spec."""

    name: str
    namespace: str
    owner: Json
    labels: Mapping[str, str]
    selector: Mapping[str, str]
    declared: EmbeddedDatabase
    password_hash: str
    place: Json
    replicas: int = 1


def fresh_password() -> str:
    """A password that needs no quotes anywhere."""
    return secrets.token_hex(24)


def password_secret(of: KubeObject, name: str, labels: Mapping[str, str]) -> Json:
    """A Secret with a fresh password. It has no owner: the PVC outlives `of`, too."""
    return key_secret(of, name, {KEY: fresh_password()}, labels, stays=True)


def objects(given: DatabaseInputs) -> list[Json]:
    """Service and StatefulSet, in the order in which they are applied."""
    made = service(
        given.name,
        given.namespace,
        given.selector,
        (Port(CONTAINER, PORT, CONTAINER),),
        given.owner,
        labels=given.labels,
    )
    return [made, _stateful_set(given)]


def buffer_pool(resources: Json | None) -> int:
    """Bytes of InnoDB's buffer pool: half of the requested memory, in whole MiB.

    At least 128: slurmdbd warns of a smaller one.
    """
    given = resources or _RESOURCES
    for kind in ("requests", "limits"):
        amounts = cast("Json", given.get(kind) or {})
        try:
            return max(128, int(quantity(amounts["memory"]) / 2 // _MIB)) * _MIB
        except (KeyError, ValueError, TypeError):
            continue
    return 256 * _MIB


def _stateful_set(given: DatabaseInputs) -> Json:
    declared = given.declared
    claim: Json = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": declared.storage.size}},
    }
    if declared.storage.storage_class_name is not None:
        claim["storageClassName"] = declared.storage.storage_class_name
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": object_metadata(given.name, given.namespace, given.labels, given.owner),
        "spec": {
            # A pod that never became ready is replaced as well when its template changes.
            "podManagementPolicy": "Parallel",
            "replicas": given.replicas,
            "revisionHistoryLimit": 0,
            "serviceName": given.name,
            "selector": {"matchLabels": dict(given.selector)},
            "persistentVolumeClaimRetentionPolicy": {
                "whenDeleted": declared.storage.when_deleted,
                "whenScaled": "Retain",
            },
            "template": _template(given),
            "volumeClaimTemplates": [
                {"metadata": {"name": "data", "labels": dict(given.labels)}, "spec": claim}
            ],
        },
    }


def _template(given: DatabaseInputs) -> Json:
    annotations = {
        app_labels.DEFAULT_CONTAINER: CONTAINER,
        HASH: given.password_hash,
    }
    spec: Json = {
        **given.place,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _UID,
            "runAsGroup": _UID,
            "fsGroup": _UID,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        # InnoDB writes its changed pages when it ends.
        "terminationGracePeriodSeconds": 120,
        "containers": [_container(given.declared)],
        "volumes": [
            memory("run"),
            {"name": "tmp", "emptyDir": {}},
            {
                "name": "password",
                "secret": {**_password_source(given.name), "defaultMode": 0o440},
            },
        ],
    }
    if names := names_of(given.declared.image_pull_secrets):
        spec["imagePullSecrets"] = [{"name": name} for name in names]
    return {"metadata": {"labels": dict(given.labels), "annotations": annotations}, "spec": spec}


def _password_source(name: str) -> Json:
    found = secret_source(name, (KEY, KEY, None))["secret"]
    return {"secretName": found["name"], "items": found["items"]}


def _container(declared: EmbeddedDatabase) -> Json:
    pool = buffer_pool(declared.resources)
    ask = ["mariadb", f"--defaults-file={_RUN}/client.cnf", "-e", "DO 0", DATABASE]
    return {
        "name": CONTAINER,
        "image": declared.image,
        "imagePullPolicy": declared.image_pull_policy,
        "command": ["sh", "-c", script("mariadb"), "mariadb"],
        "env": list(
            _variables(
                DATABASE_NAME=DATABASE,
                DATABASE_USER=USER,
                DATABASE_PORT=str(PORT),
                DATABASE_POOL=str(pool),
                DATABASE_LOG=str(min(max(pool // 4, 64 * _MIB), 1024 * _MIB)),
            )
        ),
        "ports": [{"name": CONTAINER, "containerPort": PORT, "protocol": "TCP"}],
        # A login of slurmdbd's user. No probe ends the server: its recovery may take long.
        "readinessProbe": {"exec": {"command": ask}, "periodSeconds": 3, "timeoutSeconds": 5},
        "resources": declared.resources or _RESOURCES,
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            {"name": "data", "mountPath": _DATA},
            {"name": "run", "mountPath": _RUN},
            {"name": "tmp", "mountPath": _TMP},
            {"name": "password", "mountPath": _SECRET, "readOnly": True},
        ],
    }


def _variables(**given: str) -> Iterable[Json]:
    return ({"name": name, "value": value} for name, value in given.items())
