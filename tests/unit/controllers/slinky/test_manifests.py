"""deploy/operator.yaml: its webhooks reach all kinds, and can keep nobody from anything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from penstock.api.registry import registry
from penstock.controllers.admission.binding import BIND
from penstock.controllers.admission.handlers import Admission
from penstock.controllers.admission.protected_secrets import WRITE_PATH
from penstock.controllers.runtime.settings import WEBHOOKS, parse
from unit.controllers.stage import new_clusters

FOUND: list[dict[str, Any]] = list(
    yaml.safe_load_all((Path(__file__).parents[4] / "deploy" / "operator.yaml").read_text())
)
HOOKS = [hook for one in FOUND for hook in one.get("webhooks", ())]


def named(kind: str, name: str) -> dict[str, Any]:
    (found,) = (one for one in FOUND if (one["kind"], one["metadata"]["name"]) == (kind, name))
    return found


@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: hook["name"])
def test_a_webhook_cannot_lock_anybody_out(hook: dict[str, Any]):
    """Slinky 11.6: upstream's failurePolicy Fail blocks every write when its server is gone."""
    assert hook["failurePolicy"] == "Ignore"
    assert hook["timeoutSeconds"] <= 5
    assert hook["sideEffects"] == "None"
    assert set(hook["admissionReviewVersions"]) == {"v1", "v1beta1"}
    # It would be taken away again with each `kubectl apply`.
    assert "caBundle" not in hook["clientConfig"]


@pytest.mark.parametrize(
    "info",
    registry().kinds,
    ids=lambda info: info.resource.kind,
)
@pytest.mark.parametrize("operation", ["CREATE", "UPDATE"])
def test_every_kind_is_looked_at(info: Any, operation: str):
    rules = named("ValidatingWebhookConfiguration", WEBHOOKS)["webhooks"][0]["rules"]
    resource = info.resource
    assert any(
        resource.plural in rule["resources"]
        and resource.group in rule["apiGroups"]
        and resource.version in rule["apiVersions"]
        and operation in rule["operations"]
        for rule in rules
    )


def test_pods_of_other_namespaces_are_bound_without_a_question():
    """Feature row 63: upstream intercepts all pod bindings."""
    hooks = named("MutatingWebhookConfiguration", WEBHOOKS)["webhooks"]
    (binding,) = (one for one in hooks if one["rules"][0]["resources"] == ["pods/binding"])
    assert binding["namespaceSelector"]["matchLabels"]


def test_service_port_path_and_names_fit_what_the_operator_serves():
    container = named("Deployment", "penstock-operator")["spec"]["template"]["spec"]["containers"]
    settings = parse(container[0]["args"], {"POD_NAMESPACE": "penstock-system"})
    ports = {one["name"]: one["containerPort"] for one in container[0]["ports"]}
    assert ports["webhook"] == settings.webhooks.port
    service = named("Service", settings.webhooks.name)
    (port,) = service["spec"]["ports"]
    assert (port["port"], port["targetPort"]) == (443, "webhook")
    labels = named("Deployment", "penstock-operator")["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= labels.items()
    paths = {*Admission(new_clusters().caches.store.of).handlers, BIND, WRITE_PATH}
    for hook in HOOKS:
        where = hook["clientConfig"]["service"]
        assert (where["namespace"], where["name"]) == (settings.namespace, settings.webhooks.name)
        assert where["path"] in paths


def test_the_operator_may_write_its_own_configurations_and_secret_and_no_others():
    """D34: upstream has every right on every Secret."""
    rules = named("ClusterRole", "penstock-operator")["rules"]
    (rule,) = (r for r in rules if "admissionregistration.k8s.io" in r["apiGroups"])
    assert rule["resourceNames"] == [WEBHOOKS]
    assert "create" not in rule["verbs"]
    named_, unnamed = named("Role", WEBHOOKS)["rules"]
    assert named_["resourceNames"] == [f"{WEBHOOKS}-certificates"]
    assert unnamed["verbs"] == ["create"], "this right alone cannot be bound to a name"
