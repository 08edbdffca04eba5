"""What a real API server lets the operator do whose chart names some namespaces."""

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
class Rights:
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
def rights(api_node: Node) -> Generator[Rights]:
    mark = secrets.token_hex(3)
    found = Rights(api_node, f"own-{mark}", f"watched-{mark}", f"other-{mark}")
    for name in (found.own, found.watched, found.other):
        api_node.kubectl("create", "namespace", name)
    operator = {"namespaces": [found.watched], "apis": list(APIS)}
    values = {"operator": operator, "fullnameOverride": "slurm-operator"}
    made = charts.render(values, chart="slurm-operator", namespace=found.own)
    manifests = yaml.safe_dump_all([one for one in made.values() if one["kind"] in KINDS])
    api_node.kubectl("apply", "-f", "-", stdin=manifests)
    yield found
    api_node.kubectl("delete", "--ignore-not-found", "-f", "-", stdin=manifests)
    for name in (found.own, found.watched, found.other):
        api_node.kubectl("delete", "namespace", name, "--wait=false")


@pytest.mark.parametrize("resource", ["secrets", "configmaps", "pods", "statefulsets"])
def test_objects_are_read_in_the_namespaces_that_it_was_given_and_nowhere_else(
    rights: Rights, resource: str
) -> None:
    """D34, feature row 61."""
    assert rights.may("get", resource, "-n", rights.watched)
    assert not rights.may("get", resource, "-n", rights.other)
    assert not rights.may("get", resource, "-A")


def test_a_secret_of_another_namespace_cannot_be_written(rights: Rights) -> None:
    """D34."""
    create = ("create", "secret", "generic", "x", "--dry-run=server")
    assert rights.may(*create, "-n", rights.watched)
    assert not rights.may(*create, "-n", rights.other)
    assert not rights.may("get", "secret", "other-than-its-own", "-n", rights.own)


@pytest.mark.parametrize("image", ["", "registry.example/sconfigcontroller"])
def test_the_role_of_sconfigcontroller_has_no_right_that_the_operator_lacks(
    rights: Rights, image: str
) -> None:
    """The API server rejects a Role with a right that its author lacks."""
    found = of_shape(OLDER, {"spec.sConfigController.container.image": image})
    role = found.find("Role", "correct-cpu-cluster-sconfigcontroller-configmaps-role")
    role["metadata"] = {"name": "writer"}
    create = ("create", "-f", "-", "--dry-run=server", "-n", rights.watched)
    assert rights.may(*create, stdin=yaml.safe_dump(role))
    role["rules"] += [{"apiGroups": ["apps"], "resources": ["replicasets"], "verbs": ["delete"]}]
    assert not rights.may(*create, stdin=yaml.safe_dump(role))
