"""topology.conf from tiers of Kubernetes nodes. Each form was accepted by slurmctld 26.05."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.decide.topology.burst import MOST_S, QUIET_S, next_burst
from penstock.decide.topology.labels import MOST_TIERS, tiers
from penstock.decide.topology.topology_conf import PlacedWorker, topology_conf
from penstock.slurm import hostlist


def worker(name: str, *switches: str, fabric: str = "root") -> PlacedWorker:
    """A worker below switches, from the leaf up."""
    return PlacedWorker(name, fabric, dict(enumerate(switches, start=1)))


def tree(*workers: PlacedWorker) -> list[str]:
    return list(topology_conf("tree", workers).lines)


def test_a_tree_has_leaves_spines_and_unlabelled_workers() -> None:
    assert tree(
        worker("w-0", "leaf1", "spine1"),
        worker("w-10", "leaf1", "spine1"),
        worker("w-2", "leaf1", "spine1"),
        worker("w-3", "leaf2", "spine1"),
        worker("cpu-0"),
    ) == [
        "SwitchName=leaf1 Nodes=w-0,w-2,w-10",
        "SwitchName=leaf2 Nodes=w-3",
        "SwitchName=root Switches=spine1,unknown",
        "SwitchName=spine1 Switches=leaf[1-2]",
        "SwitchName=unknown Nodes=cpu-0",
    ]


def test_each_fabric_has_a_root_of_its_own() -> None:
    assert tree(worker("a-0", "l1", fabric="f1"), worker("a-1", fabric="f1"), worker("b-0")) == [
        "SwitchName=f1 Switches=f1.unknown,l1",
        "SwitchName=f1.unknown Nodes=a-1",
        "SwitchName=l1 Nodes=a-0",
        "SwitchName=root Switches=unknown",
        "SwitchName=unknown Nodes=b-0",
    ]


def test_blocks_have_unlabelled_workers_in_one_of_their_own_and_one_default_size() -> None:
    workers = [PlacedWorker(f"w-{n}", tiers={0: "b1"}) for n in range(3)]
    found = topology_conf("block", [*workers, worker("w-3"), worker("x-0", fabric="f1")])
    assert found.lines == (
        "BlockName=b1 Nodes=w-[0-2]",
        "BlockName=f1.unknown Nodes=x-0",
        "BlockName=unknown Nodes=w-3",
        "BlockSizes=18",
    )
    assert topology_conf("block", workers, 4).lines[-1] == "BlockSizes=4"
    assert topology_conf("block", workers, -1).lines[-1] == "BlockSizes=18"


def test_a_name_with_more_digits_than_slurm_reads_gets_an_underscore() -> None:
    number = "1234567890123456789"
    assert tree(worker("w-0", f"s{number}"), worker("w-1", number[1:])) == [
        "SwitchName=234567890123456789 Nodes=w-1",
        f"SwitchName=root Switches=234567890123456789,s{number}_",
        f"SwitchName=s{number}_ Nodes=w-0",
    ]


def test_a_spine_named_as_its_fabric_is_the_root() -> None:
    assert tree(worker("w-0", "leaf", "root")) == [
        "SwitchName=leaf Nodes=w-0",
        "SwitchName=root Switches=leaf",
    ]


def test_a_path_that_contradicts_most_others_is_rejected_and_its_workers_are_unknown() -> None:
    found = topology_conf(
        "tree",
        [
            worker("a-0", "leaf", "wrong"),
            worker("b-0", "leaf", "spine"),
            worker("b-1", "leaf", "spine"),
            worker("c-0", "loop", "loop"),
            worker("d-0", "spine"),
            worker("e-0", "unknown"),
        ],
    )
    assert list(found.lines) == [
        "SwitchName=leaf Nodes=b-0,b-1",
        "SwitchName=root Switches=spine,unknown",
        "SwitchName=spine Switches=leaf",
        "SwitchName=unknown Nodes=a-0,c-0,d-0,e-0",
    ]
    assert found.rejected == {
        "a-0": "switch leaf is below spine already, not below wrong",
        "c-0": "switch loop is above itself",
        "d-0": "switch spine has switches below it, and cannot have nodes",
        "e-0": "the name unknown is reserved",
    }


def test_a_fabric_that_names_no_switch_is_rejected() -> None:
    found = topology_conf("tree", [worker("w-0", "l", fabric="a b\nSwitchName=x")])
    assert list(found.lines) == ["SwitchName=root Switches=unknown", "SwitchName=unknown Nodes=w-0"]
    assert list(found.rejected) == ["w-0"]


_NAMES = st.sampled_from(["a", "b", "c", "d", "root", "f", "unknown", "f.unknown"])
_PATHS = st.lists(st.tuples(st.lists(_NAMES, max_size=4), _NAMES), max_size=12)


@given(_PATHS)
def test_whatever_the_labels_are_the_file_is_a_tree_with_each_worker_once(
    paths: list[tuple[list[str], str]],
) -> None:
    names = [f"w-{number}" for number in range(len(paths))]
    workers = [
        worker(n, *switches, fabric=f) for n, (switches, f) in zip(names, paths, strict=True)
    ]
    below: dict[str, list[str]] = {}
    nodes: list[str] = []
    for line in tree(*workers):
        first, second = line.split(" ")
        name, (key, given_names) = first.partition("=")[2], second.split("=")
        assert name not in below
        below[name] = hostlist.expand(given_names) if key == "Switches" else []
        nodes += hostlist.expand(given_names) if key == "Nodes" else []
    assert sorted(nodes) == sorted(names)
    children = [one for each in below.values() for one in each]
    assert len(children) == len(set(children)), "two parents"
    assert set(children) <= set(below)
    seen, left = set[str](), [one for one in below if one not in children]
    while left:
        seen.add(one := left.pop())
        left += below[one]
    assert seen == set(below), "a cycle has no root"


def test_labels_of_other_prefixes_and_forms_are_no_tiers() -> None:
    given_labels = {
        "topology.nebius.com/tier-0": "b",
        "topology.nebius.com/tier-1": "l",
        "topology.nebius.com/tier-01": "x",
        "topology.nebius.com/tier-2": "",
        "topology.nebius.com/tier-3": "s",
        f"topology.nebius.com/tier-{MOST_TIERS + 1}": "x",
        "a.topology.nebius.com/tier-1": "x",
        "other/tier-1": "y",
    }
    assert tiers(given_labels) == {0: "b", 1: "l", 3: "s"}
    assert tiers(given_labels, "other") == {1: "y"}
    assert tree(PlacedWorker("w-0", tiers=tiers(given_labels)))[0] == "SwitchName=l Nodes=w-0"


def test_a_burst_is_written_once_after_a_pause_and_one_without_a_pause_in_time() -> None:
    burst = next_burst(None, "1", "0", 0)
    assert burst is not None
    assert burst.due() == QUIET_S
    assert next_burst(burst, "1", "0", 3) == burst
    later = next_burst(burst, "2", "0", 4)
    assert later is not None
    assert later.due() == 4 + QUIET_S
    assert next_burst(later, "0", "0", 5) is None
    for second in range(4, 60):
        later = next_burst(later, str(second), "0", second)
    assert later is not None
    assert later.due() == MOST_S
