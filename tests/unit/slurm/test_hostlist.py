from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.slurm.hostlist import LIMIT, HostListError, compress, expand

# Expected values are what `scontrol show hostnames` of Slurm 26.05 printed.
KNOWN: list[tuple[str, list[str]]] = [
    ("cpu-1", ["cpu-1"]),
    (
        "cpu-[0-3,7],gpu[01-03]",
        ["cpu-0", "cpu-1", "cpu-2", "cpu-3", "cpu-7", "gpu01", "gpu02", "gpu03"],
    ),
    ("r[1-2]n[1-3]", ["r1n1", "r1n2", "r1n3", "r2n1", "r2n2", "r2n3"]),
    ("n[08-11]", ["n08", "n09", "n10", "n11"]),
    ("n[8-11]", ["n8", "n9", "n10", "n11"]),
    ("n[001]", ["n001"]),
    ("n[1-2]x", ["n1x", "n2x"]),
    ("n[1,01]", ["n1", "n01"]),
    ("a,b c", ["a", "b", "c"]),
    ("n[1-2,1]", ["n1", "n2", "n1"]),
    ("", []),
]


@pytest.mark.parametrize(("text", "names"), KNOWN)
def test_a_host_list_stands_for_its_names(text: str, names: list[str]):
    assert expand(text) == names


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["cpu-3", "cpu-1", "cpu-2", "gpu-9"], "cpu-[1-3],gpu-9"),
        (["n10", "n9", "n8"], "n[8-10]"),
        (["n08", "n09", "n10"], "n[08-10]"),
        (["a", "a"], "a"),
        (["login", "r1n1", "r1n2"], "login,r1n[1-2]"),
        ([], ""),
    ],
)
def test_names_compress_to_the_usual_form(names: list[str], text: str):
    assert compress(names) == text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("n[1-3", "never closed"),
        ("n1]", "without '['"),
        ("n[1[2]]", "inside"),
        ("n[3-1]", "backwards"),
        ("n[a-b]", "not a number or a range"),
        ("n[]", "not a number or a range"),
        (f"n[0-{LIMIT}]", "more than"),
        ("n[0-999][0-999]", "more than"),
    ],
)
def test_a_wrong_host_list_is_explained(text: str, words: str):
    with pytest.raises(HostListError, match=words.replace("[", r"\[")):
        expand(text)


def test_a_name_with_a_comma_is_no_name():
    with pytest.raises(HostListError):
        compress(["a,b"])


name = st.from_regex(r"[a-z]{1,3}-?[0-9]{0,3}", fullmatch=True)


@settings(max_examples=40)
@given(st.sets(name))
def test_compressing_keeps_the_set(names: set[str]):
    text = compress(names)
    assert set(expand(text)) == names
    assert len(expand(text)) == len(names)


@settings(max_examples=40)
@given(st.lists(name), st.randoms())
def test_the_order_of_names_does_not_matter(names: list[str], random: Random):
    shuffled = list(names)
    random.shuffle(shuffled)
    assert compress(shuffled) == compress(names)
