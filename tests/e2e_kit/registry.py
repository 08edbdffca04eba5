"""A real registry of container images in a pod, with one image, for those who know the password."""

from __future__ import annotations

import json
import subprocess
from typing import Protocol

from e2e_kit import images
from e2e_kit.api import Json

IMAGE = "localhost/penstock-test/registry:1"
NAME = "registry"
USER, PASSWORD = "reader", "pulls-images"
_HASH = "$2b$04$P7qz5L.3Urm03h.gWOksrucpmFU5yR.pKV/hlXXHDzdGjE1/OrVOa"
"""Of the password, by bcrypt."""
HELD = "team/app:v1"
CREDENTIALS = f"machine {NAME} login {USER} password {PASSWORD}\n"
"""For enroot, in the form of netrc."""
_JOB_IMAGE = "localhost/penstock-test/jobimage:1"
_CONFIG: Json = {
    "version": "0.1",
    "log": {"accesslog": {"disabled": False}, "level": "error"},
    "storage": {"filesystem": {"rootdirectory": "/data"}},
    "http": {"addr": ":5000"},
}
_AUTH: Json = {"htpasswd": {"realm": NAME, "path": "/registry/htpasswd"}}


class Namespace(Protocol):
    """Where the registry runs."""

    def kubectl(self, *arguments: str) -> str:
        """Output of kubectl in the namespace."""
        ...


def objects(name: str = NAME, *, password: bool = True) -> list[Json]:
    """Service and Deployment of it; without a password anybody may push."""
    config = {**_CONFIG, "auth": _AUTH} if password else _CONFIG
    files = {"config.yml": json.dumps(config), "htpasswd": f"{USER}:{_HASH}\n"}
    labels = {"app": name}
    container = {
        "name": name,
        "image": IMAGE,
        "imagePullPolicy": "Never",
        "command": ["docker-registry", "serve", "/registry/config.yml"],
        "ports": [{"containerPort": 5000}],
        "readinessProbe": {"tcpSocket": {"port": 5000}, "periodSeconds": 1},
        "volumeMounts": [
            {"name": "data", "mountPath": "/data"},
            {"name": "files", "mountPath": "/registry"},
        ],
    }
    volumes: list[Json] = [
        {"name": "data", "emptyDir": {}},
        {"name": "files", "configMap": {"name": name}},
    ]
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [container], "volumes": volumes},
    }
    return [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": files},
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": name},
            "spec": {"selector": labels, "ports": [{"port": 5000}]},
        },
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name},
            "spec": {"selector": {"matchLabels": labels}, "template": template},
        },
    ]


def fill(cluster: Namespace) -> None:
    """Push the image for jobs, once the registry of that namespace answers."""
    built = images.build("jobimage", {_JOB_IMAGE: ""})
    cluster.kubectl("rollout", "status", f"deploy/{NAME}", "--timeout=120s")
    address = cluster.kubectl("get", "service", NAME, "-o", "jsonpath={.spec.clusterIP}")
    source = f"oci-archive:{built.path}:{built.exact[_JOB_IMAGE]}"
    target = f"docker://{address}:5000/{HELD}"
    options = ["--quiet", "--dest-tls-verify=false", f"--dest-creds={USER}:{PASSWORD}"]
    command = ["skopeo", "copy", *options, source, target]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def log(cluster: Namespace) -> list[str]:
    """Requests so far: method, path and status."""
    lines = cluster.kubectl("logs", f"deploy/{NAME}", "--tail=-1").splitlines()
    words = [line.split('"') for line in lines if " HTTP/1" in line]
    return [f"{word[1].rpartition(' ')[0]} {word[2].split()[0]}" for word in words]
