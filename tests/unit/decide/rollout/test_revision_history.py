"""Which ControllerRevisions there are, and which hashes mean the same template."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from penstock.api.cluster.marks import SAME_REVISIONS
from penstock.api.kubernetes.kinds import ControllerRevision, Pod
from penstock.api.kubernetes.meta import ObjectMeta
from penstock.api.slinky.labels import REVISION_HASH, revision_hash
from penstock.api.slinky.nodeset import NodeSet, NodeSetStatus
from penstock.decide.rollout.revision_history import History, history
from penstock.render.slinky.nodeset.revision_meaning import recorded_revision
from penstock.translate.slinky.worker_set import worker_set
from support.nodesets import UNREAD, nodeset, pod


def record(hash_: str, number: int, same: str = "") -> ControllerRevision:
    notes = {SAME_REVISIONS: same} if same else {}
    meta = ObjectMeta(name=f"compute-{hash_}", namespace="slurm", annotations=notes)
    return ControllerRevision(metadata=meta, revision=number)


def found(
    *records: ControllerRevision, pods: tuple[Pod, ...] = (), of: NodeSet | None = None
) -> History:
    every = [recorded_revision(of or nodeset(), one) for one in records]
    return history(worker_set(of or nodeset()), "new", every, pods)


def of_generation(observed: int, hash_: str) -> NodeSet:
    status = NodeSetStatus(observed_generation=observed, node_set_hash=hash_)
    return replace(nodeset(), status=status)


def gone(told: History) -> list[str]:
    return [one.name for one in told.gone]


def used(hash_: str) -> Pod:
    return pod(0, labels={REVISION_HASH: hash_})


def test_the_wanted_one_has_the_highest_number() -> None:
    """D19, feature row 40."""
    assert (found().number, found().exists) == (1, False)
    assert found(record("a", 1), record("b", 4)).number == 5


def test_one_that_comes_back_gets_a_new_number() -> None:
    """D19, feature row 40."""
    back = found(record("new", 1), record("b", 2), pods=(used("b"),))
    assert (back.exists, back.is_recorded, back.number) == (True, False, 3)
    assert found(record("new", 3), record("b", 2)).is_recorded


def test_what_no_pod_has_goes_but_for_the_limit() -> None:
    """D19, feature row 40."""
    records = (record("a", 1), record("b", 2), record("c", 3), record("new", 4))
    assert gone(found(*records)) == ["compute-a", "compute-b", "compute-c"]
    assert gone(found(*records, of=nodeset(revision_history_limit=2))) == ["compute-a"]
    assert gone(found(*records, pods=(used("a"),))) == ["compute-b", "compute-c"]


def test_no_pod_is_read_while_the_limit_keeps_every_other_record() -> None:
    records = [recorded_revision(nodeset(), record("new", 2))]
    told = history(worker_set(nodeset()), "new", records, UNREAD)
    assert (told.exists, told.gone) == (True, ())


def test_a_negative_limit_keeps_none() -> None:
    assert gone(found(record("a", 1), of=nodeset(revision_history_limit=-1))) == ["compute-a"]


def test_the_hash_that_another_operator_gave_this_generation_means_the_same() -> None:
    """S035."""
    told = found(of=of_generation(3, "theirs"))
    assert (told.equal_hashes, told.exists) == (("theirs",), False)
    noted = found(record("new", 1), of=of_generation(3, "theirs"))
    assert (noted.equal_hashes, noted.is_recorded) == (("theirs",), False)


def test_what_is_noted_stays_and_its_record_too() -> None:
    told = found(record("theirs", 1), record("new", 2, "theirs"), of=of_generation(3, "new"))
    assert (told.equal_hashes, told.is_recorded, told.gone) == (("theirs",), True, ())


def test_a_record_stays_while_a_pod_has_a_hash_that_is_noted_at_it() -> None:
    records = (record("a", 1, "theirs"), record("new", 2))
    assert gone(found(*records, pods=(used("theirs"),))) == []
    assert gone(found(*records, pods=(used("new"),))) == ["compute-a"]


def test_the_hash_of_an_earlier_generation_means_nothing() -> None:
    told: Any = found(of=of_generation(2, "theirs"))
    assert told.equal_hashes == ()


def test_a_pod_of_an_earlier_version_says_its_template_by_another_label() -> None:
    assert revision_hash({"controller-revision-hash": "a"}) == "a"
    assert revision_hash({"controller-revision-hash": "a", REVISION_HASH: "b"}) == "b"
    assert revision_hash({}) is None
