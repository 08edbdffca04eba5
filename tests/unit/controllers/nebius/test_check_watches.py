"""Which ActiveChecks a change of another one leads to."""

from __future__ import annotations

import msgspec

from penstock.api.nebius.active_check import ActiveCheck
from penstock.controllers.nebius.checks.watching import checks_after
from penstock.kube.runtime.declaration import IndexBy


class Known:
    """The caches, with these ActiveChecks."""

    def __init__(self, *checks: ActiveCheck) -> None:
        self._checks = checks

    def by(self, index: IndexBy[ActiveCheck], value: str) -> tuple[ActiveCheck, ...]:
        return tuple(one for one in self._checks if value in index.values(one))


def check(name: str, cluster: str, *before: str, space: str = "team") -> ActiveCheck:
    spec = {"name": name, "slurmClusterRefName": cluster, "dependsOn": before}
    given = {"metadata": {"name": name, "namespace": space}, "spec": spec}
    return msgspec.convert(given, ActiveCheck)


def test_a_check_leads_to_those_after_it_in_another_cluster_of_the_namespace() -> None:
    """They wait for it by its name, and nothing else would start them."""
    first = check("first", "one")
    others = (
        check("near", "one", "first"),
        check("far", "two", "other", "first"),
        check("apart", "one", "other"),
        check("away", "one", "first", space="else"),
    )
    found = checks_after(first, Known(first, *others))  # type: ignore[arg-type]
    assert found == ["team/near", "team/far"]
