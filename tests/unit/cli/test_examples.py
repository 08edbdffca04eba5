"""Each command shows in its help how it is called, and each such line is a command that parses."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from penstock.cli.main import app

ROOT: Any = typer.main.get_command(app)


def commands(path: tuple[str, ...], command: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    below: dict[str, Any] = getattr(command, "commands", {})
    if not below:
        yield path, command
    for name, found in below.items():
        yield from commands((*path, name), found)


ALL = dict(commands((), ROOT))


def lines(command: Any) -> list[str]:
    """The command lines of its examples."""
    return [one.strip() for one in (command.epilog or "").split("\n\n")[1:]]


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_help_ends_with_examples_that_parse(path: tuple[str, ...]) -> None:
    command = ALL[path]
    found = lines(command)
    assert found
    done = CliRunner().invoke(app, [*path, "--help"])
    assert done.exit_code == 0
    shown = " ".join(done.output.split())
    for line in found:
        call = line[line.index("penstock ") :].removesuffix(')"')
        program, *words = shlex.split(call)
        assert (program, *words[: len(path)]) == ("penstock", *path)
        assert call.partition(" --")[0] in shown
        assert command.make_context(path[-1], words[len(path) :]).command is command


def test_completion_is_offered_for_bash_zsh_and_fish(monkeypatch: pytest.MonkeyPatch) -> None:
    for shell, words in {"bash": "complete -o", "zsh": "compdef", "fish": "complete --"}.items():
        monkeypatch.setenv("_PENSTOCK_COMPLETE", f"source_{shell}")
        done = CliRunner().invoke(app, [], prog_name="penstock")
        assert words in done.output
