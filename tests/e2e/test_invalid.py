"""What a user sees of each mistake, and that putting it right is enough.

The table in docs/platform/mistakes.md holds these very words. `PENSTOCK_WRITE_DOCS=1` writes it;
otherwise the test compares what does not change from one machine to the next.
"""

from __future__ import annotations

import base64
import os
import re
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from e2e_kit import manifests
from e2e_kit.api import Json, condition, ready, restarts
from e2e_kit.cluster import Cluster
from e2e_kit.site import Site, eventually
from penstock.catalog.runbook import without_address

PAGE = Path(__file__).parents[2] / "docs/platform/mistakes.md"
BEGIN, END = "<!-- table: written by tests/e2e/test_invalid.py -->\n", "<!-- end of table -->\n"
HEAD = "| What you did | What you see | What to do |\n| --- | --- | --- |\n"
SECONDS = 120.0
"""Within this a mistake is told, and what was put right works; a kubelet takes most of it."""
ABSENT = "localhost/penstock/absent:26.05"
PLURALS = {
    "Controller": "controllers",
    "RestApi": "restapis",
    "NodeSet": "nodesets",
    "LoginSet": "loginsets",
}
OBJECTS = {
    "Controller": manifests.NAME,
    "RestApi": manifests.NAME,
    "NodeSet": "compute",
    "LoginSet": "login",
}
IMAGE_OF = {
    "Controller": "slurmctld",
    "RestApi": "slurmrestd",
    "NodeSet": "slurmd",
    "LoginSet": "login",
}


@dataclass(frozen=True)
class Row:
    """A line of the table."""

    did: str
    seen: str
    do: str

    def __str__(self) -> str:
        return f"| {self.did} | {self.seen} | {self.do} |\n"


class Page:
    """The table of the page: rows as they were seen just now."""

    def __init__(self) -> None:
        self.rows: list[Row] = []

    def add(self, did: str, seen: str, do: str) -> None:
        """Take a row down; `seen` is quoted."""
        words = re.sub("namespace invalid-[0-9a-f]+", "namespace slurm", " ".join(seen.split()))
        words = words.replace("|", "\\|")
        self.rows.append(Row(did, f"`{words}`", do))

    def table(self) -> str:
        """The whole table."""
        return HEAD + "".join(map(str, self.rows))


@pytest.fixture(scope="module")
def page() -> Page:
    return Page()


@pytest.fixture(scope="module")
def cluster(clusters: Callable[[str], Cluster]) -> Cluster:
    cluster = clusters("invalid")
    cluster.create()
    return cluster


# What the API server refuses.


@pytest.mark.parametrize(
    ("did", "obj", "words", "do"),
    [
        (
            "A Controller with a number as `extraConf`",
            manifests.of("Controller", "slurm", extraConf=5),
            "spec.extraConf: Invalid value",
            "Quote it, or write a block (`extraConf: \\|`).",
        ),
        (
            "A Controller whose `slurmKeyRef` has no `key`",
            manifests.of("Controller", "slurm", slurmKeyRef={"name": "keys"}),
            "spec.slurmKeyRef.key: Required value",
            "Name the key of the Secret, such as `slurm.key`.",
        ),
        (
            "A Controller with a misspelt field",
            manifests.of("Controller", "slurm", extraconf="MaxJobCount=10"),
            'unknown field "spec.extraconf"',
            "`kubectl explain controller.spec` lists the fields.",
        ),
        (
            "A NodeSet with a word as `replicas`",
            manifests.of("NodeSet", "x", controllerRef={"name": "slurm"}, replicas="two"),
            "spec.replicas in body must be of type integer",
            "Write a number without quotes.",
        ),
        (
            "A NodeSet without `controllerRef`",
            manifests.of("NodeSet", "x", replicas=2),
            "spec.controllerRef: Required value",
            "Name the Controller of the same namespace: `controllerRef: {name: slurm}`.",
        ),
        (
            "A RestApi with a word as `replicas`",
            manifests.of("RestApi", "x", controllerRef={"name": "slurm"}, replicas="two"),
            "spec.replicas in body must be of type integer",
            "Write a number without quotes.",
        ),
        (
            "A RestApi without `controllerRef`",
            manifests.of("RestApi", "x"),
            "spec.controllerRef: Required value",
            "As for a NodeSet.",
        ),
        (
            "A LoginSet with a list of keys",
            manifests.of(
                "LoginSet", "x", controllerRef={"name": "slurm"}, rootSshAuthorizedKeys=["ssh"]
            ),
            "spec.rootSshAuthorizedKeys in body must be of type string",
            "Write them as one text, a key on each line (`rootSshAuthorizedKeys: \\|`).",
        ),
        (
            "A LoginSet with an empty `controllerRef`",
            manifests.of("LoginSet", "x", controllerRef={}),
            "controllerRef.name must not be empty",
            "As for a NodeSet.",
        ),
    ],
)
def test_kubectl_reports_what_is_wrong_with_an_object(
    cluster: Cluster, page: Page, did: str, obj: Json, words: str, do: str
) -> None:
    said = cluster.site.rejected("apply", "-n", cluster.namespace, "-f", "-", stdin=yaml.dump(obj))
    assert words in said
    lines = [line.removeprefix("* ") for line in said.splitlines() if "<nil>" not in line]
    page.add(did, " ".join(lines).partition('"STDIN": ')[2] or " ".join(lines), do)


