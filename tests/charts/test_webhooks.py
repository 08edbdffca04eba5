"""The webhooks of the chart `slurm-operator`.

Covers feature rows 62 to 64, slinky 11.6 (names, failurePolicy), D33 (the same bytes each time).
"""

from __future__ import annotations

import re

import pytest
import yaml

from penstock.api.kubernetes.meta import Json
from penstock.controllers.runtime.settings import Settings, parse
from penstock.local.charts import CHARTS
from support.charts import copy_with_notes, notes, rejection, render

# The first test that needs Helm compiles it, on a machine where everything else compiles as well.
pytestmark = pytest.mark.timeout(1800)

NAME = "slurm-operator-webhook"
VALIDATING = f"ValidatingWebhookConfiguration {NAME}"
MUTATING = f"MutatingWebhookConfiguration {NAME}"
KEY = "kubernetes.io/metadata.name"


def chart(values: Json | None = None, release: str = "slurm-operator") -> dict[str, Json]:
    return render(values, chart="slurm-operator", release=release, namespace="slinky")


def settings(found: dict[str, Json]) -> Settings:
    (deployment,) = (one for one in found.values() if one["kind"] == "Deployment")
    container: Json = deployment["spec"]["template"]["spec"]["containers"][0]
    return parse(container["args"], {"POD_NAMESPACE": "slinky"})


def hooks(found: dict[str, Json]) -> dict[str, Json]:
    """All webhooks by name."""
    return {hook["name"]: hook for one in found.values() for hook in one.get("webhooks", ())}


def test_objects_and_arguments_fit_together() -> None:
    found = chart()
    told = settings(found).webhooks
    assert (told.port, told.name, told.secret, told.own) == (
        9443,
        NAME,
        f"{NAME}-certificates",
        True,
    )
    service, deployment = found[f"Service {NAME}"]["spec"], found["Deployment slurm-operator"]
    pod: Json = deployment["spec"]["template"]
    assert service["selector"].items() <= pod["metadata"]["labels"].items()
    ports = {one["name"]: one["containerPort"] for one in pod["spec"]["containers"][0]["ports"]}
    assert [ports[one["targetPort"]] for one in service["ports"]] == [9443]
    for hook in hooks(found).values():
        at = hook["clientConfig"]["service"]
        assert (at["namespace"], at["name"]) == ("slinky", NAME)
    moved = chart({"webhook": {"serverPort": "10250"}})
    assert settings(moved).webhooks.port == 10250
    assert found[f"Service {NAME}"] == moved[f"Service {NAME}"]


def test_no_value_can_lock_anybody_out() -> None:
    """Slinky 11.6: a values file of slurm-operator's may say Fail, which was its default."""
    found = chart({"webhook": {of: {"failurePolicy": "Fail"} for of in ("validating", "mutating")}})
    assert len(hooks(found)) == 3
    for hook in hooks(found).values():
        assert hook["failurePolicy"] == "Ignore"
        assert "caBundle" not in hook["clientConfig"], "an upgrade would take it away"


@pytest.mark.parametrize(
    ("values", "user"),
    [
        ({}, "slinky:slurm-operator"),
        ({"namespaceOverride": "other"}, "other:slurm-operator"),
        ({"operator": {"serviceAccount": {"name": "mine"}}}, "slinky:mine"),
        ({"fullnameOverride": "full"}, "slinky:full"),
    ],
)
def test_the_operator_asks_nobody_for_leave_to_write(values: Json, user: str) -> None:
    for name in ("validate.penstock.dev", "default.penstock.dev"):
        first = hooks(chart(values))[name]["matchConditions"][0]
        wanted = f"request.userInfo.username != 'system:serviceaccount:{user}'"
        assert first["expression"] == wanted


@pytest.mark.parametrize(
    ("release", "name"),
    [
        ("slurm-operator", NAME),
        ("second", "second-slurm-operator-webhook"),
        ("r" * 53, f"{'r' * 53}-s-webhook"),
    ],
)
def test_names_come_from_the_release(release: str, name: str) -> None:
    """Two releases in one cluster: what has no namespace has two names."""
    found = chart(release=release)
    for kind in ("Service", "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"):
        assert f"{kind} {name}" in found
    assert settings(found).webhooks.name == name
    assert len(name) <= 63


