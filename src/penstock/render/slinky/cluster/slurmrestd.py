"""RestApi: slurmrestd's Deployment and Service."""

from __future__ import annotations

from penstock.api.cluster import labels as app_labels
from penstock.api.kubernetes.meta import Json
from penstock.api.slinky import labels as slinky_labels
from penstock.api.slinky import names
from penstock.api.slinky.restapi import RestApi
from penstock.render.config.sections import identity
from penstock.render.parts import merge
from penstock.render.parts.digest import digest
from penstock.render.parts.owner import owner
from penstock.render.parts.pod_template import (
    ETC,
    config_map_source,
    etc_mount,
    object_metadata,
    projected,
    strategy,
    tcp_probe,
    template,
)
from penstock.render.parts.service import Port, service
from penstock.render.slinky.cluster.adopted_workload import WorkloadSpec
from penstock.render.slinky.config.slurm_conf import slurm_conf
from penstock.render.slinky.inputs import ClusterInputs
from penstock.render.slinky.volumes import config_server
from penstock.slurm import daemons

_ID = daemons.SLURMRESTD_UID


def objects(cluster: ClusterInputs, restapi: RestApi, conf: str | None = None) -> list[Json]:
    """Service and Deployment, in the order in which they are to be written.

    `conf` is the slurm.conf in the ConfigMap that slurmrestd mounts, where there is one already.
    slurmrestd reads it once, so a change restarts it after it was delivered, and not before.
    """
    conf = slurm_conf(cluster) if conf is None else conf
    instance = restapi.metadata.name
    labels = app_labels.labels("slurmrestd", instance)
    selector = app_labels.selector_labels("slurmrestd", instance)
    wish = restapi.spec.service
    port = Port("slurmrestd", wish.port or daemons.SLURMRESTD_PORT, "slurmrestd", wish.node_port)
    # slurmrestd reads slurm.conf once: what concerns it restarts it, a changed partition does not.
    hashes = {slinky_labels.SLURM_CONFIG_HASH: digest(identity(conf))}
    spec: Json = {
        "replicas": restapi.spec.replicas,
        "revisionHistoryLimit": 0,
        "selector": {"matchLabels": selector},
        "template": template(
            restapi.spec.template, labels, hashes, _pod_spec(cluster, restapi, conf)
        ),
    }
    if how := strategy(restapi.spec.template):
        spec["strategy"] = how
    return [
        service(
            names.restapi_service(restapi),
            restapi.metadata.namespace,
            selector,
            (port,),
            owner(restapi),
            labels=labels,
            user=wish,
        ),
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": object_metadata(
                names.restapi_workload(restapi), restapi.metadata.namespace, labels, owner(restapi)
            ),
            "spec": spec,
        },
    ]


def declared(cluster: ClusterInputs, restapi: RestApi, conf: str | None = None) -> WorkloadSpec:
    """Desired pods of slurmrestd, with `conf` as in `objects`.

    With slurm.key, which pods of slurm-operator read: theirs stay, and follow a changed key.
    """
    conf = slurm_conf(cluster) if conf is None else conf
    return WorkloadSpec(
        restapi.spec.template,
        {"slurmrestd": restapi.spec.slurmrestd},
        hashes={slinky_labels.SLURM_KEY_HASH: cluster.slurm_key_hash},
        more=_read_at_start(cluster, accounted=_has_slurmdbd(cluster, conf)),
        sources=frozenset({("secret", names.slurm_key_ref(cluster.controller).name)}),
    )


def _read_at_start(cluster: ClusterInputs, *, accounted: bool) -> dict[str, str]:
    """The desired lines of slurm.conf that slurmrestd reads only at its start."""
    spec, books = cluster.controller.spec, cluster.accounting if accounted else None
    return {
        "cluster": names.cluster_name(cluster.controller),
        "server": config_server(cluster),
        "replicas": str(spec.replicas),
        "extra": identity(spec.extra_conf),
        "jwks": spec.jwks_key_ref.name if spec.jwks_key_ref else "",
        "accounted": "yes" if accounted else "no",
        "accounting": f"{names.accounting_host(books)}:{names.accounting_port(books)}"
        if books
        else "",
    }


def _has_slurmdbd(cluster: ClusterInputs, conf: str) -> bool:
    """Whether slurmdbd's half of the API is to be loaded: it fails to without its slurm.conf."""
    if cluster.accounting is None:
        return cluster.controller.spec.accounting_ref is not None
    return "AccountingStorageType=accounting_storage/slurmdbd" in conf.splitlines()


def _pod_spec(cluster: ClusterInputs, restapi: RestApi, conf: str) -> Json:
    """The pod, without slurm.key.

    The key makes tokens of every user, and slurmrestd is the daemon with a parser that users reach.
    With SLURM_JWT=daemon it needs none: Slurm 24.11 and 26.05 read, write and submit without it.
    """
    user = {"runAsNonRoot": True, "runAsUser": _ID, "runAsGroup": _ID}
    base: Json = {
        "name": "slurmrestd",
        "image": cluster.images.slurmrestd,
        # Without slurmdbd its part of the API would only fail.
        "args": [] if _has_slurmdbd(cluster, conf) else ["-s", "openapi/slurmctld"],
        "env": [
            # Each request brings its own token; slurmrestd itself has none.
            {"name": "SLURM_JWT", "value": "daemon"},
            # Unsharing needs rights that an ordinary container does not have.
            {
                "name": "SLURMRESTD_SECURITY",
                "value": "disable_unshare_files,disable_unshare_sysv",
            },
        ],
        "ports": [
            {"name": "slurmrestd", "containerPort": daemons.SLURMRESTD_PORT, "protocol": "TCP"}
        ],
        "startupProbe": tcp_probe("slurmrestd", periodSeconds=1, failureThreshold=60),
        "livenessProbe": tcp_probe("slurmrestd", periodSeconds=10, failureThreshold=6),
        "readinessProbe": tcp_probe("slurmrestd", periodSeconds=2),
        "securityContext": user,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [etc_mount()],
    }
    slurmrestd = merge.container(base, restapi.spec.slurmrestd)
    slurmrestd["args"] = [*slurmrestd["args"], f"0.0.0.0:{daemons.SLURMRESTD_PORT}"]
    return {
        "automountServiceAccountToken": False,
        "securityContext": {**user, "fsGroup": _ID},
        "containers": [slurmrestd],
        "volumes": [
            projected(
                ETC,
                0o600,
                [
                    config_map_source(
                        names.config_map(cluster.controller),
                        ("slurm.conf", "slurm.conf", None),
                    )
                ],
            )
        ],
    }
