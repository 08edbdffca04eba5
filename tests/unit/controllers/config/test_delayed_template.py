"""Which template slurmctld's StatefulSet keeps while a restart of slurmctld waits."""

from __future__ import annotations

from penstock.api.kubernetes.meta import Json
from penstock.controllers.config.delayed_template import delay


def _set(image: str, replicas: int = 1, **defaults: str) -> Json:
    container = {"name": "slurmctld", "image": image, **defaults}
    spec: Json = {"replicas": replicas, "template": {"spec": {"containers": [container]}}}
    return {"kind": "StatefulSet", "metadata": {"name": "x"}, "spec": spec}


LIVE = _set("a", imagePullPolicy="Always")
SERVICE: Json = {"kind": "Service", "metadata": {"name": "x"}, "spec": {}}


def test_a_changed_template_waits_and_all_else_is_written():
    found, waits = delay([SERVICE, _set("b", replicas=2)], LIVE)
    assert waits
    assert found[0] is SERVICE
    assert found[1]["spec"] == {**LIVE["spec"], "replicas": 2}


def test_an_equal_template_is_written_without_the_servers_defaults():
    wanted = _set("a", replicas=2)
    found, waits = delay([wanted], LIVE)
    assert found == [wanted]
    assert not waits


def test_a_stateful_set_that_is_not_there_or_comes_without_a_template_waits_for_nothing():
    without: Json = {"kind": "StatefulSet", "metadata": {"name": "x"}, "spec": {"replicas": 1}}
    assert delay([_set("b")], None) == ([_set("b")], False)
    assert delay([without], LIVE) == ([without], False)
