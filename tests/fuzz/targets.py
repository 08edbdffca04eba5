"""The targets: each reads what strangers write, and states what must hold of the result.

A target takes bytes, and raises for a fault. What a reader raises on purpose is no fault.
"""

from __future__ import annotations

import base64
import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any, Final

import msgspec

from penstock.api.kubernetes.cron_schedule import schedule_problem
from penstock.api.kubernetes.meta import ObjectMeta
from penstock.api.kubernetes.quantity import is_quantity, same_quantity
from penstock.api.nebius.jailed_config import JailedConfig
from penstock.api.registry import registry
from penstock.base import duration, times
from penstock.controllers.admission.handlers import DEFAULT, VALIDATE, Admission
from penstock.controllers.caches.store import CacheStore
from penstock.decide.accounting import slurmdbd
from penstock.decide.check import results
from penstock.decide.config import reconfigure_log
from penstock.decide.jail import configuration, paths, roots
from penstock.decide.observed import node_comment
from penstock.decide.slurm_node import parameters, topology_file
from penstock.kube import Client, Manager
from penstock.kube.client import nesting
from penstock.kube.webhook.review import AdmissionError, answer
from penstock.slurm import gres, hostlist, versions
from penstock.slurm.auth import jwt, key_rotation
from penstock.slurm.conf import includes
from penstock.slurm.conf.apply_method import needs
from penstock.slurm.conf.apply_method_table import TABLE
from penstock.slurm.conf.document import Document, diff
from penstock.slurm.partition import conf_line, declaration, keys, removed_keys, retention, update
from penstock.slurm.rest import wire
from penstock.slurm.rest.errors import SlurmError
from penstock.slurm.rest.http import Answer
from penstock.slurm.rest.transport import _decoded
from penstock.translate.slinky.worker_set import MARKS

LONGEST: Final = 65_536
"""Bytes of an input. Larger ones, at their worst, are in tests/unit/hostile."""
LIMIT_S: Final = 2.0
"""CPU-seconds of one input. The code is instrumented, which makes it some ten times slower."""
MANY: Final = 5_000
"""More names are counted and not built, so that most inputs are quick."""


class SlowError(Exception):
    """An input took more CPU than any may."""


@dataclass(frozen=True, slots=True)
class Target:
    """`words` are what its language is made of."""

    name: str
    run: Callable[[bytes], object]
    words: Sequence[str]

    def __call__(self, data: bytes) -> None:
        """Read an input, and check the time. Raises for a fault."""
        began = time.thread_time()
        self.run(data)
        spent = time.thread_time() - began
        if spent > LIMIT_S:
            raise SlowError(f"{self.name}: {spent:.1f} CPU-seconds for {len(data)} bytes")


def _text(data: bytes) -> str:
    return data.decode(errors="replace")


def _parts(data: bytes, count: int) -> list[str]:
    found = [_text(one) for one in data.split(b"\0", count - 1)]
    return found + [""] * (count - len(found))


def _slurm_conf(data: bytes) -> None:
    old, new = _parts(data, 2)
    document = Document.parse(old)
    assert document.render() == old, "a document that is not edited stays as it is"
    document.problems()
    document.includes()
    document.effective()
    assert not diff(document, Document.parse(old))
    diff(document, Document.parse(new))
    needs({includes.SLURM_CONF: old}, {includes.SLURM_CONF: new}, TABLE)


def _included(data: bytes) -> None:
    conf, first, second = _parts(data, 3)
    files = {includes.SLURM_CONF: conf, "a": first, "b": second}
    text = includes.resolved(files)
    assert len(text) <= (includes.MOST_INCLUDES + 3) * (len(data) + 3) * 3
    assert set(includes.included(files)) <= {"a", "b"}


def _partitions(data: bytes) -> None:
    old, new = _parts(data, 2)
    lines = declaration.partition_lines(old)
    for one in lines.values():
        with contextlib.suppress(ValueError):
            keys.canonical(one.keys)
    changes = declaration.partition_changes(old, new)
    assert declaration.live_only(old, old)
    removed_keys.removed_keys(old, new)
    kept = retention.retained_lines(old, new, frozenset[str]())
    assert retention.retained_lines(old, old, frozenset[str]()) == ()
    assert all("\n" not in one for one in kept), "a line that stays is one line"
    retention.without_records(old)
    for name in list(lines)[:3]:
        conf_line.without(old, name)
        wrong = [declaration.Difference("MaxTime", "7", "5")]
        conf_line.with_differences(old, name, wrong)
    for change in changes[:3]:
        update.call(change, {})


def _host_list(data: bytes) -> None:
    text = _text(data)
    with contextlib.suppress(hostlist.HostListError):
        hostlist.contains(text, "n1")
        hostlist.among(text, {"n1", "n01"})
        if hostlist.count(text) > MANY:
            return
        names = hostlist.expand(text)
        assert len(names) == hostlist.count(text)
        if names and all(one and one.isascii() and one.isalnum() for one in names):
            again = hostlist.expand(hostlist.compress(names))
            assert set(again) == set(names), "compressed names are the same names"


