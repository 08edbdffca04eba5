"""Rights, webhooks and environment in the operators' charts, by the API groups that one leads."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.api.kubernetes.meta import Json
from penstock.controllers.runtime.apis import APIS, NEBIUS, SLINKY
from penstock.controllers.runtime.settings import parse
from penstock.local.charts import CHARTS
from support.charts import rejection, render
from support.nebius_clusters import OLDER, of_shape
from support.rights import rights

# Helm may have to be compiled first.
pytestmark = pytest.mark.timeout(1800)

PLACES = {
    "slurm-operator": ("operator",),
    "soperator": ("controllerManager", "manager"),
}
OWN = {"slurm-operator": (SLINKY,), "soperator": (NEBIUS,)}
CHOICES: list[Any] = [None, [SLINKY], [NEBIUS], f"{NEBIUS}, {SLINKY}", ["penstock.dev", SLINKY]]


def values(chart: str, apis: Any) -> Json:
    given: Json = {"apis": apis} if apis is not None else {}
    for name in reversed(PLACES[chart]):
        given = {name: given}
    return given


def chart(name: str, apis: Any = None) -> dict[str, Json]:
    return render(values(name, apis), chart=name, release=name, namespace="system")


def groups(rules: list[Json]) -> set[str]:
    return {group for rule in rules for group in rule["apiGroups"]} & set(APIS)


def led(found: dict[str, Json]) -> tuple[str, ...]:
    """The groups that the operator of these objects leads."""
    (deployment,) = (one for one in found.values() if one["kind"] == "Deployment")
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    env = {one["name"]: one.get("value", "") for one in container["env"]}
    return parse(container["args"], env).apis


def kinds(found: dict[str, Json], kind: str) -> list[Json]:
    return [one for one in found.values() if one["kind"] == kind]


@pytest.mark.parametrize("apis", CHOICES)
@pytest.mark.parametrize("name", PLACES)
def test_rights_and_webhooks_are_about_the_groups_that_the_operator_leads(
    name: str, apis: Any
) -> None:
    found = chart(name, apis)
    wanted = set(OWN[name] if apis is None else [one for one in APIS if one in str(apis)])
    assert set(led(found)) == wanted
    rules = [rule for role in kinds(found, "ClusterRole") for rule in role["rules"]]
    assert groups(rules) == wanted
    (validating,) = kinds(found, "ValidatingWebhookConfiguration")
    hooks = {hook["name"]: hook for hook in validating["webhooks"]}
    assert groups(hooks["validate.penstock.dev"]["rules"]) == wanted
    assert ("secrets.penstock.dev" in hooks) is (NEBIUS in wanted)
    mutating = kinds(found, "MutatingWebhookConfiguration")
    assert len(mutating) == (1 if SLINKY in wanted else 0)


@pytest.mark.parametrize("name", PLACES)
def test_only_secrets_with_the_label_of_protected_ones_are_asked_about(name: str) -> None:
    (validating,) = kinds(chart(name, [NEBIUS]), "ValidatingWebhookConfiguration")
    (hook,) = (one for one in validating["webhooks"] if one["name"] == "secrets.penstock.dev")
    assert hook["objectSelector"] == {"matchLabels": {"slurm.nebius.ai/webhook": "true"}}
    assert hook["rules"][0]["resources"] == ["secrets"]


@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize("apis", [["slurm.example.org"], "", []])
def test_a_group_without_clusters_is_rejected_with_the_known_ones(name: str, apis: Any) -> None:
    said = rejection(values(name, apis), chart=name)
    assert "name slinky.slurm.net, slurm.nebius.ai or both" in said
    assert ".".join((*PLACES[name], "apis")) in said


@pytest.mark.parametrize("name", PLACES)
def test_no_right_is_a_wildcard_and_no_webhook_can_lock_anybody_out(name: str) -> None:
    for one in chart(name, list(APIS)).values():
        for rule in one.get("rules", ()):
            words = {*rule["apiGroups"], *rule["resources"], *rule["verbs"]}
            assert not words & {"*", "pods/exec", "escalate", "bind"}
        for hook in one.get("webhooks", ()):
            assert hook["failurePolicy"] == "Ignore"


def test_both_charts_read_the_same_files() -> None:
    """A right that one operator has for an API, the other has as well."""
    for shared in ("templates/_apis.tpl", "files/rights.yaml", "files/webhooks.yaml"):
        first, second = (CHARTS / name / shared for name in PLACES)
        assert first.read_text() == second.read_text()


@pytest.mark.parametrize("image", ["", "registry.example/sconfigcontroller"])
def test_the_operator_has_each_right_that_it_gives_to_sconfigcontroller(image: str) -> None:
    """The API server lets nobody create a Role with rights that they lack."""
    found = of_shape(OLDER, {"spec.sConfigController.container.image": image})
    role = found.find("Role", "correct-cpu-cluster-sconfigcontroller-configmaps-role")
    own = chart("soperator", [NEBIUS])
    has = {right for one in kinds(own, "ClusterRole") for right in rights(one["rules"])}
    assert rights(role["rules"]) <= has
