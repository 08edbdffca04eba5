"""Shell that runs inside the pods, kept in files of its own so that it can be read and tested."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def script(name: str) -> str:
    """The text of `shell/NAME.sh`.

    Kubernetes expands `$(NAME)` in commands when NAME is one of the container's variables, and
    `$$` always: the scripts use neither.
    """
    return (files("penstock.render") / "shell" / f"{name}.sh").read_text(encoding="utf-8")
