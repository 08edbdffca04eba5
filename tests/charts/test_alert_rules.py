"""Each alert rule of the chart, played by promtool on series: when it fires, and when it does not.

S117.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from dashboards.alerts import ALERTS, STALLED, Alert
from dashboards.all import DASHBOARDS
from dashboards.model import NAMESPACE, RATE
from penstock.local import golang, programs
from support.charts import render

# The first test that needs Helm or promtool compiles it.
pytestmark = pytest.mark.timeout(1800)

Json = dict[str, Any]
Series = Mapping[str, str]
"""Values of a series by its name with labels, in promtool's notation, one for each minute."""
NS = 'namespace="slurm"'
IDLE = f'slurm_node_info{{{NS},node_name="a",state_base="IDLE"}}'
WAITS = f'slurm_job_info{{{NS},job_id="1",job_state="PENDING",job_state_reason="Resources"}}'
RUNS = f'slurm_job_info{{{NS},job_id="2",job_state="RUNNING"}}'
OF_OPERATOR = {f'penstock_cached_objects{{{NS},instance="a",resource="nodesets"}}': "3x3000"}


def node(name: str, **labels: str) -> str:
    """The name of a node's series."""
    more = "".join(f',{key}="{value}"' for key, value in labels.items())
    return f'slurm_node_info{{{NS},node_name="{name}"{more}}}'


@dataclass(frozen=True)
class Case:
    """Series on which an alert fires after some minutes, and others on which it does not."""

    alert: str
    faulty: Series
    healthy: Series
    minutes: int
    labels: Mapping[str, str]
    summary: str

    @property
    def of(self) -> Alert:
        return next(one for one in ALERTS if one.name == self.alert)


