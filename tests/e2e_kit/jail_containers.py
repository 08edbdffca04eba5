"""Pyxis and enroot of the tests for a SlurmCluster: files of pods and jail, not images."""

from __future__ import annotations

import base64
import json
from collections.abc import Collection
from pathlib import PurePosixPath
from typing import Any

from e2e_kit import images, registry
from e2e_kit.api import Json
from e2e_kit.slurmcluster import SlurmClusterSite

IMAGE = f"{registry.NAME}:5000#{registry.HELD}"
INSIDE = 'PRETTY_NAME="an image for jobs"'
CACHE = "/var/cache/enroot"
"""A sub-mount of the jail, of each worker its own."""
_SLURMD, _LOGIN = "localhost/penstock-test/slurmd-pyxis:1", "localhost/penstock-test/login-pyxis:1"
_PLUGIN = "/usr/lib/x86_64-linux-gnu/slurm-wlm/spank_pyxis.so"
_PROGRAMS = ("/usr/bin/enroot", "/usr/bin/enroot-enter")
_SETTINGS = f"""ENROOT_ALLOW_HTTP y
ENROOT_CACHE_PATH {CACHE}
ENROOT_CONFIG_PATH /etc/enroot/credentials
ENROOT_DATA_PATH /tmp/enroot
"""
_SOURCES: list[Json] = [
    {"name": "pyxis", "configMap": {"name": "pyxis"}},
    {"name": "enroot-cache", "emptyDir": {}},
]
_MOUNT: Json = {
    "name": "pyxis",
    "mountPath": _PLUGIN,
    "subPath": PurePosixPath(_PLUGIN).name,
    "readOnly": True,
    "volumeSourceName": "pyxis",
}
_CACHE_MOUNT: Json = {
    "name": "enroot-cache",
    "mountPath": CACHE,
    "volumeSourceName": "enroot-cache",
}


class Containers:
    """The files of the stand-ins, which are those of `tests/e2e/test_containers.py`."""

    def __init__(self) -> None:
        archive = images.build("pyxis", {_SLURMD: "slurmd", _LOGIN: "login"})
        self._files = images.files_of(archive, _SLURMD, (_PLUGIN, *_PROGRAMS))

    def beside(self) -> str:
        """Objects that the pods need, as JSON: the plug-in, and a registry."""
        name = PurePosixPath(_PLUGIN).name
        data = {name: base64.b64encode(self._files[_PLUGIN]).decode()}
        made: Json = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "pyxis"}}
        items = [{**made, "binaryData": data}, *registry.objects()]
        return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})

    def install(self, cluster: SlurmClusterSite) -> None:
        """Put enroot, its settings and the password of the registry into the jail."""
        texts = {
            "/etc/enroot/enroot.conf": _SETTINGS.encode(),
            "/etc/enroot/credentials/.credentials": registry.CREDENTIALS.encode(),
        }
        programs = {name: self._files[name] for name in _PROGRAMS}
        for name, content in {**texts, **programs}.items():
            mode = "755" if name in programs else "644"
            script = f"install -D -m {mode} /dev/null {name}; base64 -d >{name}"
            where = ("exec", "-i", "login-0", "-c", "sshd", "--", "chroot", "/mnt/jail")
            text = base64.b64encode(content).decode()
            cluster.kubectl(*where, "sh", "-c", script, stdin=text)


def with_pyxis(spec: dict[str, Any], daemons: Collection[str] = ("worker", "login")) -> None:
    """Give a SlurmCluster's spec the plug-in on workers and logins, and the cache on workers."""
    spec["volumeSources"] += _SOURCES
    for name in daemons:
        spec["slurmNodes"][name]["volumes"]["customMounts"] = [_MOUNT]
    spec["slurmNodes"]["worker"]["volumes"]["jailSubMounts"] = [_CACHE_MOUNT]
