"""Extracts names, docstrings, comments and messages of Python files, and the prose of pages."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Kind = Literal["name", "docstring", "comment", "message", "page"]


@dataclass(frozen=True)
class Piece:
    """A text and the line on which it begins, counted from 1."""

    kind: Kind
    line: int
    text: str


_CODE = re.compile(r"``.*?``|`[^`]*`", re.DOTALL)
_LINK = re.compile(r"\]\([^)]*\)|<!--.*?-->|https?://\S+", re.DOTALL)


def read_python(source: str, module: str, *, messages: bool = True) -> Iterator[Piece]:
    """Yield the texts of a Python file. `module` is its name, which is a text as well.

    `messages` includes string literals of at least three words.
    """
    if module != "__init__":
        yield Piece("name", 1, module)
    tree = ast.parse(source)
    docstrings: set[int] = set()
    for node in ast.walk(tree):
        yield from _names(node)
        for doc in _docstrings(node):
            docstrings.add(id(doc))
            yield Piece("docstring", doc.lineno, blank_code(str(doc.value)))
    if messages:
        yield from _messages(tree, docstrings)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield Piece("comment", token.start[0], blank_code(token.string))


def read_page(text: str) -> Iterator[Piece]:
    """Yield the prose of a Markdown page as one text: without code, links and comments."""
    inside = False
    lines: list[str] = []
    for line in text.splitlines():
        fence = line.lstrip().startswith("```")
        lines.append("" if inside or fence else line)
        inside ^= fence
    yield Piece("page", 1, blank_code("\n".join(lines)))


def blank_code(text: str) -> str:
    """Replace code in backquotes, addresses and comments by blanks; line breaks stay."""
    for pattern in (_CODE, _LINK):
        text = pattern.sub(lambda hit: re.sub(r"[^\n]", " ", hit.group()), text)
    return text


def _names(node: ast.AST) -> Iterator[Piece]:
    match node:
        case ast.ClassDef(name=name):
            yield Piece("name", node.lineno, name)
            for each in node.body:
                if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
                    yield Piece("name", each.lineno, each.target.id)
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            yield Piece("name", node.lineno, name)
            args = node.args
            for each in (*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg):
                if each is not None:
                    yield Piece("name", each.lineno, each.arg)
        case _:
            return


def _docstrings(node: ast.AST) -> Iterator[ast.Constant]:
    """Yield string expressions of a body: a docstring, or the text below a constant or field."""
    for each in node.body if isinstance(node, _WITH_BODY) else ():
        match each:
            case ast.Expr(value=ast.Constant(value=str()) as doc):
                yield doc
            case _:
                continue


_WITH_BODY = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def _messages(tree: ast.AST, docstrings: set[int]) -> Iterator[Piece]:
    """Yield each literal once; a value in an f-string counts as one word."""
    if isinstance(tree, ast.JoinedStr):
        text = "".join(
            str(part.value) if isinstance(part, ast.Constant) else "X" for part in tree.values
        )
        yield from _message(tree.lineno, text)
        for part in tree.values:
            if isinstance(part, ast.FormattedValue):
                yield from _messages(part.value, docstrings)
        return
    if isinstance(tree, ast.Constant):
        if isinstance(tree.value, str) and id(tree) not in docstrings:
            yield from _message(tree.lineno, tree.value)
        return
    for child in ast.iter_child_nodes(tree):
        yield from _messages(child, docstrings)


def _message(line: int, text: str) -> Iterator[Piece]:
    # A literal of several lines is a script, a manifest or a template.
    if "\n" not in text.strip() and len(text.split()) >= 3:
        yield Piece("message", line, blank_code(text))
