"""slurmdbd of a SlurmCluster: the Secret with slurmdbd.conf, a Service and a Deployment.

slurmdbd runs below `render/shell/slurmdbd.sh`, which starts as root and gives slurmdbd's user
copies of its files. That script works with any image that has bash and slurmdbd. A command of the
user replaces it; then a changed file restarts the pod.
"""

from __future__ import annotations

import base64
from typing import Any, Final

from penstock.api.cluster import marks
from penstock.api.kubernetes.meta import Json
from penstock.api.kubernetes.spec_parts import ServiceSpec
from penstock.api.nebius import labels, names
from penstock.api.nebius.accounting import AccountingNode
from penstock.api.nebius.common import NodeContainer
from penstock.render.nebius import auth
from penstock.render.nebius import volumes as vol
from penstock.render.nebius.config import slurmdbd_conf as conf
from penstock.render.nebius.container import container, variable
from penstock.render.nebius.inputs import ClusterInputs
from penstock.render.nebius.pod import filter_place, pod_spec, pull_secrets, template
from penstock.render.parts.digest import digest
from penstock.render.parts.owner import owner
from penstock.render.parts.pod_template import (
    config_map_source,
    object_metadata,
    projected,
    secret_source,
    tcp_probe,
)
from penstock.render.parts.script import script
from penstock.render.parts.service import Port, service
from penstock.slurm.auth.key_rotation import CLIENTS

COMPONENT: Final = "accounting"
CONTAINER: Final = "accounting"
_CONFIGS: Final = "slurm-configs"
_CONFIGS_PATH: Final = "/mnt/slurm-configs"
_READY: Final = "/run/penstock/ready"
_KEY_PATH: Final = "/mnt/rest-jwt-key"
_PUBLIC, _PRIVATE = 0o644, 0o600


def conf_hash(text: str, jwt_key: bytes) -> str:
    """Hash of slurmdbd's files, as `render/shell/slurmdbd.sh` reports it.

    The file has a password, so only readers of the key can compute the hash.
    """
    return digest(jwt_key + text.encode())


def has_own_entrypoint(accounting: AccountingNode) -> bool:
    """Whether slurmdbd runs below the operator's script."""
    return accounting.slurmdbd is None or not accounting.slurmdbd.command


def objects(cluster: ClusterInputs, text: str, text_hash: str) -> list[Json]:
    """Secret, Service and Deployment, in the order in which they are applied.

    `text` is slurmdbd.conf, `text_hash` its `conf_hash`.
    """
    return [_secret(cluster, text), _service(cluster), _deployment(cluster, text_hash)]


def _secret(cluster: ClusterInputs, text: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": _metadata(cluster, names.slurmdbd_configs(cluster.name)),
        "type": "Opaque",
        "data": {conf.CONF: base64.b64encode(text.encode()).decode()},
    }


def _service(cluster: ClusterInputs) -> Json:
    port = conf.port(cluster.spec.slurm_nodes.accounting)
    return service(
        names.service(cluster.name, COMPONENT),
        cluster.namespace,
        labels.selector_labels(COMPONENT, cluster.name),
        (Port("", port, CONTAINER),),
        owner(cluster.cluster),
        labels=labels.object_labels(COMPONENT, cluster.name),
        user=ServiceSpec(spec={"type": "ClusterIP"}),
        # slurmctld needs an answer of slurmdbd while the database is away: the pod is not ready.
        unready=True,
    )


def _deployment(cluster: ClusterInputs, text_hash: str) -> Json:
    declared = cluster.spec.slurm_nodes.accounting
    selector = labels.selector_labels(COMPONENT, cluster.name)
    given, munged = _container(declared.slurmdbd), _container(declared.munge)
    spec = pod_spec(
        first=declared.custom_init_containers,
        init=auth.sidecars(cluster.spec, munged),
        containers=[_slurmdbd(cluster, given)],
        volumes=_volumes(cluster, given),
        place=filter_place(cluster.spec, declared.k8s_node_filter_name),
        priority_class=declared.priority_class,
        host_users=declared.host_users,
        pull_secrets=pull_secrets(given, munged),
    )
    found = template(selector, {**spec, "hostname": conf.HOST})
    if not has_own_entrypoint(declared):
        found["metadata"]["annotations"][marks.CONFIG_HASH] = text_hash
    if cluster.clients_key:
        # slurmdbd reads its keys only at its start.
        found["metadata"]["annotations"][marks.SLURM_KEY_HASH] = cluster.clients_key
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _metadata(cluster, f"{cluster.prefix}{COMPONENT}"),
        "spec": {
            "replicas": cluster.replicas(1),
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": selector},
            "template": found,
        },
    }


