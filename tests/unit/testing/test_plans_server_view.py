"""Which objects the daemons of one cluster have in fault plans with several in a namespace."""

from __future__ import annotations

import pytest

from fault_plans.server_view import ServerView, named_after
from penstock.simulation.apiserver import ApiServer
from penstock.simulation.event_loop import simulate


def of_all(*of: str) -> str:
    return f"of all: {len(of)}"


def of_west(*of: str) -> str:
    return f"of west: {len(of)}"


PODS = "/api/v1/namespaces/slurm/pods"


@pytest.mark.parametrize(
    ("name", "is_shown"),
    [
        ("west", True),
        ("west-compute-0", True),
        ("statesave-west-controller-0", True),
        ("western-compute-0", False),
        ("slurm-controller-0", False),
    ],
)
def test_a_word_of_the_name_decides(name: str, is_shown: bool) -> None:
    assert named_after("west")(name) is is_shown


def test_a_view_has_objects_changes_deletes_and_logs_of_its_cluster_alone() -> None:
    async def story() -> None:
        server = ApiServer(lambda: 0.0)
        view = ServerView(server, named_after("west"))
        changed: list[str] = []
        deleted: list[str] = []
        view.store.listeners.append(lambda change: changed.append(change.key[1]))
        view.deleting.append(lambda _, obj, __: deleted.append(obj["metadata"]["name"]))
        server.logs = of_all
        view.logs = of_west
        for name in ("west-0", "slurm-0"):
            view.ask("POST", PODS, {"kind": "Pod", "metadata": {"name": name}, "spec": {}})
        assert [one["metadata"]["name"] for one in view.objects("/pods")] == ["west-0"]
        assert view.find("/pods", "slurm", "slurm-0") is None
        assert view.find("/pods", "slurm", "west-0") == server.find("/pods", "slurm", "west-0")
        for name in ("west-0", "slurm-0"):
            view.ask("DELETE", f"{PODS}/{name}", {})
        assert set(changed) == {"west-0"}
        assert deleted == ["west-0"]
        assert server.logs("slurm", "west-0", "") == "of west: 3"
        assert server.logs("slurm", "slurm-0", "") == "of all: 3"

    simulate(story())
