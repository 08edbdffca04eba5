"""Which release of Slurm an image has, and what a pod is made of for it."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.api.cluster.cluster_ref import ControllerRef
from penstock.api.kubernetes.meta import Json, ObjectMeta
from penstock.api.kubernetes.spec_parts import PodTemplate
from penstock.api.slinky.controller import Controller, ControllerSpec, ControllerStatus, Metrics
from penstock.api.slinky.nodeset import NodeSet, NodeSetSpec
from penstock.render.parts.default_images import Images
from penstock.render.slinky.cluster import release
from penstock.render.slinky.cluster import slurmctld as render
from penstock.render.slinky.config.slurm_conf import slurm_conf
from penstock.render.slinky.inputs import ClusterInputs
from penstock.render.slinky.nodeset import pod_spec as worker_spec
from penstock.slurm import versions
from penstock.slurm.versions import V24_11, V25_05, V25_11, V26_05, Version

IMAGES = Images.of("example/{role}:26.05-abc")


@pytest.mark.parametrize(
    ("reference", "found"),
    [
        ("ghcr.io/slinkyproject/slurmctld:25.11-ubuntu24.04", V25_11),
        ("ghcr.io/slinkyproject/slurmctld:25.05.3-rockylinux9", V25_05),
        ("localhost:5000/slurmctld:24.11", V24_11),
        ("slurmctld:slurm-24.11.5", V24_11),
        ("slurmctld:v26.05", V26_05),
        ("slurmctld:25.11@sha256:2605", V25_11),
        ("slurmctld@sha256:24112605", None),
        ("localhost:24.11/slurmctld", None),
        ("slurmctld:latest", None),
        ("slurmctld:ubuntu24.04", None),
        ("x/controller_slurmctld:5.0.0-slurm26.05.3-nebius-2", V26_05),
        ("x/controller_slurmctld:1.23.3-noble-slurm25.05.4", V25_05),
        ("slurmctld:24.110", None),
        ("slurmctld:2024.11", None),
        ("", None),
    ],
)
def test_a_tag_names_a_release_or_none(reference: str, found: Version | None) -> None:
    assert versions.of_image(reference) == found


@pytest.mark.parametrize(
    ("said", "found"),
    [("slurm-wlm 24.11.5", V24_11), ("slurm 25.11.2", V25_11), ("26.05.5", V26_05), ("x", None)],
)
def test_what_a_daemon_reports_of_itself_is_read(said: str, found: Version | None) -> None:
    assert versions.parse(said) == found


@pytest.mark.parametrize(
    ("version", "state", "refused"),
    [
        (V24_11, V26_05, True),
        (V25_11, V26_05, True),
        (V26_05, V24_11, False),
        (V26_05, V26_05, False),
        (V26_05, Version(24, 5), True),
        (V24_11, Version(23, 2), False),
        (Version(27, 11), V26_05, False),
    ],
)
def test_state_is_read_by_its_own_release_and_the_next_three(
    version: Version, state: Version, refused: bool
) -> None:
    assert bool(versions.state_problem(version, state)) == refused


def cluster(image: str = "", *, template: Json | None = None, **status: Any) -> ClusterInputs:
    controller = Controller(
        metadata=ObjectMeta(namespace="slurm", name="slurm"),
        spec=ControllerSpec(
            slurmctld={"image": image} if image else {},
            template=PodTemplate(spec=template or {}),
            metrics=Metrics(enabled=True),
        ),
        status=ControllerStatus(**status),
    )
    return ClusterInputs(controller, IMAGES)


def handlers(cluster: ClusterInputs) -> set[str]:
    (container,) = render.stateful_set(cluster)["spec"]["template"]["spec"]["containers"]
    probes = [container[f"{kind}Probe"] for kind in ("startup", "liveness", "readiness")]
    return {name for probe in probes for name in ("httpGet", "tcpSocket") if name in probe}


@pytest.mark.parametrize(
    ("image", "status", "handler"),
    [
        ("", {}, "httpGet"),
        ("x/slurmctld:24.11.5", {}, "tcpSocket"),
        ("x/slurmctld:25.05", {}, "tcpSocket"),
        ("x/slurmctld:25.11-ubuntu24.04", {}, "httpGet"),
        ("x/slurmctld:stable", {}, "httpGet"),
        # What it said of itself counts more than its tag, and only of that very image.
        (
            "x/slurmctld:stable",
            {"slurm_image": "x/slurmctld:stable", "slurm_version": "24.11.5"},
            "tcpSocket",
        ),
        (
            "x/slurmctld:26.05",
            {"slurm_image": "x/slurmctld:26.05", "slurm_version": "24.11.5"},
            "tcpSocket",
        ),
        (
            "x/slurmctld:26.05",
            {"slurm_image": "x/slurmctld:stable", "slurm_version": "24.11.5"},
            "httpGet",
        ),
    ],
)
def test_slurmctld_is_probed_as_its_release_answers(
    image: str, status: dict[str, Any], handler: str
) -> None:
    assert handlers(cluster(image, **status)) == {handler}


def test_the_image_of_the_pod_template_counts_as_in_the_pod() -> None:
    theirs = {"containers": [{"name": "slurmctld", "image": "x/slurmctld:24.11"}]}
    assert handlers(cluster(template=theirs)) == {"tcpSocket"}


@pytest.mark.parametrize(
    ("image", "state", "handler"),
    [
        ("x/slurmd:24.11", "26.05.5", "tcpSocket"),
        ("x/slurmd:26.05", "24.11.5", "httpGet"),
        ("x/slurmd:stable", "24.11.5", "tcpSocket"),
        ("x/slurmd:stable", "26.05.5", "httpGet"),
        ("x/slurmd:stable", "", "httpGet"),
    ],
)
def test_slurmd_is_probed_as_its_release_answers(image: str, state: str, handler: str) -> None:
    nodeset = NodeSet(
        metadata=ObjectMeta(namespace="slurm", name="compute"),
        spec=NodeSetSpec(controller_ref=ControllerRef(name="slurm"), slurmd={"image": image}),
    )
    found = worker_spec.container(cluster(state_version=state), nodeset)
    assert handler in found["startupProbe"]


@pytest.mark.parametrize(
    ("image", "state", "has"),
    [
        ("x/slurmctld:24.11", "", False),
        ("x/slurmctld:26.05", "", True),
        # The files are read by the one that runs until it is replaced.
        ("x/slurmctld:26.05", "24.11.5", False),
        ("x/slurmctld:stable", "", True),
    ],
)
def test_metrics_are_asked_for_of_a_slurmctld_that_has_them(
    image: str, state: str, has: bool
) -> None:
    assert ("MetricsType" in slurm_conf(cluster(image, state_version=state))) == has


def test_nobody_knows_the_release_of_an_image_without_a_word() -> None:
    assert release.of_slurmctld(cluster("x/slurmctld:stable")) is None
    assert release.running(cluster("x/slurmctld:stable", state_version="25.11.1")) == V25_11
