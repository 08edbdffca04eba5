"""One value, `global.imageRegistry`, names the images of both charts; without it none is guessed.

Covers S001 and S003 on a cluster with a registry of its own; D37 where the value is pinned.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml

from penstock import __version__
from penstock.api.kubernetes.meta import Json
from penstock.controllers.runtime.settings import Settings, parse
from penstock.local import images
from penstock.local.charts import CHARTS
from penstock.local.errors import LocalError
from penstock.local.recipes import ROLES, ROOT, TAG, reference, version_tag
from support.charts import EVERYTHING, render, values

# The first test that needs Helm compiles it, on a machine where everything else compiles as well.
pytestmark = pytest.mark.timeout(1800)

PREFIX = "registry.example.com:5000/team/penstock"
ALL: Json = {
    "accounting": {"enabled": True},
    "nodesets": {"compute": {}},
    "loginsets": {"login": {}},
}
LOCAL_NAMES = {reference(role, version_tag(role)) for role in ROLES}


def operator(given: Json) -> Json:
    found = render(given, chart="slurm-operator", release="slurm-operator", namespace="slinky")
    return found["Deployment slurm-operator"]["spec"]["template"]["spec"]


def chosen(given: Json) -> Settings:
    return parse(operator(given)["containers"][0]["args"], {})


def named(given: Json) -> dict[str, str]:
    """Images of the kinds' containers, by kind and container."""
    return {
        f"{one['kind']} {name}": part["image"]
        for one in render(given).values()
        for name, part in one.get("spec", {}).items()
        if isinstance(part, dict) and "image" in part
    }


def with_prefix(prefix: str, **more: Any) -> Json:
    return {**ALL, "global": {"imageRegistry": prefix, **more}}


def test_one_value_names_every_image_as_the_push_does() -> None:
    """S001, S003."""
    pushed = set(images.names(PREFIX))
    found = named(with_prefix(PREFIX))
    assert found == {
        "Controller slurmctld": f"{PREFIX}/slurmctld:26.05-{__version__}",
        "RestApi slurmrestd": f"{PREFIX}/slurmrestd:26.05-{__version__}",
        "Accounting slurmdbd": f"{PREFIX}/slurmdbd:26.05-{__version__}",
        "NodeSet slurmd": f"{PREFIX}/slurmd:26.05-{__version__}",
        "LoginSet login": f"{PREFIX}/login:26.05-{__version__}",
    }
    assert set(found.values()) <= pushed
    pod = operator(with_global(PREFIX))["containers"][0]
    assert pod["image"] == f"{PREFIX}/operator:{__version__}"
    assert pod["image"] in pushed
    ours = chosen({"global": {"imageRegistry": PREFIX}}).images
    assert {ours.slurmctld, ours.slurmd, ours.slurmrestd, ours.slurmdbd, ours.login} <= pushed


def test_a_slash_at_the_end_is_no_harm() -> None:
    assert named(with_prefix(f"{PREFIX}/")) == named(with_prefix(PREFIX))


def test_another_version_of_the_images_is_one_value_too() -> None:
    """D37: pinned, a newer chart restarts nothing."""
    found = named(with_prefix(PREFIX, imageVersion="1.2.3-rc1"))
    assert found["NodeSet slurmd"] == f"{PREFIX}/slurmd:26.05-1.2.3-rc1"
    given: Json = {"global": {"imageRegistry": PREFIX, "imageVersion": "1.2.3-rc1"}}
    assert operator(given)["containers"][0]["image"] == f"{PREFIX}/operator:1.2.3-rc1"
    assert chosen(given).images.slurmd == f"{PREFIX}/slurmd:26.05-1.2.3-rc1"


@pytest.mark.parametrize("chart", ["slurm", "slurm-operator"])
@pytest.mark.parametrize(
    ("prefix", "words"),
    [
        ("https://registry.example.com/a", "no https://, write registry.example.com/a"),
        ("registry.example.com/Team", "no capitals, write registry.example.com/team"),
        ("registry.example.com/a:1", "has a tag"),
        ("registry.example.com/a@sha256:0", "has a digest"),
        ("team/penstock", "Docker Hub would be taken; write docker.io/team/penstock"),
        ("registry.example.com//a", "is not a registry with a path"),
    ],
)
def test_a_prefix_that_is_none_is_rejected_in_words(chart: str, prefix: str, words: str) -> None:
    with pytest.raises(LocalError, match=re.escape(words)):
        render(with_prefix(prefix) if chart == "slurm" else with_global(prefix), chart=chart)


def with_global(prefix: str) -> Json:
    return {"global": {"imageRegistry": prefix}}


