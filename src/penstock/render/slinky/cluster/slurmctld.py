"""Controller: slurmctld's StatefulSet, its Services and its configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.api.cluster import labels as app_labels
from penstock.api.cluster import marks
from penstock.api.kubernetes.meta import Json
from penstock.api.kubernetes.pvc_spec import PvcSpec
from penstock.api.slinky import labels as slinky_labels
from penstock.api.slinky import names
from penstock.api.slinky.controller import Persistence
from penstock.render.config.content import Contents, observed_at
from penstock.render.parts import merge, reconfigure
from penstock.render.parts.config_candidate import candidate_mount, candidate_volume
from penstock.render.parts.owner import owner
from penstock.render.parts.plain import plain
from penstock.render.parts.pod_template import (
    ETC,
    LOGS,
    config_map_source,
    etc_mount,
    logfile,
    logs_mount,
    memory,
    object_metadata,
    projected,
    ring_sources,
    secret_source,
    spread,
    template,
)
from penstock.render.parts.service import Port, service
from penstock.render.slinky import auth
from penstock.render.slinky.cluster import handover, release, sssd
from penstock.render.slinky.cluster import service_aliases as aliases
from penstock.render.slinky.cluster.adopted_workload import WorkloadSpec
from penstock.render.slinky.config.config_maps import config_map, config_maps_of, declared, files
from penstock.render.slinky.config.slurm_conf import state_directory
from penstock.render.slinky.inputs import ClusterInputs
from penstock.render.slinky.volumes import has_ring, key_sources
from penstock.slurm import daemons
from penstock.slurm.auth.key_files import JWT_KEY
from penstock.slurm.auth.key_rotation import SLURMCTLD

_STATE = "statesave"
_SOCKET = "slurm-authsocket"
_RECONFIGURE = "reconfigure"
_RECONFIGURE_COMMAND = reconfigure.command()
_PRIMARY_PORT = Port("slurmctld", daemons.SLURMCTLD_PORT, "slurmctld")


def objects(cluster: ClusterInputs, contents: Contents | None = None) -> list[Json]:
    """Everything a Controller needs, in the order in which it is to be written.

    `contents` of the ConfigMaps are those that are declared when there are none.

    slurmctld's pod is what all others wait for. So its StatefulSet comes as soon as there is what
    the pod mounts and the Service of its name; who connects to it comes later than the rest.
    An external one has only its configuration, which slurmrestd reads.
    """
    controller, contents = cluster.controller, contents or declared(cluster)
    found = _written(cluster, names.config_map(controller), contents.startup, contents.rejected)
    real = [observed_at(one, contents.startup_at) for one in found]
    if controller.spec.external:
        alias = contents.last_known_good or files(cluster)
        return [*real, config_map(cluster, names.config_map_alias(controller), alias)]
    ports = _ports(cluster)
    return [
        _headless_service(cluster),
        *slurmctld_services(cluster),
        *real,
        stateful_set(cluster),
        *_written(cluster, names.config_candidate(controller), contents.candidate),
        _service(cluster, ports),
        *aliases.objects(cluster, ports, contents.last_known_good),
    ]


def declared_pods(cluster: ClusterInputs) -> WorkloadSpec:
    """Desired pods of slurmctld."""
    spec = cluster.controller.spec
    wishes = {"slurmctld": spec.slurmctld, "reconfigure": spec.reconfigure, "logfile": spec.logfile}
    # slurm-operator has the reconfigure container only where inplaceReconfigure is true.
    controller = cluster.controller
    secrets = (names.slurm_key_ref(controller).name, names.jwt_key_ref(controller).name)
    files = [*config_maps_of(cluster), *([spec.jwks_key_ref.name] if spec.jwks_key_ref else [])]
    claim = spec.persistence.existing_claim if spec.persistence is not None else ""
    return WorkloadSpec(
        spec.template,
        wishes,
        hashes={
            slinky_labels.SLURM_KEY_HASH: cluster.slurm_key_hash,
            slinky_labels.JWT_KEY_HASH: cluster.jwt_key_hash,
        },
        more={"replicas": str(spec.replicas)},
        sources=frozenset(
            {
                *(("secret", name) for name in secrets),
                *(("configMap", name) for name in files),
                *([("claim", claim)] if claim else []),
            }
        ),
        optional=frozenset({_RECONFIGURE}),
    )


def _written(
    cluster: ClusterInputs,
    name: str,
    data: Mapping[str, str] | None,
    rejected: Mapping[str, str] | None = None,
) -> list[Json]:
    return [] if data is None else [config_map(cluster, name, data, rejected)]


def tries_configuration(cluster: ClusterInputs) -> bool:
    """Whether the reconfigure container is ours: a user may put another program into it."""
    return _reconfigure(cluster, "")["command"] == _RECONFIGURE_COMMAND


def _instance(cluster: ClusterInputs) -> str:
    return cluster.controller.metadata.name


def _ports(cluster: ClusterInputs) -> tuple[Port, ...]:
    """The user's port, and slurmctld's own beside it.

    Whoever has fetched slurm.conf goes on with SlurmctldPort, which is where slurmctld listens.
    """
    wish = cluster.controller.spec.service
    number = wish.port or daemons.SLURMCTLD_PORT
    first = Port("slurmctld", number, "slurmctld", wish.node_port)
    if number == daemons.SLURMCTLD_PORT:
        return (first,)
    return (first, Port("slurmctld-rpc", daemons.SLURMCTLD_PORT, "slurmctld"))


def _headless_service(cluster: ClusterInputs) -> Json:
    return service(
        names.controller_headless_service(cluster.controller),
        cluster.namespace,
        app_labels.selector_labels("slurmctld", _instance(cluster)),
        (_PRIMARY_PORT,),
        owner(cluster.controller),
        labels=app_labels.labels("slurmctld", _instance(cluster)),
        headless=True,
    )


def slurmctld_services(cluster: ClusterInputs) -> list[Json]:
    """A Service for each slurmctld of several, which SlurmctldHost names.

    Its name resolves whether the pod is there or not. A connection to a pod that is absent, or
    whose Kubernetes node is lost, fails at once: kube-proxy rejects traffic without a ready
    endpoint.
    """
    if cluster.controller.spec.replicas == 1:
        return []
    selector = app_labels.selector_labels("slurmctld", _instance(cluster))
    pods = (
        names.controller_pod(cluster.controller, number)
        for number in range(cluster.controller.spec.replicas)
    )
    return [
        service(
            pod,
            cluster.namespace,
            {**selector, app_labels.STATEFUL_SET_POD: pod},
            (_PRIMARY_PORT,),
            owner(cluster.controller),
            labels=app_labels.labels("slurmctld", _instance(cluster)),
        )
        for pod in pods
    ]


def _service(cluster: ClusterInputs, ports: tuple[Port, ...]) -> Json:
    return service(
        names.controller_service(cluster.controller),
        cluster.namespace,
        {
            **app_labels.selector_labels("slurmctld", _instance(cluster)),
            slinky_labels.CONTROLLER_ACTIVE: app_labels.TRUE,
        },
        ports,
        owner(cluster.controller),
        labels=_service_labels(cluster),
        user=cluster.controller.spec.service,
        # The pod is not ready either while a container beside slurmctld starts again. Nobody must
        # lose slurmctld for that.
        unready=True,
    )


def _service_labels(cluster: ClusterInputs) -> dict[str, str]:
    labels = app_labels.labels("slurmctld", _instance(cluster))
    if cluster.controller.spec.metrics.enabled:
        labels[marks.METRICS] = app_labels.TRUE
    return labels


def stateful_set(cluster: ClusterInputs) -> Json:
    """slurmctld, one pod or a primary with its backups."""
    controller = cluster.controller
    selector = app_labels.selector_labels("slurmctld", _instance(cluster))
    labels = app_labels.labels("slurmctld", _instance(cluster))
    if controller.spec.replicas == 1:
        # The only pod is the active one: the Service must not wait for the operator's label.
        pod_labels = labels | {slinky_labels.CONTROLLER_ACTIVE: app_labels.TRUE}
    else:
        pod_labels = labels
    volume, claims = _state(cluster)
    hashes = {
        slinky_labels.SLURM_KEY_HASH: cluster.slurm_key_hash,
        slinky_labels.JWT_KEY_HASH: cluster.jwt_key_hash,
        marks.KEY_RING: app_labels.TRUE if has_ring(cluster) else "",
        marks.TRIES_CONFIG: app_labels.TRUE if tries_configuration(cluster) else "",
    }
    spec: Json = {
        "replicas": controller.spec.replicas,
        # A backup must not wait for a primary that does not become ready.
        "podManagementPolicy": "Parallel",
        "revisionHistoryLimit": 0,
        "serviceName": names.controller_headless_service(controller),
        "selector": {"matchLabels": selector},
        "template": template(
            controller.spec.template, pod_labels, hashes, _pod_spec(cluster, volume)
        ),
    }
    if claims:
        spec["volumeClaimTemplates"] = claims
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": object_metadata(
            names.controller_workload(controller), cluster.namespace, labels, owner(controller)
        ),
        "spec": spec,
    }


def _pod_spec(cluster: ClusterInputs, state: list[Json]) -> Json:
    spec = cluster.controller.spec
    slurmctld = _slurmctld(cluster)
    user = {"runAsUser": daemons.SLURM_UID, "runAsGroup": daemons.SLURM_UID}
    return {
        "automountServiceAccountToken": False,
        "affinity": spread(app_labels.selector_labels("slurmctld", _instance(cluster))),
        "securityContext": {"runAsNonRoot": True, **user, "fsGroup": daemons.SLURM_UID},
        "initContainers": [
            *auth.sidecars(cluster.munge_key, cluster.images.munge),
            _reconfigure(cluster, slurmctld["image"]),
            logfile(slurmctld["image"], "/var/log/slurm/slurmctld.log", spec.logfile),
            *sssd.sidecars(cluster),
            *handover.containers(cluster, slurmctld["image"]),
        ],
        "containers": [slurmctld],
        "volumes": [
            _etc(cluster),
            _candidates(cluster),
            memory(LOGS),
            memory("run"),
            {"name": _SOCKET, "emptyDir": {}},
            memory(_RECONFIGURE),
            *auth.volumes(cluster.munge_key),
            *sssd.volumes(cluster),
            *state,
        ],
    }


def _slurmctld(cluster: ClusterInputs) -> Json:
    spec = cluster.controller.spec
    version = release.of_slurmctld(cluster)
    # A backup answers /readyz only once it has taken over.
    ready = "/readyz" if spec.replicas == 1 else "/livez"
    base: Json = {
        "name": "slurmctld",
        "image": cluster.images.slurmctld,
        "ports": [
            {"name": "slurmctld", "containerPort": daemons.SLURMCTLD_PORT, "protocol": "TCP"}
        ],
        # Asked each second so that workers wait no longer than they must, and for five minutes,
        # since the state of a large cluster takes its time to load.
        "startupProbe": release.probe(
            version, "/livez", "slurmctld", periodSeconds=1, failureThreshold=300
        ),
        "livenessProbe": release.probe(
            version, "/livez", "slurmctld", periodSeconds=10, timeoutSeconds=5, failureThreshold=6
        ),
        "readinessProbe": release.probe(
            version, ready, "slurmctld", periodSeconds=2, timeoutSeconds=2
        ),
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": daemons.SLURM_UID,
            "runAsGroup": daemons.SLURM_UID,
        },
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            etc_mount(),
            {"name": "run", "mountPath": "/run"},
            {"name": _STATE, "mountPath": state_directory(cluster)},
            {"name": _SOCKET, "mountPath": "/run/slurmctld"},
            logs_mount(),
            *auth.mounts(cluster.munge_key),
            *sssd.mounts(cluster),
        ],
    }
    return merge.container(base, spec.slurmctld)


def _reconfigure(cluster: ClusterInputs, image: str) -> Json:
    state = state_directory(cluster)
    base: Json = {
        "name": "reconfigure",
        "image": image,
        "command": _RECONFIGURE_COMMAND,
        "env": [{"name": "SLURM_STATE", "value": state}],
        "restartPolicy": "Always",
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            etc_mount(),
            candidate_mount(),
            {"name": _SOCKET, "mountPath": "/run/slurmctld", "readOnly": True},
            {"name": _RECONFIGURE, "mountPath": "/run/reconfigure"},
            {"name": _STATE, "mountPath": state, "readOnly": True},
            *auth.mounts(cluster.munge_key),
        ],
    }
    return merge.container(base, cluster.controller.spec.reconfigure)


def _etc(cluster: ClusterInputs) -> Json:
    controller = cluster.controller
    jwt = names.jwt_key_ref(controller)
    sources = [
        config_map_source(names.config_map(controller)),
        *key_sources(cluster, SLURMCTLD),
        secret_source(jwt.name, (jwt.key, JWT_KEY, None)),
        *_users_files(cluster),
    ]
    return projected(ETC, 0o610, sources)


def _candidates(cluster: ClusterInputs) -> Json:
    """/etc/slurm without keys as it is to become, and what the pod's annotations ask for."""
    ring = ring_sources(names.key_ring(cluster.controller), SLURMCTLD) if has_ring(cluster) else []
    candidate = names.config_candidate(cluster.controller)
    return candidate_volume(candidate, 0o640, *ring, *_users_files(cluster))


def _users_files(cluster: ClusterInputs) -> list[Json]:
    sources = [config_map_source(name) for name in config_maps_of(cluster)]
    if jwks := cluster.controller.spec.jwks_key_ref:
        sources.append(config_map_source(jwks.name, (jwks.key, "jwks.json", None)))
    return sources


def _state(cluster: ClusterInputs) -> tuple[list[Json], list[Json]]:
    """The pod's volume for slurmctld's state, or the claim template that makes one."""
    wish = cluster.controller.spec.persistence or Persistence(enabled=True)
    if not wish.enabled:
        return [{"name": _STATE, "emptyDir": {}}], []
    if wish.existing_claim:
        return [{"name": _STATE, "persistentVolumeClaim": {"claimName": wish.existing_claim}}], []
    given: dict[str, Any] = {
        name: getattr(wish, name)
        for name in PvcSpec.__struct_fields__
        if getattr(wish, name) is not None
    }
    claim: Json = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "4Gi"}},
        **plain(PvcSpec(**given)),
    }
    return [], [{"metadata": {"name": _STATE}, "spec": claim}]
