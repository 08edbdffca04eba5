"""Accounting: slurmdbd's StatefulSet, its Service and the Secret with slurmdbd.conf."""

from __future__ import annotations

import base64
from dataclasses import dataclass

from penstock.api.cluster import labels as app_labels
from penstock.api.cluster import marks
from penstock.api.kubernetes.meta import Json
from penstock.api.kubernetes.spec_parts import SecretKeySelector
from penstock.api.slinky import labels as slinky_labels
from penstock.api.slinky import names
from penstock.api.slinky.accounting import Accounting
from penstock.render.parts import merge
from penstock.render.parts.digest import digest
from penstock.render.parts.owner import owner
from penstock.render.parts.pod_template import (
    ETC,
    config_map_source,
    etc_mount,
    memory,
    object_metadata,
    projected,
    ring_sources,
    secret_source,
    tcp_probe,
    template,
)
from penstock.render.parts.script import script
from penstock.render.parts.service import Port, service
from penstock.render.slinky import auth
from penstock.render.slinky.cluster.adopted_workload import WorkloadSpec
from penstock.slurm import daemons, versions
from penstock.slurm.auth.key_files import JWT_KEY, SLURM_KEY
from penstock.slurm.auth.key_rotation import CLIENTS

CONF = "slurmdbd.conf"
_COMMAND = ["tini", "-g", "--", "bash", "-c", script("slurmdbd"), "slurmdbd"]
_READY = "/run/penstock/ready"
_COPIES = "/run/penstock/etc"


@dataclass(frozen=True, slots=True)
class SlurmdbdInputs:
    """What slurmdbd is given beside its object."""

    image: str
    """For a container for which the user names none."""
    conf: str
    """The text of slurmdbd.conf."""
    jwt_key: bytes
    slurm_key_hash: str
    jwt_key_hash: str
    jwks_hash: str = ""
    munge_image: str = ""
    """For the sidecar with munged."""
    ring: str = ""
    """Secret with the key ring of the cluster that it keeps the records of."""

    @property
    def conf_hash(self) -> str:
        """Hash of the files of slurmdbd, which its container logs as well.

        The file has a password in it, so the hash is one that only who has the key can work out.
        """
        return digest(self.jwt_key + self.conf.encode())


def has_own_entrypoint(accounting: Accounting) -> bool:
    """Whether slurmdbd runs below our script: a user may put another program in its place."""
    return merge.container({"command": _COMMAND}, accounting.spec.slurmdbd)["command"] == _COMMAND


def objects(accounting: Accounting, given: SlurmdbdInputs) -> list[Json]:
    """Secret, Service and StatefulSet, in the order in which they are to be written."""
    instance = accounting.metadata.name
    labels = app_labels.labels("slurmdbd", instance)
    selector = app_labels.selector_labels("slurmdbd", instance)
    name, namespace = names.accounting_workload(accounting), accounting.metadata.namespace
    wish = accounting.spec.service
    port = Port("slurmdbd", wish.port or daemons.SLURMDBD_PORT, "slurmdbd", wish.node_port)
    # Keys are read once, so a changed one restarts slurmdbd; its file does only where nobody is
    # there to have it taken over.
    hashes = {
        slinky_labels.SLURM_KEY_HASH: given.slurm_key_hash,
        slinky_labels.JWT_KEY_HASH: given.jwt_key_hash,
        marks.JWKS_HASH: given.jwks_hash,
        slinky_labels.SLURMDBD_CONF_HASH: "" if has_own_entrypoint(accounting) else given.conf_hash,
    }
    return [
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": object_metadata(name, namespace, labels, owner(accounting)),
            "type": "Opaque",
            "data": {CONF: base64.b64encode(given.conf.encode()).decode()},
        },
        service(
            name,
            namespace,
            selector,
            (port,),
            owner(accounting),
            labels=labels,
            user=wish,
            # The pod is not ready while its database is away. slurmctld needs slurmdbd's answer
            # meanwhile, and a connection as soon as the database is back.
            unready=True,
        ),
        {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "metadata": object_metadata(name, namespace, labels, owner(accounting)),
            "spec": {
                # A pod that never got ready is replaced as well when its template changes.
                "podManagementPolicy": "Parallel",
                "replicas": 1,
                "revisionHistoryLimit": 0,
                "serviceName": name,
                "selector": {"matchLabels": selector},
                "template": template(
                    accounting.spec.template, labels, hashes, _pod_spec(accounting, given)
                ),
            },
        },
    ]


