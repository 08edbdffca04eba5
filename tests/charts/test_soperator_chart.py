"""The charts `soperator` and `soperator-crds`: the operator of SlurmClusters."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from penstock.api.kubernetes.meta import Json
from penstock.controllers.runtime.settings import Settings, parse
from penstock.local.errors import LocalError
from penstock.local.recipes import ROOT
from support.charts import (
    MONITORS,
    Leaf,
    another,
    at,
    defaults,
    leaves,
    put,
    rejection,
    render,
    schema,
)

# Helm may have to be compiled first.
pytestmark = pytest.mark.timeout(1800)

CHART = "soperator"
NAME = "soperator-validating-webhook-configuration"
FULL: Json = {
    "global": {
        "imageRegistry": "registry.example.com/penstock",
        "imageVersion": "1",
        "imagePullSecrets": ["a"],
    },
    "nodeExporter": {"enabled": True, "image": {"repository": "r", "tag": "1"}},
    "controllerManager": {"manager": {"containerSecurityContext": {"privileged": False}}},
    "webhook": {"clientCA": {"configMap": "a"}},
}
VALUES: dict[str, Any] = {
    "controllerManager.manager.apis": ["slinky.slurm.net"],
    "controllerManager.manager.args": ["--health-probe-bind-address=:9081"],
    "controllerManager.manager.slurmImage": "registry/{role}:1",
    "webhookService.ports": [{"port": 444}],
    "controllerManager.manager.env.enableWebhooks": "false",
    "global.imageRegistry": "registry.example.com/other",
    "kubernetesClusterDomain": "example.internal",
}
"""What a key is set to where any word would have no effect."""


def chart(values: Json | None = None, release: str = "soperator") -> dict[str, Json]:
    return render(
        values, chart=CHART, release=release, namespace="soperator", api_versions=MONITORS
    )


def manager(*args: str, **values: Any) -> Json:
    given = {"args": list(args)} if args else {}
    return {"controllerManager": {"manager": {**given, **values}}}


def container(found: dict[str, Json], name: str = "Deployment soperator-manager") -> Json:
    return found[name]["spec"]["template"]["spec"]["containers"][0]


def settings(found: dict[str, Json]) -> Settings:
    one = container(found)
    env = {each["name"]: each.get("value", "") for each in one["env"]}
    return parse(one["args"], {**env, "POD_NAMESPACE": "soperator"})


def test_the_operator_has_the_names_that_users_know() -> None:
    """Deployment, container, process and arguments."""
    found = chart()
    one = container(found)
    assert one["name"] == "manager"
    assert one["command"] == ["/usr/bin/slurm_operator"]
    assert one["args"]
    assert {name for name in found if "soperator-manager" in name} == {
        "ServiceAccount soperator-manager",
        "ClusterRole soperator-manager-role",
        "Deployment soperator-manager",
        "ServiceMonitor soperator-manager-servicemonitor",
    }
    program = ROOT / "images" / "operator" / "slurm_operator"
    assert program.stat().st_mode & 0o111, "it is copied into /usr/bin as it is"
    other = chart(release="another")
    assert "Deployment another-manager" in other


def test_arguments_of_the_original_program_are_understood() -> None:
    found = settings(
        chart(
            manager(
                "--health-probe-bind-address=:9081",
                "--metrics-bind-address=127.0.0.1:9080",
                "--leader-elect",
                "--log-level=debug",
                "--max-concurrent-reconciles=3",
                "--metrics-secure=false",
                "--log-format=json",
            )
        )
    )
    assert (found.health_port, found.metrics_port, found.metrics_host) == (9081, 9080, "127.0.0.1")
    assert (found.leader_elect, found.log_level, found.workers) == (True, "debug", 3)
    assert found.lease_namespace == "soperator"
    prefixed = settings(chart(manager(env={"topologyLabelPrefix": "a.example.org"})))
    assert prefixed.topology_label_prefix == "a.example.org"
    usual = settings(chart())
    assert (usual.health_port, usual.metrics_port, usual.leader_elect) == (8081, 8443, True)
    assert usual.apis == ("slurm.nebius.ai",)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (manager("--metrics-secure=true"), "--metrics-secure: metrics are served as plain HTTP"),
        (manager("--enable-topology-controller=true"), "has no meaning here; remove it"),
        (manager("--log-format=plain"), "has no meaning here; remove it"),
        (manager("leader-elect"), "is no argument, write each as --name=value"),
        (manager(controllersEnabled={"nodeset": False}), "controllersEnabled.nodeset: no part"),
        (manager(controllersEnabled={"other": True}), "'other' not allowed"),
        ({"kruise": {"installOperator": True}}, "no OpenKruise is needed"),
        ({"global": {}}, "name an image. No public registry has Penstock's"),
        (
            manager(image={"repository": "cr.eu-north1.nebius.cloud/soperator/slurm-operator"}),
            "is soperator's own operator",
        ),
        ({"nodeExporter": {"enabled": True}}, "nodeExporter.image.repository: name an image"),
        (manager("--metrics-bind-address=:9443"), "targetPort must differ"),
        ({"webhookservice": {}}, "'webhookservice' not allowed"),
    ],
)
def test_a_value_that_asks_for_what_there_is_not_is_rejected_by_name(
    values: Json, words: str
) -> None:
    assert words in rejection(values, chart=CHART)


def test_objects_and_arguments_fit_together() -> None:
    found = chart()
    told = settings(found).webhooks
    assert (told.port, told.name, told.own) == (9443, NAME, True)
    assert "soperator-webhook-service.soperator.svc" in told.hosts
    assert told.secret == "soperator-webhook-certificates"
    service = found["Service soperator-webhook-service"]["spec"]
    pod: Json = found["Deployment soperator-manager"]["spec"]["template"]
    assert service["selector"].items() <= pod["metadata"]["labels"].items()
    ports = [one["containerPort"] for one in pod["spec"]["containers"][0]["ports"]]
    assert service["ports"][0]["targetPort"] in ports
    for hook in found[f"ValidatingWebhookConfiguration {NAME}"]["webhooks"]:
        at_ = hook["clientConfig"]["service"]
        assert (at_["namespace"], at_["name"], at_["port"]) == (
            "soperator",
            "soperator-webhook-service",
            service["ports"][0]["port"],
        )
    rules = found["ClusterRole soperator-manager-role"]["rules"]
    (trust,) = (one for one in rules if "admissionregistration.k8s.io" in one["apiGroups"])
    assert trust["resourceNames"] == [NAME]
    (secrets, _) = found["Role soperator-webhook-role"]["rules"]
    assert secrets["resourceNames"] == [told.secret]
    monitor = found["ServiceMonitor soperator-manager-servicemonitor"]["spec"]
    labels = found["Service soperator-metrics"]["metadata"]["labels"]
    assert monitor["selector"]["matchLabels"].items() <= labels.items()


def test_without_webhooks_nothing_of_them_is_made() -> None:
    found = chart(manager(env={"enableWebhooks": "false"}))
    assert settings(found).webhooks.port == 0
    assert not [name for name in found if "webhook" in name]


def test_cert_manager_writes_the_certificate_that_the_operator_serves() -> None:
    found = chart({"certManager": {"enabled": True}})
    told = settings(found).webhooks
    certificate = found["Certificate soperator-serving-cert"]["spec"]
    assert (told.own, told.secret) == (False, certificate["secretName"])
    assert certificate["dnsNames"][0] == "soperator-webhook-service.soperator.svc"
    meta = found[f"ValidatingWebhookConfiguration {NAME}"]["metadata"]
    assert meta["annotations"] == {
        "cert-manager.io/inject-ca-from": "soperator/soperator-serving-cert"
    }


def test_a_named_namespace_bounds_rights_and_webhooks() -> None:
    found = chart(manager(env={"slurmOperatorWatchNamespaces": "ml"}))
    assert settings(found).namespaces == ("ml",)
    everywhere = found["ClusterRole soperator-manager-role"]["rules"]
    assert not [one for one in everywhere if "secrets" in one["resources"]]
    assert found["Role soperator-manager-role"]["metadata"]["namespace"] == "ml"
    for hook in found[f"ValidatingWebhookConfiguration {NAME}"]["webhooks"]:
        (selected,) = hook["namespaceSelector"]["matchExpressions"]
        assert selected["values"] == ["ml"]


def test_two_renderings_have_the_same_bytes() -> None:
    """Argo CD would see a change in each rendering else."""
    folder = ROOT / "charts" / CHART / "templates"
    text = "".join(path.read_text() for path in folder.glob("*"))
    for word in ("lookup ", "randAlpha", "uuidv4", "genCA", "now "):
        assert word not in text


def test_the_definitions_are_in_a_chart_of_their_own_and_stay() -> None:
    own = render({}, chart="soperator-crds")
    files = {path.stem for path in (ROOT / "deploy" / "crds").glob("*.yaml")}
    of_cluster = {one for one in files if one.startswith("slurm.nebius.ai_")}
    assert len(of_cluster) == 6
    of_cluster |= {f"penstock.dev_{one}" for one in ("backups", "restores", "jailupgrades")}
    named = {one["metadata"]["name"] for one in own.values()}
    assert named == {".".join(one.split("_")[::-1]) for one in of_cluster}
    for name, one in own.items():
        assert one["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep", name
    assert render({"kubernetesClusterDomain": "a.example.org"}, chart="soperator-crds") == own


def changes(leaf: Leaf) -> bool:
    """Whether another value of the leaf changes an object."""
    usual = at(FULL, leaf.path)
    usual = at(defaults(CHART), leaf.path) if usual is None else usual
    other = VALUES.get(str(leaf)) or another(usual, leaf.node, schema(CHART))
    given = FULL
    if str(leaf) == "global.imageVersion":
        other = "2"
    if str(leaf).startswith("certManager"):
        other = True
    try:
        return chart(given) != chart(put(given, leaf.path, other))
    except LocalError as rejected:
        # What a template rejects, it has read.
        return "execution error" in str(rejected)


def test_every_key_of_the_schema_changes_an_object_or_is_listed_as_idle() -> None:
    whole = schema(CHART)
    found = [one for one in leaves(whole, whole) if not one.description.startswith("Without")]
    # Each of the namespace level's fields is one of the container's security context.
    with ThreadPoolExecutor(2) as pool:
        changed = list(pool.map(changes, found))
    assert [str(one) for one, did in zip(found, changed, strict=True) if not did] == []


def test_the_lease_of_another_namespace_may_be_written_there() -> None:
    """--operator-namespace of soperator's program."""
    manager = {"args": ["--leader-elect", "--operator-namespace=leases"]}
    given = {"controllerManager": {"manager": manager}}
    found = render(given, chart="soperator", release="r", namespace="own")
    role, binding = (
        found["Role r-leader-election-role"],
        found["RoleBinding r-leader-election-rolebinding"],
    )
    assert (role["metadata"]["namespace"], binding["metadata"]["namespace"]) == ("leases", "leases")
    assert binding["subjects"][0]["namespace"] == "own"


def test_kubernetes_nodes_are_written_only_by_an_operator_that_may_take_them_out() -> None:
    """S115."""
    role, rebooter = "ClusterRole soperator-manager-role", "ClusterRole soperator-rebooter"
    found = chart()
    assert rebooter not in found
    assert _node_rights(found[role]) == {"get", "list", "watch"}
    found = chart(manager(nodeOutages=True))
    assert _node_rights(found[role]) == {"get", "list", "watch", "patch"}
    assert found[rebooter]["rules"] == [
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": [""], "resources": ["nodes/status"], "verbs": ["patch"]},
    ]


def test_kubernetes_nodes_are_deleted_only_by_an_operator_that_may_replace_them() -> None:
    """S174."""
    role = "ClusterRole soperator-manager-role"
    found = chart(manager(nodeReplacement=True))
    assert _node_rights(found[role]) == {"get", "list", "watch", "patch", "delete"}
    assert "ClusterRole soperator-rebooter" not in found
    assert "delete" not in _node_rights(chart(manager(nodeOutages=True))[role])


def _node_rights(role: Json) -> set[str]:
    return {
        verb for rule in role["rules"] if "nodes" in rule["resources"] for verb in rule["verbs"]
    }
