"""Checks that the rules of several kinds of `slurm.nebius.ai` have in common."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import cast

from penstock.api.admission import Problem
from penstock.api.kubernetes import shapes
from penstock.api.kubernetes.meta import Json
from penstock.api.kubernetes.quantity import quantity
from penstock.base.text import list_some

ABSENT = "must be given"
_PERCENT = re.compile("[1-9][0-9]{0,9}%")
_SHARE = re.compile(r"([1-9][0-9]?|100)%|[1-9][0-9]{0,8}")


def known_names(names: Collection[str]) -> str:
    """The names that a reference may have, for a message."""
    return f"known: {list_some(sorted(name[:60] for name in names))}" if names else "there are none"


def duplicates(path: str, names: Iterable[str]) -> Iterator[Problem]:
    """Names that are there more than once."""
    for name, count in Counter(names).items():
        if count > 1:
            yield Problem(path, f"{name[:60]!r} is there {count} times: keep one")


def shape_problems(path: str, value: object, shape: shapes.Shape) -> Iterator[Problem]:
    """Where a part that the schema leaves open is not of its shape."""
    if found := list(shapes.excess(path, value)):
        return (Problem(*one) for one in found)
    return (Problem(*one) for one in shapes.shape_problems(path, value, shape))


def containers(path: str, given: Sequence[Json], own: Collection[str] = ()) -> Iterator[Problem]:
    """Faults of opaque containers of a pod, which has others of the names in `own`."""
    fields = cast("Mapping[str, shapes.Shape]", shapes.CONTAINER)
    shape: shapes.Shape = {**fields, "name!": shapes.TEXT}
    for index, container in enumerate(given):
        yield from shape_problems(f"{path}[{index}]", container, shape)
        if (name := one_name(container)) in own:
            yield Problem(f"{path}[{index}].name", f"{name!r} is a container of the operator's")
    yield from duplicates(path, map(one_name, given))


def one_name(container: Json) -> str:
    """The name of an opaque container; empty without one."""
    return str(container.get("name", ""))


def pod_fields(path: str, fields: Mapping[str, object]) -> Iterator[Problem]:
    """Faults of opaque fields of a pod spec, by their names; those without a value are left out."""
    given = {name: value for name, value in fields.items() if value}
    return shape_problems(path, given, shapes.POD)


def number(value: int | str | None) -> Fraction | None:
    """The number of a quantity; None for none and for a text that is no quantity."""
    if value is None:
        return None
    try:
        return quantity(value)
    except ValueError:
        return None


def percentage(value: int | str) -> Fraction | None:
    """The share that a text such as 20% stands for; None for any other."""
    if isinstance(value, str) and _PERCENT.fullmatch(value):
        return Fraction(int(value[:-1]), 100)
    return None


def is_budget(value: int | str) -> bool:
    """Whether a value is a number of workers that is at least 1, or a percentage."""
    return percentage(value) is not None if isinstance(value, str) else value >= 1


def is_share(value: str) -> bool:
    """Whether a text is a number of nodes from 1, or a whole percentage up to 100%."""
    return _SHARE.fullmatch(value) is not None
