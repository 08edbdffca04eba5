"""What our schema leaves open is looked at before anything is rendered from it."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.api.kubernetes import shapes


def told(value: Any, shape: shapes.Shape = shapes.CONTAINER) -> dict[str, str]:
    return dict(shapes.shape_problems("at", value, shape))


@pytest.mark.parametrize(
    ("value", "path", "words"),
    [
        ({"env": "A=b"}, "at.env", "a list"),
        ({"env": [None]}, "at.env[0]", "a mapping"),
        ({"env": [{"value": "b"}]}, "at.env[0].name", "must be given"),
        ({"env": [{"name": "A", "value": 7}]}, "at.env[0].value", "in quotes"),
        ({"args": ["-v", 7]}, "at.args[1]", "in quotes"),
        ({"ports": [{"containerPort": "22"}]}, "at.ports[0].containerPort", "without quotes"),
        ({"tty": "yes"}, "at.tty", "true or false"),
        ({"resources": {"limits": {"cpu": "much"}}}, "at.resources.limits.cpu", "quantity"),
        ({"resources": {"limits": {"cpu": "1e1000000000"}}}, "at.resources.limits.cpu", "exponent"),
        ({"resources": {"requests": {"cpu": "9" * 65}}}, "at.resources.requests.cpu", "64"),
        ({"resources": {"limits": "4Gi"}}, "at.resources.limits", "a mapping"),
        ({"lifecycle": {"preStop": []}}, "at.lifecycle.preStop", "a mapping"),
        ({"livenessProbe": {"httpGet": {"port": True}}}, "at.livenessProbe.httpGet.port", "port"),
    ],
)
def test_a_container_of_the_wrong_shape_is_reported(value: Any, path: str, words: str) -> None:
    assert words in told(value).get(path, "")


@pytest.mark.parametrize(
    "value",
    [
        {"image": None, "env": None, "args": []},
        {"resources": {"limits": {"cpu": 2, "memory": "4Gi", "nvidia.com/gpu": "1"}}},
        {"readinessProbe": {"httpGet": {"path": "/", "port": "http"}}},
        {"ports": [{"name": "login", "containerPort": 2222}]},
        {"aFieldOfTomorrow": ["x"]},
    ],
)
def test_a_container_of_the_right_shape_passes(value: Any) -> None:
    assert told(value) == {}


def test_containers_and_volumes_of_a_pod_must_be_named() -> None:
    volumes: list[Any] = [{"emptyDir": {}}, {"name": "a", "csi": 7}]
    pod: dict[str, Any] = {"containers": [{"image": "x"}], "volumes": volumes}
    assert told(pod, shapes.POD) == {
        "at.containers[0].name": "must be given",
        "at.volumes[0].name": "must be given",
        "at.volumes[1].csi": "write a mapping",
    }
