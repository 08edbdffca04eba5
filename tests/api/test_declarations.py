"""Chains of declarations: what the schema refuses, what the operator makes of the rest, and back.

A sample that the seed alone decides; `PENSTOCK_DECLARATIONS=all` takes all of them, which
`python -m support.declarations` does too and counts them by kind.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping

import msgspec
import pytest

from declarations import samples
from declarations.check import every
from declarations.properties import Property, dotted, schemas
from declarations.rendered import KIND_TYPES, manifest, placed
from declarations.rules import BREACHES, Breach
from declarations.values import cases
from penstock.api.kubernetes.meta import Json
from penstock.api.kubernetes.spec_parts import PodTemplate
from penstock.kube.apply import server_side as applying
from penstock.kube.client.transport import Request
from penstock.render.parts import ssh_host_keys as hostkeys
from support import declarations, verdicts
from support.chains import Account
from support.operator_kit import BY_KIND, Lab, Node, lab

pytestmark = pytest.mark.api

ALL = os.environ.get("PENSTOCK_DECLARATIONS") == "all"
SEED = 1
PART = 8
"""Every so many of the declarations are asked of the schema."""
CHAINS = 12


@pytest.fixture(autouse=True)
def _one_host_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second of CPU each, and nothing of it matters here."""
    keys = hostkeys.generate()
    monkeypatch.setattr(hostkeys, "generate", lambda: keys)


async def test_the_api_server_accepts_and_rejects_by_the_schema(api_node: Node) -> None:
    asked = every() if ALL else list(itertools.islice(every(), SEED, None, PART))
    async with lab(api_node) as lab_:
        answers = await verdicts.each(lab_.client, lab_.namespace, asked)
        assert [one for answer in answers if (one := verdicts.disagreement(*answer))] == []
        for case, said in answers:
            if said.taken:
                # What is stored can be read: nulls are gone, numbers are numbers.
                msgspec.convert(said.stored, KIND_TYPES[case.kind])
        assert {said.taken for _, said in answers} == {True, False}
        assert all(lab_.names(kind) == [] for kind in samples.BASE)


@pytest.mark.parametrize("kind", samples.BASE)
async def test_a_broken_rule_is_named_and_changes_nothing(api_node: Node, kind: str) -> None:
    async with lab(api_node) as lab_:
        for one in BREACHES:
            if one.kind == kind:
                await _breaks(lab_, one)


def _condition(type_: str) -> Json:
    at = "2026-01-01T00:00:00Z"
    one = {"type": type_, "status": "True", "reason": "Test", "message": ""}
    return {"conditions": [{**one, "lastTransitionTime": at}]}


USED: Mapping[str, Json] = {
    "Controller": _condition("ConfigApplied"),
    "Accounting": _condition("Ready"),
    "Token": {"issuedAt": "2026-01-01T00:00:00Z"},
}
"""The status by which a kind's reference to a key is in use."""


async def _breaks(lab_: Lab, one: Breach) -> None:
    before, after = one.specs
    if before is None:
        said = await verdicts.ask(lab_.client, lab_.namespace, one.kind, after)
        assert not said.taken, one
        assert one.words in said.words
        return
    path = BY_KIND[one.kind].path(lab_.namespace)
    made = await _send(lab_, "POST", path, _placed(lab_, one.kind, before))
    name = f"{path}/{samples.NAMES[one.kind]}"
    if one.kind in USED:
        # A reference is fixed once something worked with it.
        made = await _send(lab_, "PUT", f"{name}/status", {**made, "status": USED[one.kind]})
    changed = {**made, "spec": _placed(lab_, one.kind, after)["spec"]}
    refused = await _send(lab_, "PUT", name, changed)
    assert one.words in refused["message"], one
    assert await _send(lab_, "GET", name) == made
    await _send(lab_, "DELETE", name)


def _placed(lab_: Lab, kind: str, spec: Json) -> Json:
    return placed(manifest(kind, spec), lab_.namespace)


async def _send(lab_: Lab, method: str, path: str, body: Json | None = None) -> Json:
    data = msgspec.json.encode(body) if body is not None else b""
    answer = await lab_.client.transport.send(Request(method, path, {}, data))
    return msgspec.json.decode(answer.body)


async def test_each_declaration_is_served_or_reported_and_a_revert_brings_all_back(
    api_node: Node,
) -> None:
    todo = declarations.chains(declarations.live(every()), SEED)
    account = await declarations.play(api_node, todo if ALL else todo[:CHAINS], stages=4)
    assert not account.findings, "\n".join(account.findings)
    counted = {what for _, what in account.tried}
    assert {"declared", "taken", "stalled", "reverted"} <= counted


# The tests of the tests: each breaks the product once.


async def test_a_bound_that_the_server_has_not_is_found(api_node: Node) -> None:
    root = schemas()["NodeSet"]
    bounded = {**root["properties"]["replicas"], "maximum": 5}
    prop = Property("NodeSet", ("spec", "replicas"), bounded, False)
    async with lab(api_node) as lab_:
        answers = await verdicts.each(lab_.client, lab_.namespace, cases(prop, root))
        told = [one for answer in answers if (one := verdicts.disagreement(*answer))]
    assert ["above maximum" in one for one in told] == [True]


async def test_a_field_that_stays_after_the_revert_is_found(
    api_node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = applying.field_differences

    def blind(manifest: Json, live: Json, manager: str) -> tuple[str, ...]:
        """Fields of a Service that are asked for no more are not missed."""
        changed = real(manifest, live, manager)
        return changed if "sample" in str(manifest) or manifest["kind"] != "Service" else ()

    monkeypatch.setattr(applying, "field_differences", blind)
    account = await _one(api_node, "RestApi", "spec.service.metadata.labels.*", "present")
    assert any("not as before after the revert" in one for one in account.findings)


async def test_a_field_that_is_not_rendered_is_found(
    api_node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ours_only(_: PodTemplate, ours: Mapping[str, str]) -> dict[str, str]:
        return dict(ours)

    monkeypatch.setattr("penstock.render.parts.pod_template.pod_labels", ours_only)
    account = await _one(api_node, "RestApi", "spec.template.metadata.labels.*", "present")
    assert any("accepted and silently ignored" in one for one in account.findings)


async def _one(node: Node, kind: str, path: str, what: str) -> Account:
    """Play the chain of one declaration."""
    (case,) = [
        one for one in every() if (one.kind, dotted(one.path), one.what) == (kind, path, what)
    ]
    return await declarations.play(node, [(kind, [case])], stages=1)


def test_all_chains_together_have_each_declaration_once_and_a_seed_gives_the_same() -> None:
    todo = declarations.chains(declarations.live(every()), SEED)
    assert todo == declarations.chains(declarations.live(every()), SEED)
    assert {case.name for _, chain in todo for case in chain} == {
        case.name for case in declarations.live(every())
    }
    assert all(case.kind == kind for kind, chain in todo for case in chain)
