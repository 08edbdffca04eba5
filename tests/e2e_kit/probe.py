"""Pods of a small program that answers by HTTP and reads and writes files."""

from __future__ import annotations

import os
from pathlib import Path

from penstock.local.golang import Program, compiled
from penstock.local.layout import Layout
from penstock.local.node import Node
from penstock.local.single import archive

IMAGE = "test.local/probe:1"
PROBE = Program("probe", ".", {}, source=Path(__file__).parents[1] / "fixtures/probe")

_PODS = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: shared}
spec: {accessModes: [ReadWriteMany], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: v1
kind: Service
metadata: {name: pods}
spec: {clusterIP: None, selector: {app: web}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: web}
spec:
  serviceName: pods
  replicas: REPLICAS
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 0
      securityContext: {runAsUser: 1234}AFFINITY
      containers:
      - name: probe
        image: test.local/probe:1
        args: [serve]
        volumeMounts: [{name: shared, mountPath: /shared}]
      volumes: [{name: shared, persistentVolumeClaim: {claimName: shared}}]
"""
_APART = """
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
          - labelSelector: {matchLabels: {app: web}}
            topologyKey: kubernetes.io/hostname"""


def add_web(node: Node, namespace: str, replicas: int = 2, *, apart: bool = False) -> None:
    """Make web-0, web-1 ... behind the Services `web` and `pods`, which share a volume.

    `apart` puts each on a Kubernetes node of its own.
    """
    image = Layout(node.name).folder / "probe.tar"
    image.write_bytes(archive(compiled(PROBE), IMAGE, os.uname().machine))
    node.import_image(image)
    node.kubectl("create", "namespace", namespace)
    pods = _PODS.replace("REPLICAS", str(replicas)).replace("AFFINITY", _APART if apart else "")
    node.kubectl("apply", "-n", namespace, "-f", "-", stdin=pods)
    node.kubectl("-n", namespace, "rollout", "status", "statefulset/web", "--timeout=90s")


def probe(node: Node, pod: str, *arguments: str) -> str:
    """What the program prints in a pod of the namespace `web`. Raises LocalError."""
    return node.kubectl("-n", "web", "exec", pod, "--", "/probe", *arguments)
