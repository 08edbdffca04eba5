"""Where the API server is and how to speak to it: in a pod, or from a kubeconfig file.

Source: Kubernetes documentation, "Organizing Cluster Access Using kubeconfig Files" and
"Accessing the Kubernetes API from a Pod".
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import yaml

from penstock.kube.client.credentials import (
    Credentials,
    ExecCredentials,
    ExecPlugin,
    FileCredentials,
    Material,
)

IN_CLUSTER = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class ConfigError(Exception):
    """There is no usable way to a cluster; the message names what is missing."""


@dataclass(frozen=True, slots=True)
class Config:
    """One cluster and one identity. `namespace` is the default one."""

    server: str
    credentials: Credentials
    namespace: str = "default"
    tls_server_name: str | None = None


def load(path: Path | None = None, context: str | None = None) -> Config:
    """The cluster meant: `path`, else $KUBECONFIG, else this pod's, else ~/.kube/config.

    Raises ConfigError.
    """
    if path is not None:
        return from_kubeconfig([path], context)
    if listed := os.environ.get("KUBECONFIG"):
        return from_kubeconfig([Path(p) for p in listed.split(os.pathsep) if p], context)
    if context is None and os.environ.get("KUBERNETES_SERVICE_HOST"):
        return in_cluster()
    return from_kubeconfig([Path.home() / ".kube" / "config"], context)


def in_cluster(root: Path = IN_CLUSTER, environment: Mapping[str, str] = os.environ) -> Config:
    """The cluster this pod runs in, as its service account. Raises ConfigError."""
    host = environment.get("KUBERNETES_SERVICE_HOST")
    port = environment.get("KUBERNETES_SERVICE_PORT", "443")
    if not host or not (root / "token").exists():
        raise ConfigError(f"not in a pod with a service account: no {root}/token")
    if ":" in host:
        host = f"[{host}]"
    namespace = root / "namespace"
    return Config(
        server=f"https://{host}:{port}",
        credentials=FileCredentials(Material(ca=root / "ca.crt", token=root / "token")),
        namespace=namespace.read_text().strip() if namespace.exists() else "default",
    )


def from_kubeconfig(paths: list[Path], context: str | None = None) -> Config:
    """The named or current context of those files; the first file that names a thing wins.

    Raises ConfigError.
    """
    found = [p for p in paths if p.exists()]
    if not found:
        raise ConfigError(f"no kubeconfig at {', '.join(map(str, paths))}")
    files = [_File(p) for p in found]
    name = context or next((f.current for f in files if f.current), "")
    where = _named(files, "contexts", "context", name)[1]
    cluster_file, cluster = _named(files, "clusters", "cluster", str(where.get("cluster", "")))
    user_file, user = _named(files, "users", "user", str(where.get("user", "")))
    server = cluster.get("server")
    if not server:
        raise ConfigError(f"cluster of context {name!r} has no server")
    material = Material(
        ca=cluster_file.material(cluster, "certificate-authority"),
        certificate=user_file.material(user, "client-certificate"),
        key=user_file.material(user, "client-key"),
        token=user_file.token(user),
        verify=not cluster.get("insecure-skip-tls-verify", False),
    )
    plugin = user_file.plugin(user)
    return Config(
        server=str(server),
        credentials=ExecCredentials(material, plugin) if plugin else FileCredentials(material),
        namespace=str(where.get("namespace") or "default"),
        tls_server_name=cluster.get("tls-server-name"),
    )


class _File:
    """One kubeconfig; relative paths in it are relative to its own folder."""

    def __init__(self, path: Path) -> None:
        self.folder = path.resolve().parent
        try:
            document: Any = yaml.safe_load(path.read_text())
        except yaml.YAMLError as error:
            raise ConfigError(f"{path}: {error}") from error
        self.document = _mapping(document)
        self.current = str(self.document.get("current-context") or "")

    def entry(self, many: str, one: str, name: str) -> dict[str, Any] | None:
        for item in cast("list[Any]", self.document.get(many) or []):
            entry = _mapping(item)
            if entry.get("name") == name:
                return _mapping(entry.get(one))
        return None

    def material(self, entry: dict[str, Any], key: str) -> Path | str | None:
        """Inline data (base64 text) wins over a file, as in kubectl."""
        data = entry.get(f"{key}-data")
        if data:
            return str(data)
        return self.folder / str(entry[key]) if entry.get(key) else None

    def token(self, user: dict[str, Any]) -> Path | str | None:
        if user.get("tokenFile"):
            return self.folder / str(user["tokenFile"])
        return str(user["token"]) if user.get("token") else None

    def plugin(self, user: dict[str, Any]) -> ExecPlugin | None:
        spec = _mapping(user.get("exec"))
        if not spec:
            return None
        command = str(spec.get("command", ""))
        if "/" in command:
            command = str(self.folder / command)
        variables = [_mapping(e) for e in cast("list[Any]", spec.get("env") or [])]
        return ExecPlugin(
            api_version=str(spec.get("apiVersion", "")),
            command=(command, *(str(a) for a in cast("list[Any]", spec.get("args") or []))),
            environment={str(v["name"]): str(v["value"]) for v in variables},
        )


def _named(files: list[_File], many: str, one: str, name: str) -> tuple[_File, dict[str, Any]]:
    for file in files:
        entry = file.entry(many, one, name)
        if entry is not None:
            return file, entry
    raise ConfigError(f"kubeconfig has no {one} {name!r}")


def _mapping(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
