"""Labels of a chart's release, which pods have so that a selector on them finds these pods.

slurm-operator copies an object's labels into its pod templates, so each release of a chart replaces
every pod. Here the templates stay the same, and the labels of the pods follow their object.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from penstock.api.cluster.labels import CHART_LABELS
from penstock.api.kubernetes.kinds import Pod
from penstock.api.slinky.accounting import Accounting
from penstock.api.slinky.controller import Controller
from penstock.api.slinky.loginset import LoginSet
from penstock.api.slinky.nodeset import NodeSet
from penstock.api.slinky.restapi import RestApi

_VALUE = re.compile(r"([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?")
"""Values that the API server accepts. Source: Kubernetes documentation, "Labels and Selectors"."""


def chart_labels(obj: Controller | Accounting | RestApi | LoginSet | NodeSet) -> dict[str, str]:
    """Labels of its chart's release that the pods of an object are to have.

    Those of the pod template come before the object's own, as slurm-operator merges them. A value
    that no label can have is left out: the pod would be rejected for it.
    """
    declared = obj.metadata.labels | (obj.spec.template.metadata.labels or {})
    return {
        key: value
        for key in CHART_LABELS
        if (value := declared.get(key)) is not None and _VALUE.fullmatch(value)
    }


def changes(pod: Pod, wanted: Mapping[str, str]) -> dict[str, str]:
    """The labels that one pod is to be given.

    One that its object no longer has stays on the pod: it may be somebody else's by now.
    """
    has = pod.metadata.labels
    return {key: value for key, value in wanted.items() if has.get(key) != value}