# What is accepted and cannot work: one cluster from nothing to well, a mistake at a time.


def test_members_without_their_controller_report_it(cluster: Cluster, page: Page) -> None:
    cluster.apply(
        manifests.restapi(slurmrestd={"image": ABSENT}),
        manifests.nodeset(1, slurmd={"image": ABSENT}),
        manifests.loginset(login={"image": ABSENT}),
    )
    for kind in ("RestApi", "NodeSet", "LoginSet"):
        found = stalled(cluster, kind, "ControllerNotFound")
        assert "Controller slurm" in found
        page.add(
            f"A {kind} whose Controller does not exist",
            f"ControllerNotFound: {found}",
            "Do so; nothing else is needed.",
        )


def test_a_controller_without_its_secret_and_config_map_reports_it(
    cluster: Cluster, page: Page
) -> None:
    """D36, D44, feature rows 4 and 10: and so does the NodeSet, which makes no pod."""
    cluster.apply(controller(slurmctld={"image": ABSENT}))
    found = stalled(cluster, "Controller", "SecretNotFound")
    assert "Secret my-key" in found
    assert "ConfigMap my-files" in found
    # A third part, while it lasts, is the key that is being made.
    secret, files = found.split("; ")[:2]
    page.add(
        "A Controller whose `slurmKeyRef` names a Secret that does not exist",
        f"SecretNotFound: {secret}",
        "Create it yourself: it may have the key of another cluster.",
    )
    page.add(
        "A Controller whose `configFileRefs` names a ConfigMap that does not exist",
        f"ConfigMapNotFound: {files}",
        "Create the ConfigMap, or remove the reference.",
    )
    assert "Secret my-key" in until(cluster, "NodeSet", "SecretNotFound")
    assert cluster.pods() == {}


def test_an_image_that_does_not_exist_is_named(cluster: Cluster, page: Page) -> None:
    cluster.apply(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "my-key"},
            "data": {"slurm.key": base64.b64encode(secrets.token_bytes(48)).decode()},
        },
        manifests.config_map("my-files", **{"cgroup.conf": "CgroupPlugin=disabled\n"}),
    )
    for kind, container in IMAGE_OF.items():
        found = stalled(cluster, kind, "PodsFailing", ABSENT)
        assert "ErrImagePull" in found
        page.add(
            f"A {kind} with an image that does not exist (`{container}.image`)",
            f"PodsFailing: {found}",
            "Correct it: pods that never started are replaced at once.",
        )


def test_slurmctlds_words_are_reported_when_it_rejects_its_first_configuration(
    cluster: Cluster, page: Page
) -> None:
    cluster.apply(
        controller("BogusKey=1\n"), manifests.restapi(), manifests.nodeset(1), manifests.loginset()
    )
    found = stalled(cluster, "Controller", "PodsFailing", "BogusKey")
    assert "container slurmctld" in found
    page.add(
        "A Controller with a line in `extraConf` that slurmctld rejects, at its first start",
        f"PodsFailing: {found}",
        "Correct it: slurmctld starts again at once.",
    )
    stalled(cluster, "RestApi", "PodsFailing", "BogusKey")


def test_all_is_well_once_the_line_is_right_without_a_restart_of_the_operator(
    site: Site, cluster: Cluster
) -> None:
    """D36: objects came in the worst order."""
    # Not zero restarts: tests of the same run may have killed it on purpose.
    before = site.operator_pod()
    started = time.monotonic()
    cluster.apply(controller())
    for kind, plural in PLURALS.items():
        cluster.until_ready(plural, OBJECTS[kind], SECONDS)
        print(f"\n{kind} is ready {time.monotonic() - started:.1f} s after its correction", end="")
    cluster.until_idle("compute-0")
    pod = site.operator_pod()
    assert pod["metadata"]["uid"] == before["metadata"]["uid"]
    assert restarts(pod) == restarts(before)


