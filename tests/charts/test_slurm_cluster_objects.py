"""Objects beside the SlurmCluster of the chart `slurm-cluster`, and images that it leaves out."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from penstock.api.kubernetes.meta import Json
from support.charts import FIXTURES, MONITORS, put, render
from support.nebius_clusters import CURRENT, OLDER, of_shape

# Helm may have to be compiled first.
pytestmark = pytest.mark.timeout(1800)

CHART = "slurm-cluster"
PLACEHOLDER = "DaemonSet controller-placeholder-correct-cpu-cluster"


def values(name: str) -> Json:
    return yaml.safe_load((FIXTURES / CHART / f"{name}.yaml").read_text())


def chart(given: Json) -> dict[str, Json]:
    return render(given, chart=CHART, release="r", namespace="ml", api_versions=MONITORS)


def spec_of(found: dict[str, Json]) -> Json:
    return next(one["spec"] for one in found.values() if one["kind"] == "SlurmCluster")


def test_placeholders_have_the_images_and_the_place_of_slurmctld() -> None:
    """S091: in the shape of 1.23 alone, and in no Service of slurmctld."""
    found = chart(values("seed"))
    made, controller = found[PLACEHOLDER], spec_of(found)["slurmNodes"]["controller"]
    pod: Json = made["spec"]["template"]["spec"]
    (munge,), (slurmctld,) = pod["initContainers"], pod["containers"]
    assert (munge["name"], munge["restartPolicy"]) == ("munge", "Always")
    assert munge["image"] == controller["munge"]["image"]
    assert slurmctld["image"] == controller["slurmctld"]["image"]
    assert {slurmctld["command"][0], munge["command"][0]} == {"sleep"}
    filters = {one["name"]: one for one in spec_of(found)["k8sNodeFilters"]}
    assert pod["affinity"] == filters["cpu"]["affinity"]
    labels: dict[str, str] = made["spec"]["template"]["metadata"]["labels"]
    assert made["spec"]["selector"]["matchLabels"] == labels
    service = of_shape(OLDER).find("Service", "correct-cpu-cluster-controller-svc")
    selector: dict[str, str] = service["spec"]["selector"]
    assert not selector.items() <= labels.items()
    assert not {"priorityClassName", "volumes"} & pod.keys()


def test_placeholders_can_be_left_out_and_5_0_has_none() -> None:
    """S091."""
    without = put(values("seed"), ["slurmNodes", "controller", "placeholder"], {"enabled": False})
    for found in (chart(without), chart(values("today"))):
        assert not [one for one in found.values() if one["kind"] == "DaemonSet"]
        assert "placeholder" not in spec_of(found)["slurmNodes"]["controller"]


@pytest.mark.parametrize("name", ["seed", "today"])
def test_slurmrestd_has_the_operators_image_unless_one_is_named(name: str) -> None:
    """An image that is named gets the files of soperator's, with which Penstock's cannot start."""
    given = values(name)
    given.get("images", {}).pop("slurmrestd", None)
    assert spec_of(chart(given))["slurmNodes"]["rest"]["rest"]["image"] == ""
    own = put(given, ["images", "slurmrestd"], "r/slurmrestd:1")
    assert spec_of(chart(own))["slurmNodes"]["rest"]["rest"]["image"] == "r/slurmrestd:1"


def test_the_monitor_of_sconfigcontroller_finds_its_pods() -> None:
    """The original's Service selects no pod; in the shape of 1.23 there are no metrics."""
    found = chart(values("today"))
    service = found["Service soperator-sconfigcontroller-metrics"]
    monitor = found["ServiceMonitor soperator-sconfigcontroller-servicemonitor"]
    wanted: dict[str, str] = monitor["spec"]["selector"]["matchLabels"]
    assert wanted.items() <= service["metadata"]["labels"].items()
    deployment = next(one for one in of_shape(CURRENT).objects() if is_config_writer(one))
    pod = deployment["spec"]["template"]
    selector = {**service["spec"]["selector"], "app.kubernetes.io/instance": ""}
    assert selector.keys() <= pod["metadata"]["labels"].keys()
    (port,) = service["spec"]["ports"]
    assert port["targetPort"] in {one["name"] for one in pod["spec"]["containers"][0]["ports"]}
    (endpoint,) = monitor["spec"]["endpoints"]
    assert endpoint["port"] == port["name"]
    rules = found["ClusterRole soperator-sconfigcontroller-metrics-auth"]["rules"]
    assert {one["resources"][0] for one in rules} == {"tokenreviews", "subjectaccessreviews"}
    older = {one["kind"] for one in chart(values("seed")).values()}
    assert "ServiceMonitor" not in older


def is_config_writer(one: dict[str, Any]) -> bool:
    return one["kind"] == "Deployment" and one["metadata"]["name"].endswith("sconfigcontroller")