@pytest.mark.parametrize("path", [("slurmd",), ()])
@pytest.mark.parametrize(
    ("image", "text"),
    [
        ({"repository": "mine.example/slurmd", "tag": "1"}, "mine.example/slurmd:1"),
        ({"repository": "mine.example/slurmd"}, "mine.example/slurmd:26.05-ubuntu26.04"),
        ("mine.example/slurmd:2", "mine.example/slurmd:2"),
        ({"tag": "25.11"}, f"{PREFIX}/slurmd:25.11"),
        ({"digest": "sha256:0"}, f"{PREFIX}/slurmd@sha256:0"),
        ("", None),
    ],
)
def test_an_image_of_its_own_wins_over_the_prefix(
    path: tuple[str, ...], image: Any, text: str | None
) -> None:
    entry: Json = {"slurmd": {"image": image}} if path else {"image": image}
    found = named({**with_prefix(PREFIX), "nodesets": {"compute": entry}})
    assert found.get("NodeSet slurmd") == text
    assert found["Controller slurmctld"].startswith(PREFIX)


@pytest.mark.parametrize(
    ("image", "text"),
    [
        ("mine.example/operator:7", "mine.example/operator:7"),
        ({"repository": "mine.example/op"}, f"mine.example/op:{__version__}"),
        ({"tag": "7"}, f"{PREFIX}/operator:7"),
    ],
)
def test_the_operators_own_image_wins_over_the_prefix(image: Any, text: str) -> None:
    given: Json = {"global": {"imageRegistry": PREFIX}, "operator": {"image": image}}
    assert operator(given)["containers"][0]["image"] == text
    other: Json = {**given, "operator": {"slurmImage": "mine.example/{role}:7"}}
    assert chosen(other).images.slurmd == "mine.example/slurmd:7"


def test_without_the_value_images_are_those_of_upstreams_chart() -> None:
    """A file that names no image restarts nothing when it moves between the charts."""
    found = named(ALL)
    for role in ("slurmctld", "slurmrestd", "slurmdbd", "slurmd", "login"):
        assert f"ghcr.io/slinkyproject/{role}:26.05-ubuntu26.04" in found.values()
    assert found["Controller reconfigure"] == found["Controller slurmctld"]
    assert found["NodeSet logfile"] == "docker.io/library/alpine:latest"
    assert found == named({**ALL, "global": None}) == named({**ALL, "global": {"else": 1}})


def test_the_operators_chart_guesses_no_image() -> None:
    with pytest.raises(LocalError, match=r"set global\.imageRegistry .*penstock images push"):
        operator({"global": {}})


def test_what_the_operator_takes_by_itself_is_on_no_public_registry() -> None:
    """A name without a registry would be Docker Hub's, where anybody may own it."""
    ours = parse([], {}).images
    found = {ours.slurmctld, ours.slurmd, ours.slurmrestd, ours.slurmdbd, ours.login}
    assert found <= LOCAL_NAMES
    text = (ROOT / "deploy/operator.yaml").read_text()
    assert re.findall(r"image: (.*)", text) == [reference("operator", version_tag("operator"))]
    assert "penstock/operator:dev" not in text


def test_secrets_for_registries_reach_the_operator_and_every_pod_of_slurm() -> None:
    shared: Json = {"imageRegistry": PREFIX, "imagePullSecrets": ["login", {"name": "other"}]}
    given: Json = {**ALL, "global": shared, "imagePullSecrets": [{"name": "own"}]}
    wanted = [{"name": "own"}, {"name": "login"}, {"name": "other"}]
    assert operator({"global": shared, "imagePullSecrets": [{"name": "own"}]})[
        "imagePullSecrets"
    ] == (wanted)
    pods = [
        one["spec"]["template"]["spec"]
        for one in render(given).values()
        if "template" in one.get("spec", {})
    ]
    assert len(pods) == len(("Controller", "RestApi", "Accounting", "NodeSet", "LoginSet"))
    assert all(pod["imagePullSecrets"] == wanted for pod in pods)


def test_all_charts_read_the_prefix_by_the_same_words() -> None:
    files = [path.read_text() for path in CHARTS.glob("*/templates/_registry.tpl")]
    assert len(files) >= 3
    assert len(set(files)) == 1


def test_charts_package_and_images_have_one_version() -> None:
    for chart in ("slurm", "slurm-operator", "slurm-operator-crds"):
        told: Json = yaml.safe_load((CHARTS / chart / "Chart.yaml").read_text())
        assert told["version"] == __version__
        release = told.get("annotations", {}).get("penstock.dev/slurm-release", TAG)
        assert release == TAG
        assert chart != "slurm" or told["appVersion"] == TAG


def test_a_prefix_changes_images_and_nothing_else() -> None:
    """Of a file that names its images, not even those."""
    given = values(EVERYTHING)
    before = render({**given, "global": {}})
    after = render({**given, "global": {"imageRegistry": PREFIX}})
    images_of = re.compile(r'"image": "[^"]*"(, )?')
    for name, one in before.items():
        was, now = json.dumps(one), json.dumps(after[name])
        assert images_of.sub("", was) == images_of.sub("", now), name