OUT = {"is_unavailable": "true", "state_base": "DOWN"}
DRAINED = {"is_unavailable": "true", "state_is_drain": "true", "reason": "bad disk"}
CASES = (
    Case(
        "SlurmctldUnreachable",
        {f'up{{{NS},job="c",endpoint="slurmctld"}}': "1x9 0x20"},
        # Of two slurmctld one answers.
        {
            f'up{{{NS},job="c",endpoint="slurmctld",pod="a"}}': "0x30",
            f'up{{{NS},job="c",endpoint="slurmctld",pod="b"}}': "1x30",
        },
        16,
        {"namespace": "slurm", "job": "c"},
        "slurmctld in namespace slurm does not answer",
    ),
    Case(
        "SlurmExporterFails",
        {f"slurm_exporter_collection_failures_total{{{NS}}}": "0+1x60"},
        {f"slurm_exporter_collection_failures_total{{{NS}}}": "0 1x60"},
        30,
        {"namespace": "slurm"},
        "The exporter in namespace slurm cannot read Slurm",
    ),
    Case(
        "SlurmNodesUnavailable",
        {IDLE: "1x40", node("b", **OUT): "1x40"},
        {IDLE: "1x40", node("b", **OUT, state_is_maintenance="true"): "1x40"},
        16,
        {"namespace": "slurm"},
        "50% of the nodes in namespace slurm take no job",
    ),
    Case(
        "SlurmNodesUnavailable",
        {
            f"slurm_nodes{{{NS}}}": "10x40",
            f"slurm_nodes_down{{{NS}}}": "1x40",
            f"slurm_nodes_drain{{{NS}}}": "1x40",
        },
        # Where the exporter runs, slurmctld's own numbers do not count.
        {
            IDLE: "1x40",
            f"slurm_nodes{{{NS}}}": "10x40",
            f"slurm_nodes_down{{{NS}}}": "9x40",
            f"slurm_nodes_drain{{{NS}}}": "1x40",
        },
        16,
        {"namespace": "slurm"},
        "20% of the nodes in namespace slurm take no job",
    ),
    Case(
        "SlurmNodeDrainedLong",
        {node("b", **DRAINED): "1x1500"},
        {node("b", **DRAINED): "1x700 _x30 1x700"},
        1450,
        {"namespace": "slurm", "node_name": "b", "reason": "bad disk"},
        "Node b is drained for a day: bad disk",
    ),
    Case(
        "SlurmNodeFailsRepeatedly",
        {
            f'slurm_node_unavailability_duration_seconds_count{{{NS},node_name="b"}}': (
                "1x100 2x100 3x100 4x200"
            )
        },
        {f'slurm_node_unavailability_duration_seconds_count{{{NS},node_name="b"}}': "1x300 2x300"},
        320,
        {"namespace": "slurm", "node_name": "b"},
        "Node b was unavailable three times in a day",
    ),
    Case(
        "SlurmJobsWaitBesideIdleNodes",
        {IDLE: "1x40", WAITS: "1x40"},
        {IDLE: "1x40", WAITS: "1x40", RUNS: "1x40"},
        16,
        {"namespace": "slurm"},
        "1 jobs wait in namespace slurm although nodes are idle",
    ),
    Case(
        "SlurmctldBusy",
        {f"slurm_controller_server_thread_count{{{NS}}}": "230x30"},
        {f"slurm_controller_server_thread_count{{{NS}}}": "190x30"},
        11,
        {"namespace": "slurm"},
        "slurmctld in namespace slurm answers 230 calls at once",
    ),
    Case(
        "SlurmctldBusy",
        {f"slurm_server_thread_cnt{{{NS}}}": "256x30"},
        {f"slurm_server_thread_cnt{{{NS}}}": "3x30"},
        11,
        {"namespace": "slurm"},
        "slurmctld in namespace slurm answers 256 calls at once",
    ),
    Case(
        "SlurmdbdQueueGrows",
        {f"slurm_slurmdbd_queue_size{{{NS}}}": "0+100x60"},
        {f"slurm_slurmdbd_queue_size{{{NS}}}": "900x9 0x60"},
        30,
        {"namespace": "slurm"},
        "3000 records of namespace slurm wait for slurmdbd",
    ),
    Case(
        "PenstockNoLeader",
        {**OF_OPERATOR, f'penstock_leader{{{NS},instance="a"}}': "1x9 0x20"},
        # sconfigcontroller serves the metric without leading.
        {f'penstock_leader{{{NS},instance="b"}}': "0x30"},
        13,
        {"namespace": "slurm"},
        "No operator in namespace slurm leads",
    ),
    Case(
        "PenstockReconcilesFail",
        {f'penstock_reconcile_seconds_count{{{NS},controller="nodeset",result="error"}}': "0+1x60"},
        {
            f'penstock_reconcile_seconds_count{{{NS},controller="nodeset",result="ok"}}': "0+9x60",
            f'penstock_reconcile_seconds_count{{{NS},controller="nodeset",result="error"}}': "4x60",
        },
        30,
        {"namespace": "slurm", "controller": "nodeset"},
        "Reconciles of nodeset fail",
    ),
    Case(
        "PenstockQueueWaits",
        {f'penstock_queue_depth{{{NS},queue="nodeset"}}': "2x30"},
        {f'penstock_queue_depth{{{NS},queue="nodeset"}}': "2 2 2 2 2 0 2x14"},
        16,
        {"namespace": "slurm", "queue": "nodeset"},
        "Objects of nodeset have waited for their reconcile for 15 minutes",
    ),
    Case(
        "PenstockWatchSilent",
        {f'penstock_watch_silence_seconds{{{NS},resource="pods"}}': "0+60x20"},
        {f'penstock_watch_silence_seconds{{{NS},resource="pods"}}': "60x20"},
        10,
        {"namespace": "slurm", "resource": "pods"},
        "The watch of pods is silent for 10m 0s",
    ),
    Case(
        "PenstockWebhookCertificateEnds",
        {f"penstock_webhook_certificate_expiry_timestamp_seconds{{{NS}}}": "864000x90"},
        # There is none yet, or it ends in a month.
        {
            f"penstock_webhook_certificate_expiry_timestamp_seconds{{{NS}}}": "0x90",
            'penstock_webhook_certificate_expiry_timestamp_seconds{namespace="other"}': (
                "2592000x90"
            ),
        },
        80,
        {"namespace": "slurm"},
        "The webhooks' certificate ends in 9d 22h 40m 0s",
    ),
    Case(
        "PenstockEventLoopBlocked",
        {f'penstock_loop_lag_seconds{{{NS},pod="operator-1"}}': "3x20"},
        {f'penstock_loop_lag_seconds{{{NS},pod="operator-1"}}': "3 0x20"},
        6,
        {"namespace": "slurm", "pod": "operator-1"},
        "Process operator-1 is late by 3s",
    ),
    Case(
        "PenstockObjectsUndecodable",
        {f'penstock_undecodable_objects_total{{{NS},resource="pods"}}': "0x9 1x30"},
        {f'penstock_undecodable_objects_total{{{NS},resource="pods"}}': "4x40"},
        20,
        {"namespace": "slurm", "resource": "pods"},
        "Objects of pods do not fit their schema",
    ),
    Case(
        "PenstockJailFilesFail",
        {f'penstock_jail_failures_total{{{NS},kind="JailedConfig"}}': "0+1x60"},
        {f'penstock_jail_failures_total{{{NS},kind="JailedConfig"}}': "0 1x60"},
        40,
        {"namespace": "slurm", "kind": "JailedConfig"},
        "Files of JailedConfig cannot be written into the jail",
    ),
    Case(
        STALLED.name,
        {
            f'kube_customresource_condition{{{NS},customresource_kind="NodeSet",name="gpu",'
            'type="Stalled",status="True",reason="PodsFailing"}': "1x20"
        },
        {
            f'kube_customresource_condition{{{NS},customresource_kind="NodeSet",name="gpu",'
            'type="Stalled",status="False",reason="PodsReady"}': "1x20",
            f'kube_customresource_condition{{{NS},customresource_kind="NodeSet",name="gpu",'
            'type="Ready",status="True",reason="PodsReady"}': "1x20",
        },
        6,
        {
            "namespace": "slurm",
            "customresource_kind": "NodeSet",
            "name": "gpu",
            "reason": "PodsFailing",
        },
        "NodeSet gpu needs a person: PodsFailing",
    ),
)


