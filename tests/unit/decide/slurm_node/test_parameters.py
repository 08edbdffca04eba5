"""Features and weight of nodes change in Slurm itself; the rest of extraConf needs another pod."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from penstock.api.kubernetes.kinds import ControllerRevision
from penstock.api.kubernetes.meta import ObjectMeta
from penstock.api.slinky.nodeset import NodeSet, UpdateStrategy
from penstock.decide.action import DeletePod, DrainNode, SetNodeComment
from penstock.decide.nodeset.plan import plan
from penstock.decide.observed import node_comment
from penstock.decide.slurm_node import parameters as live_conf
from penstock.decide.slurm_node import records
from penstock.decide.slurm_node.parameters import NodeParameters, equal_revisions, read
from penstock.model.recorded_revision import RecordedRevision
from penstock.render.slinky.nodeset.revision import revision
from penstock.render.slinky.nodeset.revision_meaning import declared_revision, recorded_revision
from penstock.slurm.state import Node
from penstock.translate.slinky.worker_set import MARKS, worker_set
from support.nodesets import (
    known_nodes,
    node,
    nodeset,
    pod,
    view,
    worker,
)

ROLLING = UpdateStrategy(type="RollingUpdate")
OLD = "Feature=slow"


def declared(extra_conf: str, **spec: Any) -> NodeSet:
    return nodeset(1, extra_conf=extra_conf, update_strategy=ROLLING, **spec)


def recorded(name: str, of: NodeSet) -> RecordedRevision:
    data = revision(of).data
    record = ControllerRevision(metadata=ObjectMeta(name=f"compute-{name}"), data=data)
    return recorded_revision(of, record)


def comment(live: str | None = None) -> str:
    said = node_comment.NodeComment(
        "slurm", "compute-0", "machine-0", "compute", "nodeset-uid", live=live
    )
    return said.text(MARKS.comment)


def seen(*features: str, weight: int = 1, live: str | None = None) -> Node:
    return node(0, features=features, weight=weight, comment=comment(live))


def given(found: Node, extra_conf: str) -> SetNodeComment | None:
    """What the node of a pod that was made with OLD is given now."""
    wanted = declared(extra_conf)
    confs = {"old": OLD, "new": extra_conf}
    looked = view(
        wanted,
        pod(labels={"controller.kubernetes.io/hash": "old"}),
        nodes=known_nodes(found),
        equal=frozenset({"old"}),
        parameters=confs,
    )
    actions = plan(looked).actions
    assert not [one for one in actions if isinstance(one, DeletePod | DrainNode)]
    return next((one for one in actions if isinstance(one, SetNodeComment)), None)


def test_the_words_of_a_node_line_are_read_in_any_spelling() -> None:
    assert read("feature=a,b Weight=7 RealMemory=1") == NodeParameters(frozenset("ab"), 7)
    assert read("Features='a' Features=b") == NodeParameters(frozenset("ab"))
    assert read("") == NodeParameters()


def test_revisions_that_differ_in_features_and_weight_are_alike() -> None:
    wanted = declared("Feature=fast Weight=3 RealMemory=1000")
    same = recorded("a", declared("RealMemory=1000"))
    other = recorded("b", declared("RealMemory=2000"))
    image = recorded("c", declared("RealMemory=1000", slurmd={"image": "other"}))
    assert equal_revisions(declared_revision(wanted), [same, other, image]) == {
        "a": "RealMemory=1000"
    }


def test_a_changed_feature_is_given_to_the_node_and_no_pod_goes() -> None:
    found = given(seen("compute", "slow"), "Feature=fast")
    assert found is not None
    assert found.features == ("compute", "fast")
    assert found.weight == 1
    assert found.why is not None
    assert "Features=compute,fast Weight=1" in found.why.message
    assert (read_back := node_comment.read(MARKS.comment, found.comment)) is not None
    assert read_back.live == "Features=compute,fast Weight=1"


def test_what_a_node_has_been_given_is_not_given_again() -> None:
    live = "Features=compute,fast Weight=1"
    assert given(seen("compute", "fast", live=live), "Feature=fast") is None


def test_what_somebody_added_by_hand_stays() -> None:
    found = given(seen("compute", "slow", "k8s/zone-a", "mine", weight=9), "Feature=fast")
    assert found is not None
    assert found.features == ("compute", "fast", "k8s/zone-a", "mine")
    assert found.weight == 9
    live = "Features=compute,fast Weight=1"
    assert given(seen("compute", "mine", live=live), "Feature=fast") is None


def test_a_weight_is_changed_and_taken_back() -> None:
    found = given(seen("compute", "slow"), "Feature=slow Weight=5")
    assert found is not None
    assert (found.features, found.weight) == (("compute", "slow"), 5)
    live = "Features=compute,slow Weight=5"
    back = given(seen("compute", "slow", weight=5, live=live), "Feature=slow")
    assert back is not None
    assert back.weight == 1


def test_a_record_that_was_made_anew_is_given_it_again() -> None:
    found = given(node(0, features=("compute", "slow")), "Feature=fast")
    assert found is not None
    assert found.features == ("compute", "fast")


def test_a_pod_of_an_unknown_revision_is_left_alone() -> None:
    looked = pod(labels={"controller.kubernetes.io/hash": "unknown"})
    assert (
        live_conf.change(worker_set(declared("Feature=fast")), looked, seen("x"), None, {}) is None
    )


@pytest.mark.parametrize(
    "text",
    [
        "Features=a,b Weight=7",
        "Features= Weight=1",
        "Features=a Weight=1 Gres=gpu:2,x:1 Extra=a:b Comment=rack-7",
    ],
)
def test_what_is_written_is_what_is_read(text: str) -> None:
    assert read(text).text == text


def test_the_record_keeps_what_was_given_through_other_changes() -> None:
    live = "Features=compute,fast Weight=1"
    older = pod(labels={"controller.kubernetes.io/hash": "old"})
    found = records.comment_action(
        worker_set(declared("Feature=fast")), worker(older, seen(live=live))
    )
    assert found is not None
    assert (kept := node_comment.read(MARKS.comment, found.comment)) is not None
    assert (kept.live, kept.renew) == (live, True)
    assert msgspec.json.decode(found.comment)["conf"] == live


def test_a_weight_that_slurmctld_forgot_is_given_again() -> None:
    """After its start a node has the weight that it registered with, and the comment still."""
    told = "Features=compute,fast Weight=7"
    forgot = given(seen("compute", "fast", "mine", weight=1, live=told), "Feature=fast Weight=7")
    assert forgot is not None
    assert (forgot.features, forgot.weight) == (("compute", "fast", "mine"), 7)
    by_hand = given(seen("compute", "fast", weight=5, live=told), "Feature=fast Weight=7")
    assert by_hand is None


def test_fewer_resources_are_given_to_the_node_and_back_and_more_need_another_pod() -> None:
    wanted = declared("Gres=tmpdisk:2")
    more = recorded("more", declared("Gres=tmpdisk:4"))
    less = recorded("less", declared("Gres=tmpdisk:1"))
    other = recorded("other", declared("Gres=scratch:4"))
    none = recorded("none", declared(""))
    every = [more, less, other, none]
    data = declared_revision(wanted)
    assert equal_revisions(data, every) == {"more": "Gres=tmpdisk:4"}
    assert equal_revisions(data, every, ["tmpdisk:2"]) == {}


@pytest.mark.parametrize(
    ("last", "gres"),
    [
        (None, "tmpdisk:2"),
        ("Features=compute Weight=1", "tmpdisk:2"),
        ("Features=compute Weight=1 Gres=tmpdisk:4", "tmpdisk:2"),
        ("Features=compute Weight=1 Gres=tmpdisk:2", None),
    ],
)
def test_a_node_is_given_its_count_once(last: str | None, gres: str | None) -> None:
    looked = pod(labels={"controller.kubernetes.io/hash": "old"})
    confs = {"old": "Gres=tmpdisk:4", "new": "Gres=tmpdisk:2"}
    found = live_conf.change(
        worker_set(declared("Gres=tmpdisk:2")), looked, seen("compute"), last, confs
    )
    assert (found.given.gres if found else None) == gres


def test_a_count_that_jobs_use_waits_for_them_and_the_rest_does_not() -> None:
    used = node(0, features=("compute",), comment=comment(), gres="a:4,b:4", gres_used="a:0,b:1")
    confs = {"old": "Gres=a:4,b:4", "new": "Gres=a:2,b:2 Weight=2"}
    looked = pod(labels={"controller.kubernetes.io/hash": "old"})
    found = live_conf.change(worker_set(declared(confs["new"])), looked, used, None, confs)
    assert found is not None
    assert (found.given.gres, found.given.weight) == ("", 2)
    assert found.recorded.gres == "a:4,b:4"
    other = declared("Gres=a:2,b:4")
    found = live_conf.change(
        worker_set(other), looked, used, None, {**confs, "new": "Gres=a:2,b:4"}
    )
    assert found is not None
    assert found.given.gres == "a:2,b:4"


def test_a_count_that_stays_is_not_given_with_a_weight() -> None:
    looked = pod(labels={"controller.kubernetes.io/hash": "old"})
    confs = {"old": "Gres=tmpdisk:4", "new": "Gres=tmpdisk:4 Weight=2"}
    last = "Features=compute Weight=1"
    wanted = declared("Gres=tmpdisk:4 Weight=2")
    found = live_conf.change(worker_set(wanted), looked, seen("compute"), last, confs)
    assert found is not None
    assert found.given == NodeParameters(frozenset({"compute"}), 2)


def test_extra_and_comment_are_given_to_a_node_that_has_just_come_and_taken_back() -> None:
    looked = pod(labels={"controller.kubernetes.io/hash": "new"})
    wanted = declared("Extra=rack=7 Comment=old-psu")
    confs = {"new": "Extra=rack=7 Comment=old-psu"}
    found = records.comment_action(
        worker_set(wanted), worker(looked, seen("compute")), parameters_by_revision=confs
    )
    assert found is not None
    assert found.extra == "rack=7"
    said = node_comment.read(MARKS.comment, found.comment)
    assert said is not None
    assert said.live == "Features=compute Weight=1 Extra=rack=7 Comment=old-psu"
    given = seen("compute", live=said.live)
    assert (
        records.comment_action(
            worker_set(wanted), worker(looked, given), parameters_by_revision=confs
        )
        is None
    )
    back = records.comment_action(
        worker_set(declared("")), worker(looked, given), parameters_by_revision={"new": ""}
    )
    assert back is not None
    assert back.extra == ""
    assert equal_revisions(declared_revision(declared("")), [recorded("new", wanted)])
