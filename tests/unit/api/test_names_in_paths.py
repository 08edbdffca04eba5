"""Names in paths of the API server, and hosts: none leads elsewhere."""

from __future__ import annotations

import pytest

from penstock.api.kubernetes.kinds import NODES, ROLES, SECRETS
from penstock.api.kubernetes.resource import ObjectNameError
from penstock.base.host import is_host


@pytest.mark.parametrize(
    "name",
    [
        "../../kube-system/secrets/x",
        "a/b",
        "..",
        ".",
        "a?x=1",
        "a%2fb",
        "A",
        "a b",
        "a\n",
        "-",
        "x" * 254,
    ],
)
def test_a_name_that_no_object_can_have_makes_no_path(name: str):
    """Audit A30: a Token's secretRef read any object that the operator may read."""
    for make in (
        lambda: SECRETS.path("slurm", name),
        lambda: SECRETS.path(name, "x"),
        lambda: NODES.path(None, name),
    ):
        with pytest.raises(ObjectNameError):
            make()


def test_names_of_rights_are_path_segments():
    assert ROLES.path("slurm", "system:node").endswith("/roles/system:node")
    for name in ("..", "a/b", "a%2fb"):
        with pytest.raises(ObjectNameError):
            ROLES.path("slurm", name)


@pytest.mark.parametrize(
    "host",
    ["db", "db.example.org", "db.example.org.", "DB-1", "my_host", "192.0.2.1", "2001:db8::1"],
)
def test_a_dns_name_or_an_address_is_a_host(host: str):
    assert is_host(host)


@pytest.mark.parametrize(
    "host",
    ["", "a b", "a\n", "a#", 'a"', "a:1", "[::1]", "fe80::1%x y", "-a", "a-", "a..b", "x" * 254],
)
def test_no_other_text_is_a_host(host: str):
    assert not is_host(host)
