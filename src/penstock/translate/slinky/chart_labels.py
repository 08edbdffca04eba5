"""Labels of a chart's release, which pods have so that a selector on them finds these pods.

slurm-operator copies an object's labels into its pod templates, so each release of a chart replaces
every pod. Here the templates stay the same, and the labels of the pods follow their object.
"""

from __future__ import annotations

import re

from penstock.api.cluster.labels import CHART_LABELS
from penstock.translate.slinky.image_sources import Staffed

_VALUE = re.compile(r"([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?")
"""Values that the API server accepts. Source: Kubernetes documentation, "Labels and Selectors"."""


def chart_labels(obj: Staffed) -> dict[str, str]:
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
