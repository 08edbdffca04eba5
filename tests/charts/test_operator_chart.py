"""The chart `slurm-operator` and the plain manifests.

Covers S001 and S028 as far as manifests go; D33, D34, D37, D40; feature rows 60, 61, 65.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml

from penstock import __version__
from penstock.api.kubernetes.meta import Json
from penstock.controllers.runtime.apis import SLINKY
from penstock.controllers.runtime.settings import Settings, parse
from penstock.local import charts, install
from penstock.local.recipes import ROOT
from penstock.local.target import Images
from support.charts import render

# The first test that needs Helm compiles it, on a machine where everything else compiles as well.
pytestmark = pytest.mark.timeout(1800)

FULL: Json = {
    "priorityClassName": "high",
    "imagePullSecrets": [{"name": "registry"}],
    "propagatedNodeConditions": ["GpuBroken", "DiskBroken"],
    "operator": {
        "replicas": 2,
        "image": "registry/operator:1",
        "imagePullPolicy": "Always",
        "slurmImage": "registry/{role}:26.05",
        "clusterDomain": "example.internal",
        "nodeSelector": {"pool": "system"},
        "affinity": {"nodeAffinity": {}},
        "tolerations": [{"operator": "Exists"}],
        "topologySpreadConstraints": [{"maxSkew": 1}],
        "podSecurityContext": {"runAsUser": 7},
        "securityContext": {"readOnlyRootFilesystem": False},
        "resources": {"limits": {"memory": "1Gi"}},
        "pdb": {"enabled": True, "maxUnavailable": 1},
        "accountingWorkers": 1,
        "controllerWorkers": 2,
        "loginsetWorkers": 3,
        "nodesetWorkers": 5,
        "restapiWorkers": 6,
        "tokenWorkers": 7,
        "logLevel": "warn",
        "healthPort": 9081,
        "metricsPort": "9080",
        "leaderElection": True,
        "namespaces": "a, b",
    },
}


def chart(values: Json | None = None) -> dict[str, Json]:
    return render(values, chart="slurm-operator", release="slurm-operator", namespace="slinky")


def container(found: dict[str, Json]) -> Json:
    spec: Json = found["Deployment slurm-operator"]["spec"]["template"]["spec"]
    return spec["containers"][0]


def settings(found: dict[str, Json]) -> Settings:
    return parse(container(found)["args"], {})


def test_the_operator_understands_every_argument() -> None:
    """Feature row 65: each value arrives as the setting it is about."""
    found = settings(chart(FULL))
    assert found.namespaces == ("a", "b")
    assert (found.leader_elect, found.lease_namespace) == (True, "slinky")
    assert (found.health_port, found.metrics_port, found.log_level) == (9081, 9080, "warning")
    kinds = ("accounting", "controller", "loginset", "nodeset", "restapi", "token")
    assert [found.workers_of(kind) for kind in kinds] == [1, 2, 3, 5, 6, 7]
    assert found.propagated_node_conditions == ("GpuBroken", "DiskBroken")
    assert found.images.slurmd == "registry/slurmd:26.05"
    assert found.cluster_domain == "example.internal"
    usual = settings(chart())
    assert (usual.namespaces, usual.workers_of("nodeset"), usual.log_level) == ((), 4, "info")


def test_the_other_values_are_in_the_deployment() -> None:
    """Feature row 60."""
    found = chart(FULL)
    spec: Json = found["Deployment slurm-operator"]["spec"]
    pod, operator = spec["template"]["spec"], container(found)
    assert spec["replicas"] == 2
    assert (operator["image"], operator["imagePullPolicy"]) == ("registry/operator:1", "Always")
    assert operator["resources"]["limits"] == {"memory": "1Gi"}
    assert operator["securityContext"]["readOnlyRootFilesystem"] is False
    assert operator["securityContext"]["allowPrivilegeEscalation"] is False
    assert pod["securityContext"]["runAsUser"] == 7
    for field in ("nodeSelector", "affinity", "tolerations", "topologySpreadConstraints"):
        assert pod[field] == FULL["operator"][field]
    assert pod["priorityClassName"] == "high"
    assert pod["imagePullSecrets"] == [{"name": "registry"}]
    assert found["PodDisruptionBudget slurm-operator"]["spec"]["maxUnavailable"] == 1
    ports = {one["name"]: one["port"] for one in found["Service slurm-operator"]["spec"]["ports"]}
    assert ports == {"metrics": 9080, "health": 9081}


@pytest.mark.parametrize(
    ("image", "text"),
    [
        ({"repository": "r"}, "r:0.1.0"),
        ({"repository": "r", "tag": "1"}, "r:1"),
        ({"repository": "r", "tag": "1", "digest": "sha256:0"}, "r@sha256:0"),
    ],
)
def test_the_image_has_the_version_of_the_chart_unless_set(image: Json, text: str) -> None:
    assert container(chart({"operator": {"image": image}}))["image"] == text


@pytest.mark.parametrize(
    ("level", "ours"),
    [("info", "info"), ("error", "error"), ("panic", "error"), (1, "debug"), ("2", "debug")],
)
def test_levels_of_upstreams_log_are_understood(level: object, ours: str) -> None:
    assert settings(chart({"operator": {"logLevel": level}})).log_level == ours


def test_the_operator_is_admitted_where_only_restricted_pods_are() -> None:
    """S028."""
    found = chart()
    pod: Json = found["Deployment slurm-operator"]["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    own = container(found)["securityContext"]
    assert own["capabilities"] == {"drop": ["ALL"]}
    assert own["allowPrivilegeEscalation"] is False


def test_no_right_is_a_wildcard_and_none_is_exec() -> None:
    """S028."""
    for one in chart().values():
        for rule in one.get("rules", ()):
            words = {*rule["apiGroups"], *rule["resources"], *rule["verbs"]}
            assert not words & {"*", "pods/exec"}
            assert "get" not in rule["verbs"] or rule["resources"]


def test_namespaces_bound_the_rights() -> None:
    """D34, S028, feature row 61: Secrets are read in the watched namespaces only."""
    found = chart({"operator": {"namespaces": ["a", "b"]}})
    everywhere = {
        res for r in found["ClusterRole slurm-operator"]["rules"] for res in r["resources"]
    }
    hooks = {"validatingwebhookconfigurations", "mutatingwebhookconfigurations"}
    assert everywhere == {"nodes", *hooks}
    text = charts.rendered(
        "slurm-operator",
        "slurm-operator",
        "slinky",
        {"operator": {"image": "registry/operator:1", "namespaces": "a,b"}},
    )
    roles = [one for one in charts.objects(text) if one["kind"] == "Role"]
    secrets = [
        one["metadata"]["namespace"]
        for one in roles
        if any("secrets" in rule["resources"] for rule in one["rules"])
    ]
    # The third is about the one Secret of the webhooks.
    assert secrets == ["a", "b", "slinky"]


def test_a_service_account_of_ones_own_comes_with_its_own_rights() -> None:
    found = chart({"operator": {"serviceAccount": {"create": False, "name": "mine"}}})
    spec = found["Deployment slurm-operator"]["spec"]["template"]["spec"]
    assert spec["serviceAccountName"] == "mine"
    assert not {"ServiceAccount", "Role", "ClusterRole"} & {one["kind"] for one in found.values()}


def test_another_version_of_the_chart_restarts_no_operator_of_the_same_image(
    tmp_path: Path,
) -> None:
    """D37."""
    newer = tmp_path / "slurm-operator"
    shutil.copytree(charts.CHARTS / "slurm-operator", newer)
    text = yaml.safe_load((newer / "Chart.yaml").read_text())
    (newer / "Chart.yaml").write_text(
        yaml.safe_dump({**text, "version": "9.9.9", "appVersion": "9"})
    )
    values: Json = {"operator": {"image": {"repository": "r", "tag": "same"}}, "global": {}}
    after = render(values, chart=str(newer), release="slurm-operator", namespace="slinky")
    name = "Deployment slurm-operator"
    assert after[name]["spec"] == chart(values)[name]["spec"]
    assert (
        after["Service slurm-operator"]["spec"] == chart(values)["Service slurm-operator"]["spec"]
    )


def test_the_kinds_come_with_the_operator_if_asked_and_in_a_chart_of_their_own() -> None:
    """S001, D40: a definition stays when its release goes, and with it all objects."""
    own = render({}, chart="slurm-operator-crds")
    inside = {
        name: one
        for name, one in chart({"crds": {"enabled": True}}).items()
        if one["kind"] == "CustomResourceDefinition"
    }
    assert own == inside
    # Kinds of SlurmClusters are in another chart, as they may belong to another release.
    definitions = {path.stem for path in (ROOT / "deploy" / "crds").glob("*.yaml")}
    kinds = ("backups", "restores", "jailupgrades")
    theirs = ("slurm.nebius.ai", *(f"penstock.dev_{one}" for one in kinds))
    ours = {stem for stem in definitions if not stem.startswith(theirs)}
    assert len(own) == len(ours) == 7
    for name, one in own.items():
        assert one["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep", name


@pytest.mark.parametrize("file", sorted(charts.MANIFESTS))
def test_a_plain_manifest_is_what_the_chart_renders(file: str) -> None:
    """`make manifests` writes it."""
    assert (ROOT / "deploy" / file).read_text() == charts.manifest(file)


def test_a_demo_beside_that_of_slurmclusters_has_the_webhooks_of_one_group() -> None:
    """As the chart renders them for it; a webhook that the chart leaves out has no rules."""
    alone = charts.MANIFESTS["operator.yaml"]
    values = {**alone.values, "operator": {"apis": [SLINKY]}}
    rendered = charts.Plain(alone.chart, alone.release, alone.namespace, values)

    def rules(objects: list[Json]) -> dict[str, Json]:
        hooks = [hook for one in objects for hook in one.get("webhooks", ())]
        return {one["name"]: one["rules"] for one in hooks if one["rules"]}

    assert rules(install.operator(Images("", ""), (SLINKY,))) == rules(rendered.objects())


def test_kustomize_and_the_folder_list_the_same_files() -> None:
    listed = yaml.safe_load((ROOT / "deploy" / "kustomization.yaml").read_text())["resources"]
    there = [f"crds/{path.name}" for path in sorted((ROOT / "deploy" / "crds").glob("*.yaml"))]
    assert listed == [*there, "operator.yaml"]


def test_charts_have_the_version_of_the_project() -> None:
    for name in sorted(path.name for path in charts.CHARTS.iterdir()):
        told: Json = yaml.safe_load((charts.CHARTS / name / "Chart.yaml").read_text())
        assert (told["name"], told["version"]) == (name, __version__)
        assert told["kubeVersion"] == ">= 1.29.0-0"
        assert all(one["version"] == __version__ for one in told.get("dependencies", ()))
