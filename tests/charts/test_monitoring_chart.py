"""The chart `penstock-monitoring`: dashboards and alert rules beside any cluster.

S117.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from dashboards.alerts import ALERTS, GROUPS, STALLED
from dashboards.all import DASHBOARDS
from dashboards.files import FOLDER
from penstock.api.kubernetes.meta import Json
from penstock.local.charts import CHARTS
from support.charts import MONITORS, defaults, leaves, put, rejection, render, schema

# The first test that needs Helm compiles it.
pytestmark = pytest.mark.timeout(1800)

CHART = "penstock-monitoring"
RULES = "PrometheusRule penstock-alerts"
GRAFANA: Json = {"dashboards": {"grafanaOperator": {"enabled": True}}}


def chart(given: Json | None = None, *api_versions: str) -> dict[str, Json]:
    return render(
        given or {},
        chart=CHART,
        release="boards",
        namespace="monitoring",
        api_versions=api_versions,
    )


def rules(given: Json | None = None) -> dict[str, Json]:
    """Rules by the name of their alert."""
    found = chart({"alerts": {"enabled": True, **(given or {})}})[RULES]
    return {one["alert"]: one for group in found["spec"]["groups"] for one in group["rules"]}


def test_without_the_kinds_of_prometheus_it_has_dashboards_alone() -> None:
    """No value is needed, so the chart installs on any cluster."""
    found = chart()
    assert {name.split()[0] for name in found} == {"ConfigMap"}
    assert len(found) == len(DASHBOARDS)


def test_with_the_kinds_of_prometheus_it_has_rules_unless_they_are_switched_off() -> None:
    assert chart({}, *MONITORS).keys() - chart().keys() == {RULES}
    assert RULES not in chart({"alerts": {"enabled": False}}, *MONITORS)
    assert RULES in chart({"alerts": {"enabled": True}})


@pytest.mark.parametrize("name", [one.name for one in DASHBOARDS])
def test_grafanas_sidecar_finds_each_dashboard(name: str) -> None:
    one = chart({"dashboards": {"annotations": {"grafana_folder": "Slurm"}}})[
        f"ConfigMap penstock-dashboard-{name}"
    ]
    assert one["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert one["metadata"]["annotations"] == {"grafana_folder": "Slurm"}
    assert one["metadata"]["namespace"] == "monitoring"
    ((file, text),) = one["data"].items()
    assert file == f"penstock-{name}.json"
    assert json.loads(text) == json.loads((FOLDER / f"dashboards/{name}.json").read_text())


def test_a_kind_of_grafana_operator_leads_to_each_config_map() -> None:
    found = chart(GRAFANA)
    for one in DASHBOARDS:
        spec = found[f"GrafanaDashboard penstock-{one.name}"]["spec"]
        reference = spec["configMapRef"]
        config_map = found[f"ConfigMap {reference['name']}"]
        assert reference["key"] in config_map["data"]
        assert spec["folder"] == "Slurm"


def test_all_rules_but_the_one_for_stalled_objects_are_there_by_default() -> None:
    found = rules()
    assert found.keys() == {one.name for one in ALERTS} - {STALLED.name}
    assert rules({"stalledObjects": True}).keys() == {one.name for one in ALERTS}
    for alerts in GROUPS.values():
        for one in alerts:
            if one is not STALLED:
                assert found[one.name] == one.rule()


def test_an_alert_is_left_out_changed_and_led_to_other_runbooks_by_values() -> None:
    found = rules(
        {
            "disabled": ["SlurmNodeDrainedLong"],
            "severities": {"SlurmctldBusy": "page"},
            "runbookUrl": "https://wiki.example.com/slurm",
        }
    )
    assert "SlurmNodeDrainedLong" not in found
    assert found["SlurmctldBusy"]["labels"] == {"severity": "page"}
    assert found["SlurmdbdQueueGrows"]["labels"] == {"severity": "warning"}
    assert found["SlurmctldBusy"]["annotations"]["runbook_url"] == (
        "https://wiki.example.com/slurm/SlurmctldBusy"
    )


def test_a_prometheus_without_its_operator_gets_the_same_rules_in_a_config_map() -> None:
    given: Json = {"alerts": {"enabled": True, "configMap": True}}
    found = chart(given)
    text: str = found["ConfigMap penstock-alerts"]["data"]["rules.yaml"]
    assert yaml.safe_load(text) == {"groups": found[RULES]["spec"]["groups"]}


def test_a_service_monitor_selects_the_service_of_the_operator() -> None:
    found = chart({"operatorMonitor": {"enabled": True, "namespace": "slinky"}})
    one = found["ServiceMonitor penstock-operator"]
    assert one["metadata"]["namespace"] == "slinky"
    service = render({}, chart="slurm-operator", release="slurm-operator", namespace="slinky")[
        "Service slurm-operator"
    ]
    wanted = one["spec"]["selector"]["matchLabels"]
    assert wanted.items() <= service["metadata"]["labels"].items()
    (endpoint,) = one["spec"]["endpoints"]
    assert endpoint["port"] in {port["name"] for port in service["spec"]["ports"]}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"alerts": {"disabled": ["SlurmNodeLost"]}}, "there is no alert SlurmNodeLost"),
        ({"alerts": {"severities": {"SlurmBusy": "page"}}}, "there is no alert SlurmBusy"),
        ({"dashboards": {"names": ["gpu"]}}, "names"),
        ({"namePrefix": "Slurm"}, "namePrefix"),
        ({"dashboard": {}}, "dashboard"),
    ],
)
def test_values_that_cannot_work_are_named(given: Json, words: str) -> None:
    assert words in rejection(given, chart=CHART)


def test_the_schema_lists_the_dashboards_and_the_values_all_of_them() -> None:
    whole: Any = schema(CHART)
    names = whole["properties"]["dashboards"]["properties"]["names"]["items"]["enum"]
    assert names == [one.name for one in DASHBOARDS] == defaults(CHART)["dashboards"]["names"]


OTHER: dict[str, Any] = {
    "namePrefix": "slurm",
    "dashboards.enabled": False,
    "dashboards.names": ["jobs"],
    "dashboards.labels": {"a": "b"},
    "dashboards.annotations": {"a": "b"},
    "dashboards.grafanaOperator.enabled": False,
    "dashboards.grafanaOperator.instanceSelector": {"matchLabels": {"a": "b"}},
    "dashboards.grafanaOperator.allowCrossNamespaceImport": False,
    "alerts.enabled": False,
    "alerts.configMap": True,
    "alerts.labels": {"release": "prometheus"},
    "alerts.disabled": ["SlurmctldBusy"],
    "alerts.severities": {"SlurmctldBusy": "page"},
    "alerts.stalledObjects": True,
    "operatorMonitor.enabled": False,
    "operatorMonitor.matchLabels": {"a": "b"},
    "operatorMonitor.labels": {"a": "b"},
    "operatorMonitor.interval": "15s",
}
"""Values for keys that do not take any text."""


def test_every_key_of_the_schema_changes_an_object() -> None:
    base: Json = {**GRAFANA, "alerts": {"enabled": True}, "operatorMonitor": {"enabled": True}}
    whole = schema(CHART)
    before = chart(base)
    for leaf in leaves(whole, whole):
        if (name := str(leaf)) != "global":
            assert chart(put(base, leaf.path, OTHER.get(name, "other"))) != before, name


def test_the_chart_has_no_other_files() -> None:
    """`make dashboards` writes all of them."""
    there = {path.suffix for path in (CHARTS / CHART / "files").rglob("*") if path.is_file()}
    assert there == {".json", ".yaml"}