@pytest.mark.parametrize(
    ("line", "reason", "words"),
    [
        ("BogusKey=1", "ConfigRefused", "unrecognized key: BogusKey"),
        ("PartitionName=x Nodes=nosuch", "PartitionRefused", "Invalid node name"),
    ],
)
def test_a_rejected_edit_leaves_slurmctld_and_its_jobs_alone(
    cluster: Cluster, page: Page, line: str, reason: str, words: str
) -> None:
    job = cluster.submit("exec sleep 300", "--output=/dev/null")
    cluster.until_job(job, "RUNNING")
    before = slurmctld(cluster)
    started = time.monotonic()
    cluster.apply(controller(f"{line}\n"))
    found = stalled(cluster, "Controller", reason, words)
    print(f"\nrefusal told {time.monotonic() - started:.1f} s after the edit", end="")
    applied = condition(cluster.get("controllers", manifests.NAME), "ConfigApplied")
    assert (applied["status"], applied["reason"]) == ("False", reason)
    # Through slurmrestd: commands in slurmctld's own pod read the refused file.
    assert cluster.rest("GET", f"job/{job}")["jobs"][0]["job_state"] == ["RUNNING"]
    assert slurmctld(cluster) == before
    # A partition is rejected by REST while the file may still be on its way to slurmctld.
    waits = "The candidate configuration waits"
    found = stalled(cluster, "Controller", reason, words, without=waits)
    page.add(
        f"`{line}` added to `extraConf` of a cluster that runs",
        f"{reason}: {found}",
        "Correct it. slurmctld and jobs go on meanwhile.",
    )
    started = time.monotonic()
    cluster.apply(controller("PartitionName=extra Nodes=ALL\n"))
    cluster.until("controllers", applied_now, "the edit is applied", SECONDS)
    eventually("Slurm has it", lambda: cluster.run("sinfo", "-h", "-p", "extra"), SECONDS)
    print(f"\ncorrection applied {time.monotonic() - started:.1f} s after it", end="")
    assert cluster.job(job)["JobState"] == "RUNNING"
    assert slurmctld(cluster) == before
    cluster.run("scancel", str(job))
    cluster.apply(controller())
    # What is still on its way would be told beside the next mistake.
    cluster.until("controllers", applied_now, "the way back is applied", SECONDS)


def test_an_event_reports_each_mistake_as_well(cluster: Cluster) -> None:
    def told() -> set[tuple[str, str]]:
        events = cluster.site.api.list("events", cluster.namespace)
        warnings = (one for one in events if one["type"] == "Warning")
        return {(one["regarding"]["kind"], one["reason"]) for one in warnings}

    wanted = {(kind, "PodsFailing") for kind in PLURALS}
    wanted |= {(kind, "ControllerNotFound") for kind in ("RestApi", "NodeSet", "LoginSet")}
    wanted |= {("Controller", "SecretNotFound"), ("Controller", "ConfigRefused")}
    eventually(f"there are {wanted}", lambda: wanted <= told())


def test_the_page_quotes_what_is_seen(page: Page) -> None:
    if len(page.rows) < 20:
        pytest.skip("only a run of the whole file has every row")
    before, _, rest = PAGE.read_text().partition(BEGIN)
    table, _, after = rest.partition(END)
    if os.environ.get("PENSTOCK_WRITE_DOCS"):
        table = page.table()
        PAGE.write_text(f"{before}{BEGIN}{table}{END}{after}")
    assert shape(table) == shape(page.table())


def controller(extra: str = "", **spec: object) -> Json:
    return manifests.controller(
        manifests.EXTRA_CONF + extra,
        slurmKeyRef={"name": "my-key", "key": "slurm.key"},
        configFileRefs=[{"name": "my-files"}],
        **spec,
    )


def until(
    cluster: Cluster,
    kind: str,
    reason: str,
    words: str = "",
    of: str = "Ready",
    without: str | None = None,
) -> str:
    """Message of the condition once it gives this reason for what is declared now.

    It has the `words`, and not those that it must be `without`.
    """

    def found(objects: dict[str, Json]) -> str | None:
        obj = objects.get(OBJECTS[kind])
        if obj is None or ready(obj):
            return None
        one = condition(obj, of)
        current = one.get("observedGeneration") == obj["metadata"]["generation"]
        if not current or one["reason"] != reason or words not in one["message"]:
            return None
        message = without_address(one["message"])
        assert one["message"] == f"{message}. See https://penstock.dev/r/{reason}"
        return None if without and without in message else message

    told: str = cluster.until(PLURALS[kind], found, f"{kind} says {reason} {words}", SECONDS)
    return told


def stalled(
    cluster: Cluster, kind: str, reason: str, words: str = "", without: str | None = None
) -> str:
    """The same of a mistake that somebody has to put right."""
    return until(cluster, kind, reason, words, "Stalled", without)


def applied_now(controllers: dict[str, Json]) -> bool:
    obj = controllers[manifests.NAME]
    one = condition(obj, "ConfigApplied")
    current = one.get("observedGeneration") == obj["metadata"]["generation"]
    return current and one["status"] == "True"


def slurmctld(cluster: Cluster) -> tuple[str, int, str]:
    """Which pod it is, how often its container was restarted, and since when it runs."""
    pod = cluster.get("pods", f"{manifests.NAME}-controller-0")
    found = next(c for c in pod["status"]["containerStatuses"] if c["name"] == "slurmctld")
    return pod["metadata"]["uid"], found["restartCount"], found["state"]["running"]["startedAt"]


def shape(table: str) -> str:
    """The table without what differs from one machine, run or release of Kubernetes to the next."""
    text = re.sub(r"(login|restapi)(-[a-z0-9]+){2}: ", r"\1-POD: ", table)
    text = re.sub(r"ErrImagePull \([^)|]*\)", "ErrImagePull (WHY)", text)
    # Kubernetes 1.36 leaves the kind of the value out.
    text = text.replace('Invalid value: "object":', "Invalid value:")
    return re.sub(r"[ \\\\-]+", " ", text)
