"""MariaDB and Grant, from which mariadb-operator makes the database of slurmdbd.

Some of their fields can never change. Of objects that exist those stay as they are: the objects of
another operator name Secrets without the cluster in their names.
Source: API reference of mariadb-operator 25, `k8s.mariadb.com/v1alpha1`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from penstock.api.cluster.embedded_database import DATABASE, KEY, PORT, USER
from penstock.api.kubernetes.meta import Json
from penstock.api.kubernetes.spec_parts import SecretKeySelector
from penstock.api.nebius import labels, names
from penstock.api.nebius.common import UNCONFINED
from penstock.api.nebius.mariadb import MariaDbOperator, Replication
from penstock.api.nebius.mariadb_objects import MARIADBS
from penstock.render.nebius.container import app_armor
from penstock.render.nebius.inputs import ClusterInputs
from penstock.render.nebius.pod import filter_place
from penstock.render.parts import empty_values as empty
from penstock.render.parts import merge
from penstock.render.parts.embedded_database import buffer_pool, fresh_password
from penstock.render.parts.key_secret import key_secret
from penstock.render.parts.owner import owner
from penstock.render.parts.plain import plain
from penstock.render.parts.pod_template import names_of, object_metadata

COMPONENT: Final = "mariadb-operator"
_FIXED_OF_MARIADB: Final = (
    "database",
    "username",
    "passwordSecretKeyRef",
    "rootPasswordSecretKeyRef",
    "rootEmptyPassword",
)
_FIXED_OF_GRANT: Final = (
    "mariaDbRef",
    "privileges",
    "database",
    "table",
    "username",
    "host",
    "grantOption",
)
_MIB: Final = 1 << 20
_REQUEUE, _RETRY = "10m0s", "1m0s"
"""How often mariadb-operator repeats the Grant, and tries it again after an error."""


def objects(cluster: ClusterInputs, live: Mapping[str, Json] | None = None) -> list[Json]:
    """MariaDB and Grant. `live` are the specs of those that exist, by kind."""
    had = live or {}
    return [_mariadb(cluster, had.get("MariaDB", {})), _grant(cluster, had.get("Grant", {}))]


def password_ref(live: Json | None) -> SecretKeySelector | None:
    """The password of slurmdbd's user in a MariaDB that exists; None without one."""
    ref = cast("Json", (live or {}).get("passwordSecretKeyRef") or {})
    if not ref.get("name"):
        return None
    return SecretKeySelector(name=str(ref["name"]), key=str(ref.get("key") or KEY))


def secrets(cluster: ClusterInputs, live: Json | None = None) -> list[Json]:
    """Both Secrets with passwords of a MariaDB with `protectedSecret`, each with a fresh one."""
    found: list[Json] = []
    for field in ("passwordSecretKeyRef", "rootPasswordSecretKeyRef"):
        ref: Json = _refs(cluster)[field] | ((live or {}).get(field) or {})
        of = cluster.cluster
        own = {**labels.object_labels(COMPONENT, cluster.name), labels.PROTECTED: "true"}
        data = {str(ref["key"]): fresh_password()}
        secret = key_secret(of, str(ref["name"]), data, own)
        secret["metadata"]["annotations"] = {labels.PROTECTED_FOR: cluster.name}
        found.append(secret)
    return found


def _given(cluster: ClusterInputs) -> MariaDbOperator:
    return cluster.spec.slurm_nodes.accounting.mariadb_operator or MariaDbOperator(image="")


def _refs(cluster: ClusterInputs) -> Json:
    generate = not _given(cluster).protected_secret
    by_field = {
        "passwordSecretKeyRef": names.mariadb_password(cluster.name),
        "rootPasswordSecretKeyRef": names.mariadb_root(cluster.name),
    }
    return {
        field: {"name": name, "key": KEY, "generate": generate} for field, name in by_field.items()
    }


def _mariadb(cluster: ClusterInputs, live: Json) -> Json:
    given = _given(cluster)
    spec: Json = {
        "database": DATABASE,
        "username": USER,
        "rootEmptyPassword": False,
        **_refs(cluster),
        **{field: live[field] for field in _FIXED_OF_MARIADB if field in live},
        "image": given.image,
        "imagePullPolicy": given.image_pull_policy,
        "port": given.port or PORT,
        "replicas": cluster.database_replicas(given.replicas or 1),
        "storage": empty.said(plain(given.storage)),
        "service": {"type": "ClusterIP"},
        "myCnf": _my_cnf(given),
        **_pod(cluster, given),
    }
    if given.metrics is not None:
        spec["metrics"] = {"enabled": given.metrics.enabled}
    if given.replication is not None:
        spec["replication"] = _replication(given.replication)
    return _object(cluster, "MariaDB", spec)


