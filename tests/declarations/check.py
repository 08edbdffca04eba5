"""Checks of declarations without an API server.

One that is neither rejected nor reported as wrong or not served must change the rendered
objects. A field that is accepted and silently ignored is a finding, and so is one that cannot be
rendered or read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from declarations import effects, samples
from declarations.properties import ABSENT, at, properties, put, schemas
from declarations.rendered import decoded, rendered
from declarations.values import Case, Verdict, cases
from penstock.api.kubernetes.meta import Json
from penstock.api.registry import problems, unsupported_fields

EFFECTIVE = frozenset({"present", "open", "enum"})
"""Sorts of values that ask for something."""


def every() -> list[Case]:
    """All declarations of all kinds, in order of the schemas."""
    return [
        case
        for kind, root in schemas().items()
        for prop in properties(kind, root)
        for case in cases(prop, root)
    ]


def findings(found: Iterable[Case]) -> Iterator[str]:
    """What is wrong with the product, in words; nothing when all is well."""
    for case in found:
        # The API server takes null away before anything is stored.
        if case.verdict is Verdict.REFUSED or case.what == "null":
            continue
        told = _reported(case)
        if told:
            yield f"{case.name}: {told}"


def _reported(case: Case) -> str | None:
    try:
        obj = decoded(case.kind, case.spec)
        wrong = problems(obj)
        unserved = "; ".join(unsupported_fields(obj))
        if wrong:
            return None if all(map(str, wrong)) else "refused without words"
        if case.what == "misshapen":
            return "of a shape that Kubernetes refuses, and not told"
        made = rendered({case.kind: case.spec})
    except Exception as error:
        return f"the operator fails: {error!r}"
    if not asks(case) or effects.reported(unserved, case.path):
        return None
    if effects.of(case.kind, case.path) or made != _without(case):
        return None
    return "accepted and silently ignored"


def asks(case: Case) -> bool:
    """Whether the case asks for something other than what the field means when it is absent."""
    if case.what not in EFFECTIVE or effects.is_default(case) or case.value in ({}, [], ""):
        return False
    return at({"spec": samples.BASE[case.kind]}, case.path) != case.value


def _without(case: Case) -> Json:
    """What is rendered when the field is absent, or another value where one must be there."""
    try:
        return rendered({case.kind: put(case.spec, case.path[1:], ABSENT)})
    except ValueError:
        other = case.value + 1 if isinstance(case.value, int) else f"{case.value}-other"
        return rendered({case.kind: put(case.spec, case.path[1:], other)})