def series(given: Series) -> list[Json]:
    return [{"series": name, "values": values} for name, values in given.items()]


def promtool(*arguments: str, folder: Path) -> str:
    """Output of promtool. It must succeed."""
    done = subprocess.run(
        [str(golang.compiled(programs.PROMTOOL)), *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def rules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the rules as the chart renders them."""
    folder = tmp_path_factory.mktemp("rules")
    values: Json = {"alerts": {"configMap": True, "stalledObjects": True}}
    found = render(values, chart="penstock-monitoring", release="boards", namespace="monitoring")
    text: str = found["ConfigMap penstock-alerts"]["data"]["rules.yaml"]
    (folder / "rules.yaml").write_text(text)
    return folder


def play(folder: Path, tests: list[Json]) -> None:
    """Have promtool evaluate the rules on series."""
    text = {"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": tests}
    (folder / "test.yaml").write_text(yaml.safe_dump(text))
    promtool("test", "rules", "test.yaml", folder=folder)


def alerts(case: Case, *fired: Json) -> list[Json]:
    return [
        {"eval_time": f"{case.minutes}m", "alertname": case.alert, "exp_alerts": list(fired)},
    ]


def test_promtool_accepts_the_rules(rules: Path) -> None:
    assert f"{len(ALERTS)} rules found" in promtool("check", "rules", "rules.yaml", folder=rules)


def test_each_alert_has_a_case() -> None:
    assert {case.alert for case in CASES} == {one.name for one in ALERTS}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.alert}-{len(case.faulty)}")
def test_an_alert_fires_on_its_fault_with_its_words_and_runbook(rules: Path, case: Case) -> None:
    page = case.labels.get("reason", "") if case.of is STALLED else case.of.page
    fired = {
        "exp_labels": {**case.labels, "severity": case.of.severity},
        "exp_annotations": {
            "summary": case.summary,
            "description": case.of.meaning,
            "runbook_url": f"https://penstock.dev/r/{page}",
        },
    }
    found = series(case.faulty)
    play(
        rules,
        [{"interval": "1m", "input_series": found, "alert_rule_test": alerts(case, fired)}],
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.alert}-{len(case.faulty)}")
def test_an_alert_does_not_fire_without_its_fault(rules: Path, case: Case) -> None:
    found = series(case.healthy)
    play(rules, [{"interval": "1m", "input_series": found, "alert_rule_test": alerts(case)}])


def test_a_query_without_its_series_on_a_cluster_of_tests_finds_them_where_they_are(
    rules: Path,
) -> None:
    """Queries that e2e tests leave out: `dashboards.absent` has the reasons."""
    from dashboards.absent import ABSENT

    queries = {
        query.text: f"{board.name}: {panel.title}"
        for board in DASHBOARDS
        for panel in board.panels()
        for query in panel.queries
    }
    for title, absent in ABSENT.items():
        expr = next(text for text, of in queries.items() if of == title)
        filled = expr.replace(NAMESPACE, 'namespace="slurm"').replace(RATE, "5m")
        expected = [{"labels": absent.labels, "value": absent.value}]
        play(
            rules,
            [
                {
                    "interval": "1m",
                    "input_series": series(absent.series),
                    "promql_expr_test": [
                        {"expr": filled, "eval_time": "10m", "exp_samples": expected}
                    ],
                }
            ],
        )
    assert json.dumps(sorted(ABSENT)) == json.dumps(sorted(set(ABSENT) & set(queries.values())))