def _grant(cluster: ClusterInputs, live: Json) -> Json:
    reference = {
        "name": names.mariadb(cluster.name),
        "namespace": cluster.namespace,
        "waitForIt": True,
    }
    spec: Json = {
        "mariaDbRef": reference,
        "privileges": ["ALL PRIVILEGES"],
        "database": DATABASE,
        "table": "*",
        "username": USER,
        "host": "%",
        "grantOption": True,
        **{field: live[field] for field in _FIXED_OF_GRANT if field in live},
        "requeueInterval": _REQUEUE,
        "retryInterval": _RETRY,
    }
    return _object(cluster, "Grant", spec)


def _object(cluster: ClusterInputs, kind: str, spec: Json) -> Json:
    return {
        "apiVersion": MARIADBS.api_version,
        "kind": kind,
        "metadata": object_metadata(
            names.mariadb(cluster.name),
            cluster.namespace,
            labels.object_labels(COMPONENT, cluster.name),
            owner(cluster.cluster),
        ),
        "spec": spec,
    }


def _my_cnf(given: MariaDbOperator) -> str:
    requests = {"requests": given.resources} if given.resources else None
    lines = (
        "[mariadb]",
        "bind-address=*",
        "default_storage_engine=InnoDB",
        "innodb_default_row_format=DYNAMIC",
        f"innodb_buffer_pool_size={buffer_pool(requests) // _MIB}M",
        "innodb_log_file_size=64M",
        "innodb_lock_wait_timeout=900",
        # Without it slurmdbd ends at a conflict of two of its threads, from MariaDB 11.6 on.
        "loose_innodb_snapshot_isolation=OFF",
        "max_allowed_packet=16M",
    )
    return "\n".join(lines)


def _pod(cluster: ClusterInputs, given: MariaDbOperator) -> Json:
    """Fields of pod and container, which a MariaDB has side by side."""
    place = filter_place(cluster.spec, cluster.spec.slurm_nodes.accounting.k8s_node_filter_name)
    context = dict(given.pod_security_context or {})
    if given.app_armor_profile != UNCONFINED:
        context = {**app_armor(given.app_armor_profile), **context}
    fields: Json = {
        "affinity": _affinity(place.get("affinity") or {}, apart=(given.replicas or 1) > 1),
        "nodeSelector": place.get("nodeSelector"),
        "tolerations": place.get("tolerations"),
        "priorityClassName": given.priority_class_name,
        "imagePullSecrets": [{"name": name} for name in names_of(given.image_pull_secrets)],
        "podSecurityContext": context,
        "securityContext": given.security_context,
        "command": list(given.command),
        "args": list(given.args),
        "env": merge.items(given.custom_env),
        "livenessProbe": given.liveness_probe,
        "readinessProbe": given.readiness_probe,
        "resources": _resources(given),
    }
    return {name: value for name, value in empty.said(fields).items() if value}


def _resources(given: MariaDbOperator) -> Json:
    every = given.resources or {}
    return {
        "requests": {name: of for name, of in every.items() if name in ("cpu", "memory")},
        "limits": {name: of for name, of in every.items() if name != "cpu"},
    }


def _affinity(given: Json, *, apart: bool) -> Json:
    """An AffinityConfig, whose terms about pods have fewer fields than those of Kubernetes."""
    out: Json = {"antiAffinityEnabled": apart}
    if near := given.get("nodeAffinity"):
        out["nodeAffinity"] = near
    if terms := given.get("podAntiAffinity"):
        out["podAntiAffinity"] = {
            field: [_term(one) for one in merge.items(every)]
            for field, every in cast("Json", terms).items()
        }
    return out


def _term(term: Json) -> Json:
    if "podAffinityTerm" in term:
        return {**term, "podAffinityTerm": _term(term["podAffinityTerm"])}
    return {name: term[name] for name in ("labelSelector", "topologyKey") if name in term}


def _replication(given: Replication) -> Json:
    """spec.replication. Fields of earlier versions of mariadb-operator have their newer names."""
    found = cast("Json", empty.said(plain(given)))
    primary, replica = found.get("primary", {}), found.get("replica", {})
    older = primary.pop("automaticFailover", None)
    if older is not None:
        primary.setdefault("autoFailover", older)
    point = replica.pop("waitPoint", None)
    if point is not None:
        found.setdefault("semiSyncWaitPoint", point)
    for name in ("connectionRetries", "connectionTimeout"):
        replica.pop(name, None)
    found.pop("probesEnabled", None)
    if isinstance(found.get("syncBinlog"), bool):
        found["syncBinlog"] = int(found["syncBinlog"])
    return empty.said(found)
