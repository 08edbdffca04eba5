"""What a real API server lets the operator do whose chart was told some namespaces."""

from __future__ import annotations

import secrets
from collections.abc import Generator
from dataclasses import dataclass

import pytest
import yaml

from penstock.controllers.runtime.apis import APIS
from penstock.local.errors import LocalError
from penstock.local.node import Node
from support import charts
from support.nebius_clusters import OLDER, of_shape

pytestmark = [pytest.mark.api, pytest.mark.timeout(1800)]

KINDS = {"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "ServiceAccount"}


@dataclass(frozen=True)
class Told:
    """An operator's rights: its own namespace, the one that it watches, and another one."""

    node: Node
    own: str
    watched: str
    other: str

    def may(self, *words: str, stdin: str | None = None) -> bool:
        """Whether the API server does for the operator what kubectl asks for."""
        user = f"--as=system:serviceaccount:{self.own}:slurm-operator"
        try:
            self.node.kubectl(*words, user, stdin=stdin)
        except LocalError as error:
            if "forbidden" not in str(error).lower():
                raise
            return False
        return True


@pytest.fixture(scope="module")
def told(api_node: Node) -> Generator[Told]:
    mark = secrets.token_hex(3)
    found = Told(api_node, f"own-{mark}", f"watched-{mark}", f"other-{mark}")
    for name in (found.own, found.watched, found.other):
        api_node.kubectl("create", "namespace", name)
    operator = {"namespaces": [found.watched], "apis": list(APIS)}
    values = {"operator": operator, "fullnameOverride": "slurm-operator"}
    made = charts.render(values, chart="slurm-operator", namespace=found.own)
    rights = yaml.safe_dump_all([one for one in made.values() if one["kind"] in KINDS])
    api_node.kubectl("apply", "-f", "-", stdin=rights)
    yield found
    api_node.kubectl("delete", "--ignore-not-found", "-f", "-", stdin=rights)
    for name in (found.own, found.watched, found.other):
        api_node.kubectl("delete", "namespace", name, "--wait=false")


@pytest.mark.parametrize("resource", ["secrets", "configmaps", "pods", "statefulsets"])
def test_objects_are_read_in_the_namespaces_that_it_was_given_and_nowhere_else(
    told: Told, resource: str
) -> None:
    """D34, feature row 61."""
    assert told.may("get", resource, "-n", told.watched)
    assert not told.may("get", resource, "-n", told.other)
    assert not told.may("get", resource, "-A")


def test_a_secret_of_another_namespace_cannot_be_written(told: Told) -> None:
    """D34."""
    create = ("create", "secret", "generic", "x", "--dry-run=server")
    assert told.may(*create, "-n", told.watched)
    assert not told.may(*create, "-n", told.other)
    assert not told.may("get", "secret", "other-than-its-own", "-n", told.own)


@pytest.mark.parametrize("image", ["", "registry.example/sconfigcontroller"])
def test_the_role_of_sconfigcontroller_has_no_right_that_the_operator_lacks(
    told: Told, image: str
) -> None:
    """The API server rejects a Role with a right that its author lacks."""
    found = of_shape(OLDER, {"spec.sConfigController.container.image": image})
    role = found.find("Role", "correct-cpu-cluster-sconfigcontroller-configmaps-role")
    role["metadata"] = {"name": "writer"}
    create = ("create", "-f", "-", "--dry-run=server", "-n", told.watched)
    assert told.may(*create, stdin=yaml.safe_dump(role))
    role["rules"] += [{"apiGroups": ["apps"], "resources": ["replicasets"], "verbs": ["delete"]}]
    assert not told.may(*create, stdin=yaml.safe_dump(role))
