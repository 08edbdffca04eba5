"""Every text that a user may put before the operator, at its worst size: time and memory.

The time is compared with that of a loop of this machine that takes about 100 ms, so that the bound
moves with the machine.Figures go to the end of the run.
"""

# ruff: noqa: E501  (one input, one line)

from __future__ import annotations

import contextlib
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass

import msgspec
import pytest

from penstock.api.admission import Registry, RelatedObjects
from penstock.api.kubernetes import shapes
from penstock.api.kubernetes.kinds import Pod
from penstock.api.kubernetes.quantity import is_quantity, same_quantity
from penstock.api.penstock.partition import Partition, PartitionSpec
from penstock.api.penstock.validation import partition_problems
from penstock.api.registry import groups
from penstock.api.slinky import labels as slinky_labels
from penstock.api.slinky.common import LONGEST_CONF, LONGEST_LINE
from penstock.decide import scale as scale_in_order
from penstock.decide.advice import gpus
from penstock.decide.auth import directory
from penstock.decide.observed import node_comment
from penstock.decide.slurm_node import parameters as live_conf
from penstock.decide.slurm_node import topology, topology_file
from penstock.kube.client import nesting
from penstock.kube.client.client import LOG_BYTES
from penstock.render.parts import merge, sshd_config
from penstock.slurm import gres, hostlist
from penstock.slurm.auth import jwt
from penstock.slurm.conf.document import Document, diff
from penstock.slurm.partition.conf_line import with_differences
from penstock.slurm.partition.declaration import Difference, partition_changes, partition_lines
from penstock.slurm.rest import wire
from penstock.slurm.rest.http import Answer
from penstock.slurm.rest.transport import _decoded  # pyright: ignore[reportPrivateUsage]
from penstock.translate.slinky.worker_set import MARKS

MOST_BYTES = 10 * 2**20
LOOP = 10_000_000
"""Steps of the reference: 100 ms on the machine on which the bounds were set."""
ETCD = 1_500_000
"""Characters of the largest object that the API server stores."""