def test_rights_are_those_on_its_own_objects() -> None:
    """D34."""
    found = chart({"operator": {"namespaces": "a"}})
    rule = found["ClusterRole slurm-operator"]["rules"][-1]
    assert rule["resourceNames"] == [NAME]
    assert rule["verbs"] == ["get", "list", "watch", "patch"]
    named, unnamed = found[f"Role {NAME}"]["rules"]
    assert named["resourceNames"] == [f"{NAME}-certificates"]
    assert unnamed["verbs"] == ["create"]
    assert found[f"Role {NAME}"]["metadata"]["namespace"] == "slinky"


@pytest.mark.parametrize(
    "values",
    [
        {"webhook": {"enabled": False}},
        {"webhook": {"serverPort": 0}},
        {"webhook": {"enabled": False}, "certManager": {"enabled": True}},
    ],
)
def test_webhooks_that_are_off_leave_no_trace(values: Json) -> None:
    found = chart(values)
    assert "webhook" not in yaml.safe_dump(list(found.values()))
    assert not settings(found).webhooks.port
    assert not [one for one in found.values() if "cert-manager" in one["apiVersion"]]
    assert "webhook" not in str(chart({**values, "operator": {"enabled": False}}))


def test_cert_manager_makes_the_certificate_if_asked() -> None:
    """Feature row 64, with slurm-operator's values."""
    times: Json = {"duration": "10h", "renewBefore": "1h"}
    found = chart({"certManager": {"enabled": True, "secretName": "mine", **times}})
    told = settings(found).webhooks
    assert (told.secret, told.own) == ("mine", False)
    for name in (VALIDATING, MUTATING):
        note = found[name]["metadata"]["annotations"]["cert-manager.io/inject-ca-from"]
        assert note == "slinky/mine"
    leaf, authority = (found[f"Certificate {one}"]["spec"] for one in ("mine", f"{NAME}-root-ca"))
    assert leaf["secretName"] == "mine"
    assert f"{NAME}.slinky.svc" in leaf["dnsNames"]
    for one in (leaf, authority):
        assert {key: one[key] for key in times} == times
        assert f"Issuer {one['issuerRef']['name']}" in found
    issuer = found[f"Issuer {leaf['issuerRef']['name']}"]["spec"]
    assert issuer["ca"]["secretName"] == authority["secretName"]
    (rule,) = found[f"Role {NAME}"]["rules"]
    assert (rule["resourceNames"], rule["verbs"]) == (["mine"], ["get", "list", "watch"])


def test_a_certificate_of_ones_own_is_only_read() -> None:
    found = chart({"externalCertInjection": {"enabled": True, "secretName": "mine"}})
    told = settings(found).webhooks
    assert (told.secret, told.own) == ("mine", False)
    assert "annotations" not in found[VALIDATING]["metadata"]
    assert len(found[f"Role {NAME}"]["rules"]) == 1


def test_values_of_the_hooks_land_in_them() -> None:
    condition: Json = {"name": "mine", "expression": "true"}
    values: Json = {
        "timeoutSeconds": 7,
        "podsBinding": True,
        "validatingAnnotations": {"a": "1"},
        "mutatingAnnotations": {"b": "2"},
        "namespaces": "x, y",
        "validating": {"matchPolicy": "Exact", "matchConditions": [condition]},
        "mutating": {"matchPolicy": "Exact", "matchConditions": [condition]},
    }
    found = chart({"webhook": values})
    validate, default, binding = (
        hooks(found)[f"{name}.penstock.dev"] for name in ("validate", "default", "topology")
    )
    for hook in (validate, default, binding):
        assert (hook["timeoutSeconds"], hook["matchPolicy"]) == (7, "Exact")
    assert validate["matchConditions"][-1] == binding["matchConditions"][-1] == condition
    assert condition not in default["matchConditions"], "it is about another kind of object"
    assert found[VALIDATING]["metadata"]["annotations"] == {"a": "1"}
    assert found[MUTATING]["metadata"]["annotations"] == {"b": "2"}
    within: Json = {"key": KEY, "operator": "In", "values": ["x", "y"]}
    assert validate["namespaceSelector"] == {"matchExpressions": [within]}
    assert default["namespaceSelector"] == validate["namespaceSelector"]
    first, second = binding["namespaceSelector"]["matchExpressions"]
    assert first == within
    assert second["operator"] == "NotIn"
    assert {"kube-system", "slinky"} <= set(second["values"])
    mine: Json = {"matchLabels": {"team": "hpc"}}
    values["validating"]["namespaceSelector"] = mine
    assert hooks(chart({"webhook": values}))["validate.penstock.dev"]["namespaceSelector"] == mine