def _node_words(data: bytes) -> None:
    text = _text(data)
    found = gres.counts(text)
    assert all(isinstance(count, int) for count in found.values())
    gres.text(found)
    parameters.read(text)


def _topology(data: bytes) -> None:
    topology_file.read(_text(data))


def _replies(data: bytes) -> None:
    for type_ in (wire.NodesReply, wire.JobsReply):
        with contextlib.suppress(SlurmError):
            _decoded(type_, Answer(200, "application/json", data))


def _logs(data: bytes) -> None:
    log = _text(data)
    reconfigure_log.read(log)
    slurmdbd.read(log)
    roots.parse(log)


def _quantities(data: bytes) -> None:
    one, other = _parts(data, 2)
    if is_quantity(one):
        assert same_quantity(one, one)
    same_quantity(one, other)
    with contextlib.suppress(ValueError):
        duration.seconds(one)
    times.parse(one)
    versions.parse(one)
    versions.of_image(one)
    schedule_problem(one)


@cache
def _handlers() -> dict[str, Any]:
    async def never(_: object) -> Any:
        raise AssertionError("a webhook sends nothing")

    store = CacheStore(Manager(Client(never)))  # pyright: ignore[reportArgumentType]
    return dict(Admission(store.of).handlers)


def _admission(data: bytes) -> None:
    for path in (VALIDATE, DEFAULT):
        with contextlib.suppress(AdmissionError):
            reply = msgspec.json.decode(answer(data, _handlers()[path]))
            assert isinstance(reply["response"]["allowed"], bool)


def _objects(data: bytes) -> None:
    """A stored object of each kind, by its own rules."""
    number, _, body = data.partition(b"\0")
    rules = registry().rules
    one = rules[(number[0] if number else 0) % len(rules)]
    try:
        obj = nesting.decode(body, one.info.type)
    except (msgspec.MsgspecError, UnicodeDecodeError, ValueError):
        return
    found = list(islice(one.problems(obj), 1000))
    assert all(problem.message for problem in found)


def _jailed_config(data: bytes) -> None:
    with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError):
        msgspec.json.decode(data, type=JailedConfig)
    path, text = _parts(data, 2)
    if not paths.problem(path):
        folders, name = paths.split(path)
        assert name not in ("", ".", "..")
        assert not {"", ".", ".."} & set(folders), "nothing leads out of the jail"
    configuration.named(text)
    configuration.delivery({"slurm.conf": data}, text)


def _check_results(data: bytes) -> None:
    text = _text(data)
    with contextlib.suppress(ValueError):
        found = results.decode(results.encode(results.decode(text)))
        assert results.decode(results.encode(found)) == found, "what was read once stays"
    node_comment.read(MARKS.comment, text)


def _tokens(data: bytes) -> None:
    token, state = _parts(data, 2)
    with contextlib.suppress(jwt.JwtError):
        jwt.signed_claims(b"k" * 32, token)
        raise AssertionError("nobody guesses a signature")
    packed = base64.b64encode(state.encode()).decode()
    key_rotation.read(dict.fromkeys(("state", "current", "next"), packed))
    key_rotation.read(dict.fromkeys(("state", "current", "next"), state))


def _nested_json(data: bytes) -> None:
    with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError):
        nesting.decode(data, ObjectMeta)
    nesting.shallow(data)


_CONF = ("\n", "\\\n", "=", " ", '"', "#", "include ", "PartitionName=", "NodeName=", "NodeSet=")
TARGETS: Final = (
    Target("slurm-conf", _slurm_conf, (*_CONF, "\0", "SlurmctldHost=", "DEFAULT")),
    Target("includes", _included, (*_CONF, "\0", "include a", "include b", "include /etc/slurm/a")),
    Target("partitions", _partitions, (*_CONF, "\0", "Nodes=", "State=", "MaxTime=", "DEFAULT")),
    Target("host-lists", _host_list, ("[", "]", ",", "-", "n[1-3]", "[001-010]", "n1")),
    Target("node-words", _node_words, ("Gres=", "gpu:", "(S:0-1)", "Feature=", "Weight=", ",")),
    Target("topology", _topology, ("- ", "topology: ", "tree:", "switches:", "&a ", "*a", "[")),
    Target("replies", _replies, ('{"nodes":[', '{"jobs":[', '"errors":[', '"number":', "null")),
    Target("logs", _logs, ("penstock: ", "tried ", "effective ", "refused ", "slurm ", "\n")),
    Target("quantities", _quantities, ("1e", "Ki", "m", "h", "30s", "*/5", "26.05", "T", "Z")),
    Target("admission", _admission, ('"request":{', '"uid":"a"', '"object":{', '"operation":')),
    Target("objects", _objects, ('{"spec":{', '"metadata":{', "[]", "null", '"a":')),
    Target("jailed-config", _jailed_config, ("/", "..", "/etc/slurm/", '{"spec":{"items":[', "\0")),
    Target("check-results", _check_results, ('{"job":', '"state":', "[", "{", "COMPLETED")),
    Target("tokens", _tokens, (".", "e30", "eyJhbGciOiJIUzI1NiJ9", '{"keys":[', "\0")),
    Target("nested-json", _nested_json, ('{"a":', "[", "]", "}", '"', "\\")),
)
