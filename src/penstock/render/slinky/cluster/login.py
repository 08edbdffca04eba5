"""LoginSet: the login pods' Deployment, Service and SSH files."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from penstock.api.cluster import labels as app_labels
from penstock.api.kubernetes.meta import Json
from penstock.api.slinky import labels as slinky_labels
from penstock.api.slinky import names
from penstock.api.slinky.loginset import LoginSet
from penstock.render.parts import merge
from penstock.render.parts.digest import config_digest
from penstock.render.parts.key_secret import key_secret
from penstock.render.parts.owner import owner
from penstock.render.parts.pod_template import (
    ETC,
    config_map_source,
    etc_mount,
    memory,
    object_metadata,
    projected,
    secret_source,
    strategy,
    tcp_probe,
    template,
)
from penstock.render.parts.script import script
from penstock.render.parts.service import Port, service
from penstock.render.parts.ssh_host_keys import FILES
from penstock.render.parts.sshd_config import LOGIN, sshd_config
from penstock.render.slinky import auth
from penstock.render.slinky.cluster.adopted_workload import WorkloadSpec
from penstock.render.slinky.inputs import ClusterInputs
from penstock.render.slinky.volumes import config_server, key_sources, worker_search
from penstock.slurm import daemons
from penstock.slurm.auth.key_rotation import CLIENTS

_HOST_KEYS = "ssh-host-keys"
_SSH = "ssh-config"
_SSSD = "sssd-conf"
_KEYS = "slurm-config"
_SACKD = "sackd-dir"
_RUN = "/run/slurm"


def host_keys(loginset: LoginSet, keys: Mapping[str, str]) -> Json:
    """The Secret with the SSH host keys that `hostkeys.generate` made."""
    labels = app_labels.labels("login", loginset.metadata.name)
    return key_secret(loginset, names.login_host_keys(loginset), keys, labels, immutable=True)


def ssh_files(loginset: LoginSet) -> dict[str, str]:
    """`sshd_config` and root's `authorized_keys`."""
    spec = loginset.spec
    note = "# Keys that may log in as root, from rootSshAuthorizedKeys of the LoginSet.\n"
    keys = spec.root_ssh_authorized_keys.strip()
    return {
        "authorized_keys": note + (f"{keys}\n" if keys else ""),
        "sshd_config": sshd_config(LOGIN, spec.extra_sshd_config),
    }


def objects(
    cluster: ClusterInputs,
    loginset: LoginSet,
    *,
    host_keys_hash: str = "",
    sssd_conf_hash: str = "",
) -> list[Json]:
    """ConfigMap, Service and Deployment, in the order in which they are to be written.

    The hashes are `secret_digest` of the host keys' Secret and of sssd.conf's: pods mount single
    files, which never refresh, so a change of content has to roll them.
    """
    instance, namespace = loginset.metadata.name, loginset.metadata.namespace
    labels = app_labels.labels("login", instance)
    selector = app_labels.selector_labels("login", instance)
    wish = loginset.spec.service
    files = ssh_files(loginset)
    hashes = {
        slinky_labels.SLURM_KEY_HASH: cluster.clients_key_hash,
        slinky_labels.SSH_HOST_KEYS_HASH: host_keys_hash,
        slinky_labels.SSHD_CONF_HASH: config_digest(files),
        slinky_labels.SSSD_CONF_HASH: sssd_conf_hash,
    }
    spec: Json = {
        "replicas": loginset.spec.replicas,
        "revisionHistoryLimit": 0,
        "selector": {"matchLabels": selector},
        "template": template(loginset.spec.template, labels, hashes, _pod_spec(cluster, loginset)),
    }
    how = msgspec.to_builtins(loginset.spec.strategy) or strategy(loginset.spec.template)
    if how:
        spec["strategy"] = how
    return [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": object_metadata(
                names.login_ssh_config(loginset), namespace, labels, owner(loginset)
            ),
            "data": files,
        },
        service(
            names.login_service(loginset),
            namespace,
            selector,
            (Port("login", wish.port or daemons.SSH_PORT, "login", wish.node_port),),
            owner(loginset),
            labels=labels,
            user=wish,
        ),
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": object_metadata(
                names.login_workload(loginset), namespace, labels, owner(loginset)
            ),
            "spec": spec,
        },
    ]


def declared(
    cluster: ClusterInputs,
    loginset: LoginSet,
    *,
    host_keys_hash: str = "",
    sssd_conf_hash: str = "",
) -> WorkloadSpec:
    """Desired login pods."""
    spec = loginset.spec
    secrets = [names.slurm_key_ref(cluster.controller).name, names.login_host_keys(loginset)]
    secrets += [spec.sssd_conf_ref.name] if spec.sssd_conf_ref else []
    return WorkloadSpec(
        spec.template,
        {"login": spec.login, "initconf": spec.initconf},
        hashes={
            slinky_labels.SLURM_KEY_HASH: cluster.clients_key_hash,
            slinky_labels.SSH_HOST_KEYS_HASH: host_keys_hash,
            slinky_labels.SSSD_CONF_HASH: sssd_conf_hash,
        },
        more={
            "server": config_server(cluster),
            "sshd": spec.extra_sshd_config.strip(),
            "authorized": spec.root_ssh_authorized_keys.strip(),
        },
        sources=frozenset(("secret", name) for name in secrets),
    )


