"""Patterns of the messages that the code gives with each reason of a condition."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import cache

from penstock.catalog.reasons import SUBJECTS
from reference.source import trees

_ENUMS = {one.__name__: one for one in SUBJECTS}
_MOST = 4
"""Patterns of one reason that are shown."""
_MANY = ("list_some", "join", "sorted", "str")
_DEEPEST = 5
"""Steps from a name to its text."""
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)

Values = dict[str, list[ast.expr]]
"""Expressions that a name may stand for."""


@cache
def patterns() -> dict[str, tuple[str, ...]]:
    """Patterns of messages by reason. A part that varies stands in braces."""
    found: dict[str, dict[str, None]] = {}
    for tree in trees().values():
        constants = {name: [value] for name, value in _constants(tree)}
        for node in ast.walk(tree):
            if isinstance(node, _FUNCTIONS):
                for reason, message, values in _given(node.body, dict(constants)):
                    for text in _texts(message, values, 0):
                        if _has_words(text):
                            found.setdefault(reason, {})[text.strip()] = None
    return {reason: tuple(texts)[:_MOST] for reason, texts in found.items()}


def _given(block: Sequence[ast.stmt], values: Values) -> Iterator[tuple[str, ast.expr, Values]]:
    """Each reason with its message in the calls of a block. `values` are changed by the block."""
    for statement in block:
        branches = _branches(statement)
        inner = {id(node) for branch in branches for one in branch for node in ast.walk(one)}
        for node in ast.walk(statement):
            if isinstance(node, ast.Call) and id(node) not in inner:
                yield from ((reason, text, dict(values)) for reason, text in _of_call(node))
        if branches:
            ends = [dict(values)] if isinstance(statement, ast.If | ast.Match) else []
            for branch in branches:
                after = dict(values)
                yield from _given(branch, after)
                if not _leaves(branch):
                    ends.append(after)
            if isinstance(statement, ast.If) and statement.orelse:
                ends = ends[1:]
            _merge(values, ends)
        else:
            _assign(statement, values)


def _branches(statement: ast.stmt) -> list[list[ast.stmt]]:
    match statement:
        case ast.If() | ast.For() | ast.While() | ast.AsyncFor():
            return [one for one in (statement.body, statement.orelse) if one]
        case ast.With() | ast.AsyncWith():
            return [statement.body]
        case ast.Try():
            handlers = [one.body for one in statement.handlers]
            return [one for one in (statement.body, *handlers, statement.orelse) if one]
        case ast.Match():
            return [one.body for one in statement.cases]
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return []
        case _:
            return []


def _leaves(block: Sequence[ast.stmt]) -> bool:
    return isinstance(block[-1], ast.Return | ast.Raise | ast.Continue | ast.Break)


def _merge(values: Values, ends: Sequence[Values]) -> None:
    for name in {name for end in ends for name in end}:
        every = [one for end in ends for one in end.get(name, ())]
        values[name] = list({id(one): one for one in every}.values())


def _assign(statement: ast.stmt, values: Values) -> None:
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            values[name] = [value]
        case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=given)):
            for target, value in zip(names, given, strict=False):
                if isinstance(target, ast.Name):
                    values[target.id] = [value]
        case ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=value):
            values[name] = [ast.BinOp(old, ast.Add(), value) for old in values.get(name, ())]
        case _:
            return


def _of_call(call: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    """The reasons in a call's arguments, each with the argument after it."""
    for at, one in enumerate(call.args):
        for reason in _reasons(one):
            after = call.args[at + 1] if at + 1 < len(call.args) else None
            named = next((k.value for k in call.keywords if k.arg in ("message", "words")), after)
            if named is not None:
                yield reason, named


def _has_words(text: str) -> bool:
    return len(text.strip()) > 3 and any(word.isalpha() for word in text.split())


def _reasons(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        subject = _ENUMS.get(node.value.id)
        if subject is not None:
            yield subject[node.attr].value
    elif isinstance(node, ast.IfExp):
        yield from _reasons(node.body)
        yield from _reasons(node.orelse)


def _constants(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id, node.value
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
            yield node.target.id, node.value


def _texts(node: ast.expr, values: Values, depth: int) -> Iterator[str]:
    """The texts that an expression may have, with parts that vary in braces."""
    if depth > _DEEPEST:
        return
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.JoinedStr(values=parts):
            yield "".join(_part(one, values) for one in parts)
        case ast.IfExp(body=body, orelse=other):
            yield from _texts(body, values, depth + 1)
            yield from _texts(other, values, depth + 1)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            ends = list(_texts(right, values, depth + 1)) or [f"{{{_word(right)}}}"]
            for begin in _texts(left, values, depth + 1):
                yield from (begin + end for end in ends)
        case ast.Name(id=name):
            for one in values.get(name, ()):
                yield from _texts(one, values, depth + 1)
        case _:
            return


def _part(node: ast.expr, values: Values) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    if not isinstance(node, ast.FormattedValue):
        return "{...}"
    value = node.value
    if isinstance(value, ast.Name):
        known = values.get(value.id, [])
        if len(known) == 1 and not isinstance(known[0], ast.Name):
            texts = list(_texts(known[0], values, _DEEPEST - 1))
            if len(texts) == 1:
                return texts[0]
    return f"{{{_word(value)}}}"


def _word(node: ast.expr) -> str:
    """A name for a part that varies: the last one in its expression."""
    match node:
        case ast.Name(id=name):
            return name.strip("_")
        case ast.Attribute(attr=name):
            return name if name != "name" else _word_of_name(node)
        case ast.Call(func=ast.Name(id="len")):
            return "N"
        case ast.Call(func=ast.Name(id=name), args=[first, *_]) if name in (
            *_MANY,
            "sorted",
            "str",
        ):
            return _word(first)
        case ast.Call(func=ast.Attribute(attr="join"), args=[first, *_]):
            return _word(first)
        case ast.Call(func=ast.Name(id=name)):
            return name.strip("_")
        case ast.Call(func=ast.Attribute(attr=name)):
            return name
        case ast.ListComp(elt=element) | ast.GeneratorExp(elt=element):
            return _word(element)
        case ast.Subscript(value=value):
            return _word(value)
        case _:
            return "..."


def _word_of_name(node: ast.expr) -> str:
    value = node.value if isinstance(node, ast.Attribute) else node
    match value:
        case ast.Name(id=name) if name not in ("one", "self", "meta", "obj"):
            return f"{name} name"
        case ast.Attribute(attr=name) if name != "metadata":
            return f"{name} name"
        case _:
            return "name"