@dataclass(frozen=True)
class Input:
    """One reader, and what it is given; what it raises on purpose is no failure."""

    name: str
    read: Callable[[str], object]
    texts: tuple[str, ...]
    size: int
    refuses: tuple[type[Exception], ...] = ()

    def at_worst(self, text: str) -> str:
        return text * (self.size // len(text))


def _made(cost: str) -> Pod:
    meta = {"name": "p", "namespace": "n", "annotations": {slinky_labels.POD_DELETION_COST: cost}}
    return msgspec.convert({"metadata": meta}, Pod)


def _partition(text: str) -> list[tuple[str, str]]:
    entries = tuple(f"n{i:04}-[{text}]" for i in range(1024))
    return list(partition_problems(Partition(spec=PartitionSpec(nodes=entries))))


def _edit(text: str) -> object:
    conf = f"PartitionName=a {text}\n"
    return with_differences(conf, "a", [Difference("MaxTime", "7", "5")])


def _nested(text: str) -> object:
    found: object = text
    for _ in range(9_000):
        found = {"a": found}
    return list(shapes.excess("spec", found))


def _jobs(text: str) -> object:
    body = b'{"jobs":[],"errors":[{"source":"%s"}]}' % text.encode("latin-1")
    return _decoded(wire.JobsReply, Answer(200, "application/json", body))


LINES = (
    "a\\\n",
    "a=1 ",
    "aa=11 ",
    "a=1\n",
    "\n",
    "PartitionName=a\n",
    "slurmctldhost=a\n",
    'a="x ',
    "\\#",
    "\\",
    " ",
    "a",
    "#",
    "include ",
    "=",
    "a= ",
    '"',
    "ä=ö ",
)
SEARCH = "Search result: (0), base: ["
INPUTS = (
    Input("a quantity", is_quantity, ("9", "1e1", " "), ETCD),
    Input("two quantities", lambda t: same_quantity(f"1e{t}", "1"), ("9", "1"), ETCD),
    Input("extraConf", lambda t: Document.parse(t).problems(), LINES, LONGEST_CONF),
    Input("extraConf in effect", lambda t: Document.parse(t).effective(), LINES, LONGEST_CONF),
    Input("two extraConf", lambda t: diff(Document.parse(t), Document()), LINES, LONGEST_CONF // 2),
    Input("partitions of extraConf", partition_lines, LINES, LONGEST_CONF),
    Input(
        "partitions after a DEFAULT line",
        lambda t: partition_lines(f"PartitionName=DEFAULT {' '.join(f'k{i}=1' for i in range(7000))}\n{t}"),
        ("PartitionName=x\n",),
        LONGEST_CONF // 2,
    ),
    Input("changed partitions", lambda t: partition_changes(t, ""), ("PartitionName=a\n",), LONGEST_CONF),
    Input("a partition's line", _edit, ("a", " ", "a=", "a ", 'a="', "a=\\a", "=", "a= "), LONGEST_LINE),
    Input("a NodeSet's extraConf", live_conf.read, ("Weight=9", "9", "Gres=a:9,", "a ", "Feature=a,"), LONGEST_LINE),
    Input("counts of resources", gres.counts, ("9", "a:9,", "(", "()", ":"), LONGEST_LINE),
    Input("a host list", hostlist.expand, ("[", "]", "a,", "9", "[1-65536]", "n[1-65536],", "[1"), LONGEST_CONF, (hostlist.HostListError,)),
    Input("one bracket", lambda t: hostlist.expand(f"n[{t}1]"), ("1-65536,", "9", "1,", "-"), LONGEST_CONF // 2, (hostlist.HostListError,)),
    Input("a Partition's nodes", _partition, ("1-65536", "9", "1,"), 7),
    Input("gres.conf", lambda t: gpus.listed(t, "n1"), ("NodeName=n[1-65536] Name=gpu File=/d[0-65535]\n", "Count=9", "\n"), LONGEST_CONF),
    Input("sssd.conf", directory.asks, ("\n", " ", "id_provider", "id_provider=", "\t\n"), 1_000_000),
    Input("sssd's log", lambda t: directory.DirectoryState().after(t), (SEARCH, "Search result: (0)", "Bind result: ", "Bind result: (", "Unable to establish connection [1", "\n", SEARCH + "a]\n", "\u2028"), LOG_BYTES),
    Input("sshd_config", lambda t: sshd_config.sshd_config(sshd_config.LOGIN, t), ("\n", "a\n", "match\n", " ", "="), LONGEST_CONF),
    Input("topology.yaml", lambda t: topology.exists("a:b", {"topology.yaml": t}), ("[", "{", "- ", "a: ", "a: b\n", "- topology: a\n", "&a ", "[]", "\n", "? "), topology_file.MOST_CHARACTERS),
    Input("a node's comment", lambda t: node_comment.read(MARKS.comment, f'{{"a":{t}'), ("[", '{"a":', "9", '"'), LONGEST_CONF),
    Input("a token", lambda t: jwt.signed_claims(b"k", t), ("W1tb", ".", "e30.", "a"), 1_000_000, (jwt.JwtError,)),
    Input("a deletion cost", lambda t: scale_in_order.deletion_cost(MARKS, _made(t)), ("9", "-", "0"), 262_144),
    Input("nested JSON", lambda t: nesting.shallow(t.encode()), ('{"a":', "[", '"', "[],", "\\"), 65_536),
    Input("a nested pod template", _nested, ("a",), 1),
    Input("a list of variables", lambda t: merge.by_key([], [{"name": f"{t}{i}"} for i in range(shapes.MOST_ITEMS)], "name"), ("a",), 1),
    Input("a list of ports", lambda t: merge.ports([], [{"name": f"{t}{i}", "containerPort": i} for i in range(shapes.MOST_ITEMS)]), ("a",), 1),
    Input("a list of mounts", lambda t: merge.union([], [{"name": f"{t}{i}"} for i in range(shapes.MOST_ITEMS)]), ("a",), 1),
    Input("a job's name", _jobs, ("\xff", "a\xc3"), LONGEST_CONF),
)  # fmt: skip


def _spent(call: Callable[[], object], refuses: tuple[type[Exception], ...]) -> float:
    started = time.process_time()
    with contextlib.suppress(*refuses):
        call()
    return time.process_time() - started


def _reference() -> float:
    def count() -> None:
        for _ in range(LOOP):
            pass

    return min(_spent(count, ()) for _ in range(3))


@pytest.mark.parametrize("one", INPUTS, ids=lambda one: one.name)
def test_an_input_at_its_worst_size_takes_neither_time_nor_memory_from_others(
    one: Input, figure: Callable[[str], None]
) -> None:
    reference, worst, most = _reference(), 0.0, 0
    for text in one.texts:
        given = one.at_worst(text)
        # The least of some: other work takes the memory's speed more than that of the loop.
        spent = float("inf")
        for tries in range(6):
            if spent < reference / 2:
                break
            changed = given + " " * tries
            spent = min(spent, _spent(lambda text=changed: one.read(text), one.refuses))
        tracemalloc.start()
        try:
            _spent(lambda given=given: one.read(given + 7 * " "), one.refuses)
            memory = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        worst, most = max(worst, spent), max(most, memory)
        assert spent < reference, f"{text!r}: {spent / reference:.2f} of the reference"
        assert memory < MOST_BYTES, f"{text!r}: {memory / 2**20:.1f} MiB"
    figure(
        f"hostile {one.name}: {1000 * worst:.1f} ms, {worst / reference:.2f} of the reference, "
        f"{most / 2**20:.1f} MiB"
    )


def test_lines_beyond_their_limit_are_not_parsed(monkeypatch: pytest.MonkeyPatch):
    """Their length is a fault already, and a caller of the webhook may send 8 MiB of them."""

    def parse(_: str) -> Document:
        raise AssertionError("parsed")

    monkeypatch.setattr(Document, "parse", parse)
    rules = Registry(groups())
    spec = {"extraConf": "a=1\n" * LONGEST_CONF}
    for kind in ("Controller", "Accounting"):
        found = rules.of_kind("slinky.slurm.net", kind)
        assert found is not None
        meta = {"name": "a", "namespace": "b"}
        obj = msgspec.convert({"metadata": meta, "spec": spec}, found.info.type)
        result = rules.validate_change(obj, None, RelatedObjects())
        assert any(one.path == "spec.extraConf" for one in result.problems)