def _pod_spec(cluster: ClusterInputs, loginset: LoginSet) -> Json:
    login, keys = _login(cluster, loginset), key_sources(cluster, CLIENTS)
    volumes = [
        memory(ETC),
        memory(_SACKD),
        *([projected(_KEYS, 0o600, keys)] if keys else []),
        *auth.volumes(cluster.munge_key),
        projected(
            _HOST_KEYS,
            0o600,
            [
                secret_source(
                    names.login_host_keys(loginset),
                    *((name, name, 0o644 if name.endswith(".pub") else 0o600) for name in _FILES),
                )
            ],
        ),
        projected(
            _SSH,
            0o600,
            [
                config_map_source(
                    names.login_ssh_config(loginset),
                    ("sshd_config", "sshd_config", 0o600),
                    ("authorized_keys", "authorized_keys", 0o600),
                )
            ],
        ),
    ]
    if sssd := loginset.spec.sssd_conf_ref:
        source = secret_source(sssd.name, (sssd.key, "sssd.conf", 0o600))
        volumes.append(projected(_SSSD, 0o600, [source]))
    return {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "dnsConfig": worker_search(cluster),
        "initContainers": [
            *auth.sidecars(cluster.munge_key, cluster.images.munge),
            _initconf(login["image"], loginset.spec.initconf, has_keys=bool(keys)),
        ],
        "containers": [login],
        "volumes": volumes,
    }


_FILES = tuple(file for name in FILES for file in (name, f"{name}.pub"))


def _single(volume: str, directory: str, file: str) -> Json:
    return {
        "name": volume,
        "mountPath": f"{directory}/{file}",
        "subPath": file,
        "readOnly": True,
    }


def _login(cluster: ClusterInputs, loginset: LoginSet) -> Json:
    mounts = [
        etc_mount(),
        {"name": _SACKD, "mountPath": _RUN},
        *auth.mounts(cluster.munge_key),
        *(_single(_HOST_KEYS, "/etc/ssh", file) for file in _FILES),
        _single(_SSH, "/etc/ssh", "sshd_config"),
        _single(_SSH, "/root/.ssh", "authorized_keys"),
    ]
    if loginset.spec.sssd_conf_ref:
        mounts.append(_single(_SSSD, "/etc/sssd", "sssd.conf"))
    port = _ssh_port(loginset)
    # sackd has fetched the configuration, and serves its socket where there is one.
    has_socket = cluster.munge_key is None
    serves = f"test -S {_RUN}/sack.socket" if has_socket else f"test -e {_RUN}/conf/slurm.conf"
    base: Json = {
        "name": "login",
        "image": cluster.images.login,
        "env": [{"name": "SACKD_OPTIONS", "value": f"--conf-server {config_server(cluster)}"}],
        "ports": [{"name": "login", "containerPort": port, "protocol": "TCP"}],
        "livenessProbe": tcp_probe(
            "login", initialDelaySeconds=30, periodSeconds=20, timeoutSeconds=5, failureThreshold=6
        ),
        # Looks at the kernel's table of sockets instead of connecting: sshd logs each connection.
        "readinessProbe": {
            "exec": {
                "command": [
                    "sh",
                    "-c",
                    f"{serves} &&"
                    f" cat /proc/net/tcp /proc/net/tcp6 | grep -q ':{port:04X} [0-9A-F:]* 0A '",
                ]
            },
            "periodSeconds": 2,
        },
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": mounts,
    }
    return merge.container(base, loginset.spec.login)


def _ssh_port(loginset: LoginSet) -> int:
    """Port of sshd: with `hostNetwork` a user's port named `login`."""
    for port in merge.items(loginset.spec.login.get("ports")):
        if port.get("name") == "login" and (number := port.get("containerPort")):
            return int(number)
    return daemons.SSH_PORT


def _initconf(image: str, user: Json, *, has_keys: bool) -> Json:
    base: Json = {
        "name": "initconf",
        "image": image,
        "command": ["sh", "-c", script("initconf")],
        "env": [{"name": "SLURM_USER", "value": "slurm"}],
        "volumeMounts": [
            {"name": ETC, "mountPath": "/mnt/etc/slurm"},
            *([{"name": _KEYS, "mountPath": "/mnt/slurm", "readOnly": True}] if has_keys else []),
        ],
    }
    return merge.container(base, user)