def declared(accounting: Accounting, given: SlurmdbdInputs) -> WorkloadSpec:
    """Desired pod of slurmdbd."""
    spec = accounting.spec
    keys = (spec.slurm_key_ref, spec.munge_key_ref, spec.effective_jwt_key_ref)
    secrets = [ref.name for ref in keys if ref]
    files = [spec.jwks_key_ref.name] if spec.jwks_key_ref else []
    return WorkloadSpec(
        spec.template,
        {"slurmdbd": spec.slurmdbd},
        hashes={
            slinky_labels.SLURM_KEY_HASH: given.slurm_key_hash,
            slinky_labels.JWT_KEY_HASH: given.jwt_key_hash,
        },
        more={
            "storage": digest(given.jwt_key + _storage(given.conf).encode()),
            "extra": spec.extra_conf.strip(),
            "jwks": given.jwks_hash,
        },
        sources=frozenset(
            {
                *(("secret", name) for name in secrets),
                *(("configMap", name) for name in files),
            }
        ),
    )


def _storage(conf: str) -> str:
    """The lines of the database and its password, as declared."""
    return "\n".join(line for line in _lines(conf) if line.startswith("Storage"))


def fits(given: SlurmdbdInputs, text: str) -> bool:
    """Whether another operator's slurmdbd.conf has the same meaning as ours."""
    return _lines(text) == _lines(given.conf)


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip() and line[0] != "#"]


def _pod_spec(accounting: Accounting, given: SlurmdbdInputs) -> Json:
    user = {
        "runAsNonRoot": True,
        "runAsUser": daemons.SLURM_UID,
        "runAsGroup": daemons.SLURM_UID,
    }
    munge = accounting.spec.munge_key_ref
    return {
        "automountServiceAccountToken": False,
        "securityContext": {**user, "fsGroup": daemons.SLURM_UID},
        **_munged(accounting, given),
        "containers": [_slurmdbd(accounting, given, user)],
        "volumes": [_etc(accounting, given), memory("run"), *auth.volumes(munge)],
    }


def _munged(accounting: Accounting, given: SlurmdbdInputs) -> Json:
    found = auth.sidecars(accounting.spec.munge_key_ref, given.munge_image)
    return {"initContainers": found} if found else {}


def _slurmdbd(accounting: Accounting, given: SlurmdbdInputs, user: Json) -> Json:
    port = {"name": "slurmdbd", "containerPort": daemons.SLURMDBD_PORT, "protocol": "TCP"}
    base: Json = {
        "name": "slurmdbd",
        "image": given.image,
        "command": _COMMAND,
        "ports": [port],
        # slurmdbd takes connections only once it has its database, which may be late by hours: no
        # probe ends it for that.
        "readinessProbe": {
            "exec": {"command": ["test", "-e", _READY]},
            "periodSeconds": 3,
            "timeoutSeconds": 5,
            "failureThreshold": 1,
        },
        "securityContext": user,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            etc_mount(),
            {"name": "run", "mountPath": "/run"},
            *auth.mounts(accounting.spec.munge_key_ref),
        ],
    }
    if not has_own_entrypoint(accounting):
        del base["command"]
        base["readinessProbe"] = tcp_probe("slurmdbd", periodSeconds=2)
    env = _variables(accounting, given)
    if env:
        base["env"] = [{"name": name, "value": value} for name, value in env.items()]
    return merge.container(base, accounting.spec.slurmdbd)


def _variables(accounting: Accounting, given: SlurmdbdInputs) -> dict[str, str]:
    """Environment of the container, by name."""
    declared = merge.container({"image": given.image}, accounting.spec.slurmdbd)
    release = versions.of_image(declared["image"])
    found: dict[str, str] = {}
    if accounting.spec.munge_key_ref is not None:
        found["SLURMDBD_AUTH"] = "auth/munge"
    if release is not None and release < versions.SHARED_CONF_SINCE:
        # The kubelet lets the pod's group read files of a Secret. So it gets copies.
        found |= {
            "SLURMDBD_ETC": _COPIES,
            "SLURMDBD_USER": str(daemons.SLURM_UID),
            "SLURM_CONF": f"{_COPIES}/slurm.conf",
        }
    return found


def _etc(accounting: Accounting, given: SlurmdbdInputs) -> Json:
    spec = accounting.spec
    keys = ((spec.slurm_key_ref, SLURM_KEY), (spec.effective_jwt_key_ref, JWT_KEY))
    sources = [
        secret_source(names.accounting_workload(accounting), (CONF, CONF, None)),
        *(_key(ref, file) for ref, file in keys if ref is not None),
    ]
    if given.ring:
        sources += ring_sources(given.ring, CLIENTS)
    if jwks := spec.jwks_key_ref:
        sources.append(config_map_source(jwks.name, (jwks.key, "jwks.json", None)))
    return projected(ETC, 0o600, sources)


def _key(ref: SecretKeySelector, file: str) -> Json:
    return secret_source(ref.name, (ref.key, file, None))
