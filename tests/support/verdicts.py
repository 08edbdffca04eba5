"""Answers of a real API server to declarations, without anything being stored."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from declarations.rendered import manifest, placed
from declarations.rules import messages
from declarations.values import Case, Verdict
from penstock.api.kubernetes.meta import Json
from penstock.kube import Client
from penstock.kube.client.errors import api_error
from penstock.kube.client.transport import Request
from support.operator_kit import BY_KIND

AT_ONCE = 8
DRY = {"dryRun": "All", "fieldValidation": "Strict"}
"""As kubectl: a field that the schema does not know is rejected."""


@dataclass(frozen=True)
class ServerAnswer:
    """The answer to one declaration."""

    taken: bool
    words: str
    stored: Json


async def ask(client: Client, namespace: str, kind: str, spec: Json) -> ServerAnswer:
    """Create an object of another name, dry."""
    body = placed(manifest(kind, spec), namespace)
    body["metadata"] = {"name": "asked", "namespace": namespace}
    path = BY_KIND[kind].path(namespace)
    answer = await client.transport.send(Request("POST", path, DRY, msgspec.json.encode(body)))
    if answer.status < 300:
        return ServerAnswer(True, "", msgspec.json.decode(answer.body))
    error = api_error(answer.status, answer.body)
    return ServerAnswer(False, f"{error.code} {error}", {})


def disagreement(case: Case, answer: ServerAnswer) -> str | None:
    """How an answer differs from what the case expects; None when it does not."""
    if case.verdict is Verdict.ANY:
        return None
    if not answer.taken and case.verdict is Verdict.TAKEN and by_rule(case.kind, answer.words):
        return None
    if answer.taken != (case.verdict is Verdict.TAKEN):
        return f"{case.name}: {case.verdict} expected, {answer.words or 'taken'}"
    if not answer.taken and not _named(case, answer.words):
        return f"{case.name}: the refusal does not name {case.field}: {answer.words}"
    return None


def _named(case: Case, words: str) -> bool:
    """Whether a rejection names the field, or the rule's object if a CEL rule could not read it."""
    parent = case.field.split(".")[:2]
    return case.field in words or ("invalid data" in words and ".".join(parent) in words)


def by_rule(kind: str, words: str) -> bool:
    """Whether a rejection quotes one of the CEL rules of the kind."""
    return any(message in words for of, message in messages() if of == kind)


async def each(
    client: Client, namespace: str, cases: Iterable[Case]
) -> list[tuple[Case, ServerAnswer]]:
    """The answers to many, several at once."""
    limit = asyncio.Semaphore(AT_ONCE)

    async def one(case: Case) -> tuple[Case, ServerAnswer]:
        async with limit:
            return case, await ask(client, namespace, case.kind, case.spec)

    return await asyncio.gather(*(one(case) for case in cases))
