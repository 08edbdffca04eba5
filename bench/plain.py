"""The machine's measure: pods of given images, all at once, that do nothing but listen."""

from __future__ import annotations

import time
from collections.abc import Sequence

import yaml

from bench.watch import FirstSeen, Json, watching
from penstock.local.node import Node

NAMESPACE = "plain"
TIMEOUT_S = 180.0
_LISTEN = "import socket; s = socket.create_server(('', 8080)); s.listen()"


def until_ready(node: Node, images: Sequence[str]) -> float:
    """Seconds from apply until one pod of each image is Ready; then they are deleted."""
    pods = [_pod(number, image) for number, image in enumerate(images)]
    seen = FirstSeen()

    def on_event(_: str, pod: Json) -> None:
        if is_ready(pod):
            seen.mark(pod["metadata"]["name"])

    node.kubectl("create", "namespace", NAMESPACE)
    try:
        with watching(node, NAMESPACE, ["pods"], on_event):
            began = time.time()
            node.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(pods))
            seen.until(*(pod["metadata"]["name"] for pod in pods), timeout=TIMEOUT_S)
    finally:
        remove(node)
    return max(seen.moments.values()) - began


def remove(node: Node) -> None:
    """Delete the pods, also those that a killed bench has left."""
    node.kubectl("delete", "namespace", NAMESPACE, "--ignore-not-found", "--timeout=120s")


def is_ready(obj: Json) -> bool:
    """Whether an object has the condition Ready."""
    status: Json = obj.get("status") or {}
    conditions: list[Json] = status.get("conditions") or []
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def _pod(number: int, image: str) -> Json:
    container: Json = {
        "name": "plain",
        "image": image,
        "command": ["python3", "-c", f"{_LISTEN}\nwhile True: s.accept()[0].close()"],
        "readinessProbe": {"tcpSocket": {"port": 8080}, "periodSeconds": 1},
    }
    spec: Json = {"containers": [container], "terminationGracePeriodSeconds": 0}
    metadata: Json = {"name": f"plain-{number}", "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
