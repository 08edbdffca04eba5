"""Pods have the labels of their chart's release, and follow it without a restart."""

from __future__ import annotations

from typing import Any

import msgspec

from penstock.api.kubernetes.kinds import Pod
from penstock.api.kubernetes.spec_parts import Metadata, PodTemplate
from penstock.api.slinky.nodeset import NodeSet
from penstock.decide.action import PatchPod
from penstock.decide.nodeset.plan import plan
from penstock.decide.plan_cache import PlanCache
from penstock.decide.pod.chart_labels import changes
from penstock.translate.slinky.chart_labels import chart_labels
from support.nodesets import nodeset, pod, view

CHART, VERSION = "helm.sh/chart", "app.kubernetes.io/version"
RELEASE = {CHART: "slurm-0.1.0", VERSION: "26.05", "team": "hpc"}


def labelled(own: dict[str, str] | None = None, template: dict[str, str] | None = None) -> NodeSet:
    one = nodeset(1)
    made = PodTemplate(metadata=Metadata(labels=template))
    return msgspec.structs.replace(
        one,
        metadata=msgspec.structs.replace(one.metadata, labels=own or {}),
        spec=msgspec.structs.replace(one.spec, template=made),
    )


def patched(one: NodeSet, worker: Pod, quiet: PlanCache | None = None) -> list[dict[str, Any]]:
    found = plan(view(one, worker), quiet).actions
    return [dict(each.labels) for each in found if isinstance(each, PatchPod)]


def test_a_pod_gets_the_labels_of_the_release_and_no_other_of_its_object() -> None:
    """D37."""
    wanted = {CHART: "slurm-0.1.0", VERSION: "26.05"}
    assert chart_labels(labelled(RELEASE)) == wanted
    assert patched(labelled(RELEASE), pod(0)) == [wanted]


def test_the_templates_labels_come_before_the_objects_own() -> None:
    found = chart_labels(labelled(RELEASE, {VERSION: "25.11", "role": "gpu"}))
    assert found == {CHART: "slurm-0.1.0", VERSION: "25.11"}


def test_a_pod_that_has_them_asks_for_nothing_until_the_release_changes() -> None:
    worker = pod(0)
    labels = worker.metadata.labels | RELEASE
    worker = msgspec.structs.replace(
        worker, metadata=msgspec.structs.replace(worker.metadata, labels=labels)
    )
    quiet = PlanCache()
    assert patched(labelled(RELEASE), worker, quiet) == []
    newer = RELEASE | {CHART: "slurm-0.2.0"}
    assert patched(labelled(newer), worker, quiet) == [{CHART: "slurm-0.2.0"}]


def test_a_label_that_the_object_no_longer_has_stays() -> None:
    worker = pod(0)
    kept = msgspec.structs.replace(
        worker, metadata=msgspec.structs.replace(worker.metadata, labels=RELEASE)
    )
    assert changes(kept, chart_labels(labelled())) == {}


def test_a_value_that_no_label_can_have_is_left_out() -> None:
    """Else the API server would reject each of the pods."""
    for wrong in ("a b", "x" * 64, "-x", "x\n"):
        assert chart_labels(labelled({}, {VERSION: wrong, CHART: ""})) == {CHART: ""}
