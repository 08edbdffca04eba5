"""Storage that speaks S3 in a pod with its Service, and its Secret; restic makes the bucket."""

from __future__ import annotations

from typing import Final

from e2e_kit import images
from e2e_kit.api import Json
from penstock.local.node import Node

IMAGE: Final = "localhost/penstock-test/s3:1"
NAME: Final = "s3"
_PORT: Final = 9000
REPOSITORY: Final[Json] = {
    "s3": {
        "endpoint": f"http://{NAME}:{_PORT}",
        "bucket": "slurm",
        "path": "state",
        "credentialsSecretName": NAME,
    },
    "passwordSecretRef": {"name": "backup-password", "key": "password"},
}
OBJECTS: Final[tuple[Json, ...]] = (
    {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": NAME},
        "stringData": {"AWS_ACCESS_KEY_ID": "of-this-test", "AWS_SECRET_ACCESS_KEY": "secret"},
    },
    {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": NAME},
        "spec": {"selector": {"app": NAME}, "ports": [{"port": _PORT}]},
    },
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": NAME, "labels": {"app": NAME}},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "containers": [
                {
                    "name": NAME,
                    "image": IMAGE,
                    "imagePullPolicy": "Never",
                    "ports": [{"containerPort": _PORT}],
                    "readinessProbe": {"tcpSocket": {"port": _PORT}, "periodSeconds": 1},
                }
            ],
        },
    },
)


def load(node: Node) -> None:
    """Give the node the image, built when the cache has none of the present Containerfile."""
    images.load(node, IMAGE)
