"""Arguments of all programs."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

import typer

from penstock import __version__
from penstock.cli.main import app
from penstock.controllers.jailed_config.arguments import build_parser as writer_parser
from penstock.controllers.runtime.settings import build_parser
from reference.page import Page, code, table

_HELP = frozenset({"--help", "--install-completion", "--show-completion"})


def page() -> Page:
    """A table for each program and command."""
    parts = [
        "For platform engineers and users of the command line.\n",
        "## The operator\n",
        "Container `penstock-operator`; the chart's values set them.\n",
        _of_parser(build_parser({})),
        "\n## sconfigcontroller\n",
        _of_parser(writer_parser()),
    ]
    for name, command in _commands("penstock", typer.main.get_command(app)):
        parts += [f"\n## `{name}`\n", f"{_first(command.help or '')}\n"]
        if command.epilog:
            calls = [one.strip() for one in command.epilog.split("\n\n")[1:]]
            parts.append(f"Examples: {', '.join(map(code, calls))}.\n")
        rows = [_row(one) for one in command.params if not set(one.opts) & _HELP]
        if rows:
            parts.append(table(("Argument", "Default", "Meaning"), rows))
    return Page("command-line", "Command line", "arguments of all programs", "\n".join(parts))


def _of_parser(parser: argparse.ArgumentParser) -> str:
    rows: list[Sequence[str]] = []
    for one in parser._actions:
        if "--help" in one.option_strings:
            continue
        words = (one.help or "").partition(" (default")[0]
        if one.choices and not words:
            words = f"one of {', '.join(map(str, one.choices))}"
        rows.append((", ".join(map(code, one.option_strings)), _default(one), words))
    return table(("Argument", "Default", "Meaning"), rows)


def _default(action: argparse.Action) -> str:
    value: Any = action.default
    if action.dest == "cluster_domain":
        return "of the pod's resolv.conf"
    if isinstance(value, bool):
        return code(str(value).lower())
    return "" if value is None or value == "" else code(str(value).replace(__version__, "VERSION"))


def _commands(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    """Each command below one, with its whole name. The types are those of typer's own click."""
    below: dict[str, Any] = getattr(command, "commands", {})
    if not below:
        yield name, command
    for each, found in below.items():
        if not found.hidden:
            yield from _commands(f"{name} {each}", found)


def _row(one: Any) -> tuple[str, str, str]:
    value: Any = one.default
    shown = "" if value is None or callable(value) else str(value).replace(__version__, "VERSION")
    shown = shown.lower() if isinstance(value, bool) else shown
    if one.param_type_name == "option":
        return ", ".join(map(code, (*one.opts, *one.secondary_opts))), code(shown), one.help or ""
    return code(one.metavar or one.name.upper()), code(shown), getattr(one, "help", None) or ""


def _first(text: str) -> str:
    return " ".join(text.split("\n\n")[0].split())