def test_pods_are_bound_without_a_question_unless_their_namespace_is_labelled() -> None:
    """Feature row 63: upstream intercepts all pod bindings once it is on."""
    binding = hooks(chart({"operator": {"namespaces": ["a"]}}))["topology.penstock.dev"]
    selector = binding["namespaceSelector"]
    assert selector["matchLabels"] == {"topology.slinky.slurm.net/binding": "enabled"}
    assert selector["matchExpressions"][0]["values"] == ["a"]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"webhook": {"serverPort": 8080}}, "must differ from operator.metricsPort"),
        ({"webhook": {"timeoutSeconds": 60}}, "at '/webhook/timeoutSeconds'"),
        ({"webhook": {"enable": True}}, "additional properties 'enable' not allowed"),
        ({"webhook": {"validating": {"failurePolicy": "ignore"}}}, "failurePolicy"),
        ({"certManager": {"enabled": True, "secretName": ""}}, "name the Secret"),
        ({"externalCertInjection": {"enabled": True}}, "name the Secret with tls.crt"),
        (
            {"certManager": {"enabled": True}, "externalCertInjection": {"enabled": True}},
            "only one of them can make the certificate",
        ),
    ],
)
def test_faults_in_values_of_webhooks(values: Json, words: str) -> None:
    assert words in rejection(values, chart="slurm-operator")


def test_no_template_asks_the_cluster_or_draws_random_values() -> None:
    """D33: with Argo CD and Flux each render would be another certificate."""
    for path in (CHARTS / "slurm-operator" / "templates").iterdir():
        words = set(re.findall(r"\w+", path.read_text()))
        drawn = {"lookup", "genCA", "genSignedCert", "genPrivateKey", "randAlphaNum", "uuidv4"}
        assert not words & drawn, path.name


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> str:
    return copy_with_notes("slurm-operator", tmp_path_factory.mktemp("notes"))


def test_the_notes_list_values_without_effect(told: str) -> None:
    usual = notes(told, {}, "slinky")
    assert "made and renewed by the operator" in usual
    assert "without effect" not in usual
    assert "Fail is not set" not in usual
    idle: Json = {"replicas": 0, "pdb": {"enabled": True}, "nodeSelector": {"a": "b"}}
    said = notes(told, {"webhook": {**idle, "mutating": {"failurePolicy": "Fail"}}}, "slinky")
    assert "webhook.replicas, webhook.nodeSelector, webhook.pdb: without effect" in said
    assert "Fail is not set" in said


@pytest.mark.parametrize("name", ["slurm-operator", "soperator"])
def test_an_api_server_may_have_to_show_a_certificate(name: str) -> None:
    """Audit A25."""
    ca = {"configMap": "api-server-ca", "names": ["kube-apiserver"]}
    found = render({"webhook": {"clientCA": ca}}, chart=name, release=name, namespace="slinky")
    (deployment,) = (one for one in found.values() if one["kind"] == "Deployment")
    pod: Json = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    told = settings(found).webhooks
    assert told.client_ca == "/etc/penstock/client-ca/ca.crt"
    assert told.client_names == ("kube-apiserver",)
    assert pod["volumes"] == [{"name": "client-ca", "configMap": {"name": "api-server-ca"}}]
    (mount,) = container["volumeMounts"]
    assert (mount["name"], mount["readOnly"]) == ("client-ca", True)
    assert told.client_ca.startswith(mount["mountPath"])
