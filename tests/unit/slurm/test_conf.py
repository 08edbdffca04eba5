from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.slurm.conf.document import (
    Change,
    ConfError,
    Document,
    Record,
    Setting,
    diff,
    merge_options,
    quoted,
    split_options,
)

SAMPLE = r"""# the whole \
ClusterName=lab # not this
SlurmctldPort=6817 slurmdport = 6818
SlurmctldHost=a(10.0.0.1)
SlurmctldHost=b
Comment="two words"
Odd=x\#y\\z
NodeName=cpu-[0-3] \
    CPUs=4 RealMemory=1000 # small
NodeName=gpu-0 CPUs=8
PartitionName=all Nodes=cpu-[0-3],\
gpu-0 Default=YES
Include /etc/slurm/more.conf
ClusterName=prod
"""


def test_a_document_renders_as_it_was_parsed():
    assert Document.parse(SAMPLE).render() == SAMPLE


@settings(max_examples=40)
@given(st.text(alphabet='aB=# \\\n\r\t"\x85\u2028,[]\x0c'))
def test_any_text_renders_as_it_was_parsed(text: str):
    assert Document.parse(text).render() == text


def test_the_last_value_of_a_key_counts_and_case_does_not():
    document = Document.parse(SAMPLE)
    assert document.get("CLUSTERNAME") == "prod"
    assert document.get("SlurmdPort") == "6818"
    assert document.get("Comment") == "two words"
    assert document.get("Odd") == r"x#y\z"
    assert document.get("CPUs") is None
    assert document.all("slurmctldhost") == ("a(10.0.0.1)", "b")


def test_named_lines_are_records():
    document = Document.parse(SAMPLE)
    assert [r.name for r in document.records("nodename")] == ["cpu-[0-3]", "gpu-0"]
    record = document.record("NodeName", "cpu-[0-3]")
    assert record is not None
    assert (record.get("cpus"), record.get("realmemory")) == ("4", "1000")
    partition = document.record("PartitionName", "all")
    assert partition is not None
    assert partition.get("nodes") == "cpu-[0-3],gpu-0"


def test_includes_are_named():
    assert Document.parse(SAMPLE).includes() == ("/etc/slurm/more.conf",)


def test_lines_that_slurm_would_reject_are_reported_with_their_number():
    problems = Document.parse("A=1\nB=x\\\ny\nwhat is this\nC=\nD= 1 E\n").problems()
    assert [(p.line, p.text) for p in problems] == [
        (4, "what is this"),
        (5, "C="),
        (6, "D= 1 E"),
    ]
    assert Document.parse(SAMPLE).problems() == ()


def test_setting_a_key_changes_its_last_place_only():
    document = Document.parse("# top\nA=1 B=2\nC=3\nA=4 # old\n").set("a", "5")
    assert document.render() == "# top\nB=2\nC=3\na=5\n"
    assert document.get("A") == "5"


def test_setting_a_new_key_adds_a_line():
    assert Document.parse("A=1").set("B", "x y").render() == 'A=1\nB="x y"\n'


def test_removing_a_key_removes_every_value_of_it():
    assert Document.parse("A=1\nB=2\nA=3\n").remove("a").render() == "B=2\n"


def test_a_named_line_is_replaced_in_place():
    document = Document.parse("PartitionName=a Nodes=x\nB=1\n")
    new = document.set_record(Record("PartitionName", "a", (Setting("Nodes", "y"),)))
    assert new.render() == "PartitionName=a Nodes=y\nB=1\n"
    assert new.remove_record("partitionname", "a").render() == "B=1\n"


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(
            st.from_regex(r"[A-Z][a-z]{1,4}", fullmatch=True),
            st.text(min_size=1).filter(lambda v: not set(v) & set('"\n\r')),
        )
    )
)
def test_what_is_set_is_read_back(settings: list[tuple[str, str]]):
    document = Document()
    expected: dict[str, str] = {}
    for key, value in settings:
        document = document.set(key, value)
        expected[key.lower()] = value
    again = Document.parse(document.render())
    assert again == document
    assert {key: again.get(key) for key in expected} == expected
    assert not again.problems()


@pytest.mark.parametrize("value", ["", 'say "x"', "two\nlines"])
def test_a_value_that_cannot_be_written_is_rejected(value: str):
    with pytest.raises(ConfError):
        quoted(value)


def test_a_difference_is_reported_by_key_and_name():
    old = Document.parse("A=1\nB=2\nPartitionName=p Nodes=x\nSlurmctldHost=h\n")
    new = Document.parse("b=2 # same\na=3\nPartitionName=p Nodes=y\nPartitionName=q Nodes=x\n")
    assert diff(old, new) == (
        Change("a", None, "1", "3"),
        Change("partitionname", "p", "nodes=x", "nodes=y"),
        Change("partitionname", "q", None, "nodes=x"),
        Change("slurmctldhost", None, "h", None),
    )


@settings(max_examples=40)
@given(st.text(alphabet="aB=# \\\n,"))
def test_a_document_does_not_differ_from_itself(text: str):
    assert diff(Document.parse(text), Document.parse(text)) == ()


def test_merged_options_keep_letter_case_and_required_ones_win():
    """D13, feature row 3."""
    given_ = "JWKS=/Etc/Keys.json, jwt_key=/mine,idle_on_node_suspend"
    assert (
        merge_options(given_, ["jwt_key=/etc/slurm/jwt.key"])
        == "idle_on_node_suspend,JWKS=/Etc/Keys.json,jwt_key=/etc/slurm/jwt.key"
    )
    assert merge_options(None, ["use_client_ids"]) == "use_client_ids"


option = st.from_regex(r"[a-zA-Z_]{1,4}(=[a-zA-Z/]{1,3})?", fullmatch=True)


@settings(max_examples=40)
@given(st.lists(option), st.lists(option), st.randoms())
def test_merging_is_stable_and_does_not_depend_on_order(
    given_: list[str], needed: list[str], random: Random
):
    once = merge_options(",".join(given_), needed)
    assert merge_options(once, needed) == once
    names = [o.partition("=")[0].lower() for o in split_options(once)]
    assert len(names) == len(set(names))
    if len({o.partition("=")[0].lower() for o in given_}) == len(given_):
        shuffled = list(given_)
        random.shuffle(shuffled)
        assert merge_options(",".join(shuffled), needed) == once
