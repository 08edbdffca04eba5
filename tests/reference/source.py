"""The product's modules as syntax trees, and declared names in them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src/penstock"
_WITH_BODY = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
APART = ("catalog", "simulation", "local")
"""Folders that declare the names, simulate others, or are no part of the operator."""


@cache
def trees() -> dict[str, ast.Module]:
    """The syntax tree of each module, by its path in the package."""
    return {
        name: ast.parse(path.read_text())
        for path in sorted(PACKAGE.rglob("*.py"))
        if (name := path.relative_to(PACKAGE).as_posix()).split("/")[0] not in APART
    }


@cache
def attributes() -> frozenset[str]:
    """Each `Name.ATTRIBUTE` in the product."""
    return frozenset(
        f"{node.value.id}.{node.attr}"
        for tree in trees().values()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    )


@cache
def names() -> frozenset[str]:
    """Each name and attribute that the product uses."""
    found: set[str] = set()
    for tree in trees().values():
        for node in ast.walk(tree):
            if isinstance(node, ast.Name):
                found.add(node.id)
            elif isinstance(node, ast.Attribute):
                found.add(node.attr)
            elif isinstance(node, ast.ImportFrom):
                found |= {alias.name for alias in node.names}
    return frozenset(found)


def calls() -> Iterator[tuple[str, ast.Call, str]]:
    """Each call with the path of its module and the name that is called."""
    for path, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                of = node.func
                name = of.id if isinstance(of, ast.Name) else getattr(of, "attr", "")
                yield path, node, name


def strings() -> Iterator[tuple[str, ast.Constant, str]]:
    """Each string literal but docstrings, with the path of its module."""
    for path, tree in trees().items():
        docs = {
            id(statement.value)
            for node in ast.walk(tree)
            if isinstance(node, _WITH_BODY)
            for statement in node.body
            if isinstance(statement, ast.Expr)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and id(node) not in docs:
                value: object = node.value
                if isinstance(value, str):
                    yield path, node, value
