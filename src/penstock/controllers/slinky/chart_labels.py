"""Gives pods of StatefulSets and Deployments the labels of their object's chart release."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

from penstock.api.kubernetes.kinds import PODS, Pod
from penstock.api.slinky.accounting import Accounting
from penstock.api.slinky.controller import Controller
from penstock.api.slinky.loginset import LoginSet
from penstock.api.slinky.restapi import RestApi
from penstock.decide.pod import chart_labels
from penstock.kube import Client, NotFoundError
from penstock.translate.slinky import chart_labels as declared


async def label(
    client: Client, obj: Controller | Accounting | RestApi | LoginSet, pods: Iterable[Pod]
) -> None:
    """Patch the pods that lack a label of the chart's release or have an older one.

    Raises KubeError.
    """
    wanted = declared.chart_labels(obj)
    for pod in pods:
        meta = pod.metadata
        labels = chart_labels.changes(pod, wanted)
        if meta.deleting or not labels:
            continue
        body = {"metadata": {"uid": meta.uid, "labels": labels}}
        with contextlib.suppress(NotFoundError):
            await client.patch(PODS, meta.namespace, meta.name, body)