def _container(given: NodeContainer | None) -> NodeContainer:
    """A declared container; the rules of a SlurmCluster require both."""
    return given or NodeContainer(image="")


def _slurmdbd(cluster: ClusterInputs, given: NodeContainer) -> Json:
    spec, declared = cluster.spec, cluster.spec.slurm_nodes.accounting
    own = has_own_entrypoint(declared)
    probe = _answers_probe() if own else tcp_probe(CONTAINER, periodSeconds=2)
    made = container(
        CONTAINER,
        given,
        port=conf.port(declared),
        # Images may have the user of slurmdbd, who cannot give away files.
        security={"runAsUser": 0, "runAsGroup": 0} if own else None,
        probes={"readinessProbe": probe},
        env=[
            variable("SLURM_ETC", _CONFIGS_PATH),
            variable("SLURMDBD_ETC", conf.FOLDER),
            variable("SLURMDBD_USER", "slurm"),
            variable("SLURMDBD_AUTH", spec.auth_type),
        ]
        if own
        else (),
        mounts=[
            vol.mount(_CONFIGS, _CONFIGS_PATH, read_only=True),
            *auth.slurmdbd_mounts(spec),
            vol.mount("rest-jwt-key", _KEY_PATH, read_only=True),
            vol.mount("spool", conf.SPOOL),
        ],
    )
    if not own:
        return made
    if "tcpSocket" in made["readinessProbe"]:
        # A connection does not show that the database answers. The user's periods stay.
        times = {key: of for key, of in made["readinessProbe"].items() if key != "tcpSocket"}
        made["readinessProbe"] = {**_answers_probe(), **times}
    return {**made, "command": ["/bin/bash", "-c", script("slurmdbd"), "slurmdbd"]}


def _answers_probe() -> Json:
    """Whether slurmdbd answers a client out of its database. No probe ends it while it waits."""
    return {
        "exec": {"command": ["test", "-e", _READY]},
        "periodSeconds": 3,
        "timeoutSeconds": 5,
        "failureThreshold": 1,
    }


def _volumes(cluster: ClusterInputs, given: NodeContainer) -> list[Json]:
    size = (given.resources or {}).get("storage")
    limit: dict[str, Any] = {} if size is None else {"sizeLimit": size}
    return [
        projected(_CONFIGS, _PUBLIC, _sources(cluster)),
        *auth.slurmdbd_volumes(cluster),
        vol.jwt_key_volume(cluster.name),
        {"name": "spool", "emptyDir": limit},
    ]


def _sources(cluster: ClusterInputs) -> list[Json]:
    """The files of slurmdbd and its clients in one folder, which the kubelet changes at once."""
    declared = cluster.spec.slurm_nodes.accounting.external_db
    tls = declared.tls if declared.enabled else None
    files = config_map_source(names.slurm_configs(cluster.name))
    files["configMap"]["optional"] = True
    sources = [
        files,
        secret_source(names.slurmdbd_configs(cluster.name), (conf.CONF, conf.CONF, _PRIVATE)),
        secret_source(names.jwt_secret(cluster.name), (names.JWT_KEY, conf.JWT_KEY, _PRIVATE)),
    ]
    if not cluster.spec.has_munge:
        sources += auth.key_sources(cluster, CLIENTS, _PRIVATE)
    if tls is not None and tls.server_ca_secret_ref:
        sources.append(
            secret_source(tls.server_ca_secret_ref, (conf.CA_FILE, conf.CA_FILE, _PRIVATE))
        )
    if tls is not None and tls.client_cert_secret_ref:
        pair = [(file, file, _PRIVATE) for file in (conf.CERT_FILE, conf.KEY_FILE)]
        sources.append(secret_source(tls.client_cert_secret_ref, *pair))
    return sources


def _metadata(cluster: ClusterInputs, name: str) -> Json:
    own = labels.object_labels(COMPONENT, cluster.name)
    return object_metadata(name, cluster.namespace, own, owner(cluster.cluster))
