"""Objects applied in any order, and slurmrestd a minute late, come to the same end unrestarted."""

import time
from collections.abc import Callable

from e2e_kit import manifests
from e2e_kit.api import Json, condition, restarts
from e2e_kit.cluster import Cluster

LATE = 60.0
"""Seconds by which slurmrestd is late."""
OBJECTS: dict[str, Callable[[], Json]] = {
    "Controller": manifests.controller,
    "RestApi": manifests.restapi,
    "NodeSet": lambda: manifests.nodeset(2),
    "LoginSet": manifests.loginset,
}
RESOURCES = {"RestApi": "restapis", "NodeSet": "nodesets", "LoginSet": "loginsets"}
ORDERS = [
    ("NodeSet", "LoginSet", "RestApi", "Controller"),
    ("LoginSet", "Controller", "NodeSet", "RestApi"),
    ("RestApi", "NodeSet", "Controller", "LoginSet"),
]


def test_every_order_converges_and_so_does_a_late_slurmrestd(
    clusters: Callable[[str], Cluster],
) -> None:
    """S031."""
    late = clusters("late")
    started = time.monotonic()
    made = [late]
    late.create(*(make() for kind, make in OBJECTS.items() if kind != "RestApi"))
    for number, order in enumerate(ORDERS):
        cluster = clusters(f"order-{number}")
        made.append(cluster)
        cluster.create()
        for kind in order:
            cluster.apply(OBJECTS[kind]())
            if kind in RESOURCES:
                until_told(cluster, RESOURCES[kind], OBJECTS[kind]()["metadata"]["name"])
        converge(cluster)
        print(f"\n{' '.join(order)}: converged {time.monotonic() - started:.1f} s after the start")
    told = condition(late.get("nodesets", "compute"), "Ready")
    assert told["status"] == "False"
    assert "no RestApi refers to Controller slurm" in told["message"]
    time.sleep(max(0.0, started + LATE - time.monotonic()))
    late.apply(manifests.restapi())
    applied = time.monotonic()
    converge(late)
    print(f"slurmrestd {LATE:.0f} s late: converged {time.monotonic() - applied:.1f} s after it")
    for cluster in made:
        unchanged(cluster)


def until_told(cluster: Cluster, resource: str, name: str) -> None:
    """Wait until the object says something, so that what comes next is really later."""
    cluster.until(
        resource, lambda found: bool(condition(found[name], "Ready")), f"{resource} tells"
    )


def converge(cluster: Cluster) -> None:
    for resource, name in (
        ("controllers", "slurm"),
        ("restapis", "slurm"),
        ("nodesets", "compute"),
        ("loginsets", "login"),
    ):
        cluster.until_ready(resource, name)
    cluster.until_idle("compute-0", "compute-1")


def unchanged(cluster: Cluster) -> None:
    """Assert that no pod was ever replaced and no container restarted."""
    pods = cluster.pods("")
    writes = cluster.site.audit(cluster.namespace, "pods")
    assert [one for one in writes if one.verb.startswith("delete")] == []
    assert sum(one.verb == "create" for one in writes) == len(pods)
    assert {name: count for name, pod in pods.items() if (count := restarts(pod))} == {}
