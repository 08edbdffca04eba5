"""The one reader of checks.json: a list of objects, each a check.

Any mistake rejects the whole file with its place, so no check runs by half of an entry.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar, cast

from check_drain import OnFail, OnOk

ANY = "any"
CONTEXTS = ("prolog", "epilog", "hc_program", ANY, "none")
STATES = (ANY, "drain")
NODE_VARIABLES = (
    "CHECKS_NODE_STATE_FLAGS",
    "CHECKS_NODE_REASON",
    "CHECKS_NODE_COMMENT",
    "CHECKS_NODE_REAL_MEM_BYTES",
)
VARIABLES = (
    "CHECKS_PLATFORM_TAG",
    "CHECKS_PLATFORM_TAGS",
    *NODE_VARIABLES,
    "CHECKS_JOB_ALLOC_MEM_BYTES",
)
"""Facts that a check may ask for by need_env."""
OUTPUT = "slurm_scripts/$worker.$name.$context.out"
E = TypeVar("E", bound=Enum)


class ConfigError(Exception):
    """A configuration that cannot be used: file, place, what was found and what is expected."""


class FieldError(Exception):
    """A value that a field cannot have."""


@dataclass(frozen=True)
class Check:
    """One entry. `command` is a shell command; the other fields are as in the published format."""

    name: str = "noname"
    command: str = "/usr/bin/true"
    platforms: tuple[str, ...] = (ANY,)
    skip_for_cpu_jobs: bool = False
    skip_for_partial_gpu_jobs: bool = False
    contexts: tuple[str, ...] = (ANY,)
    node_states: tuple[str, ...] = (ANY,)
    on_fail: OnFail = OnFail.NONE
    on_ok: OnOk = OnOk.NONE
    reason_base: str = "[node_problem] $name"
    reason_append_details: bool = True
    run_in_jail: bool = False
    log: str = OUTPUT
    need_env: tuple[str, ...] = ()

    @property
    def base(self) -> str:
        """The beginning of its reason."""
        return self.reason_base.replace("$name", self.name).strip()

    @property
    def repairs_only(self) -> bool:
        """Whether it only removes a drain or a comment, and only from a drained node."""
        acts = self.on_fail is OnFail.NONE and self.on_ok is not OnOk.NONE
        return acts and ANY not in self.node_states

    def log_path(self, worker: str, context: str) -> str:
        """Where its output goes, below the folder of outputs."""
        path = self.log.replace("$worker", worker).replace("$name", self.name)
        return path.replace("$context", context)


def read(path: Path) -> tuple[Check, ...]:
    """The checks of a file, in its order. Raises ConfigError."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError(f"{path}: file not found") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: {error}") from None
    try:
        return parse(text)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def parse(text: str) -> tuple[Check, ...]:
    """The checks of a text. Raises ConfigError."""
    try:
        found: object = json.loads(text)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno} column {error.colno}"
        raise ConfigError(f"{place}: no JSON: {error.msg}") from None
    except RecursionError:
        raise ConfigError("nested too deeply") from None
    if not isinstance(found, list):
        raise ConfigError(f"expected a list of checks, found {_kind(found)}")
    entries = enumerate(cast("list[object]", found))
    return tuple(_check(entry, index) for index, entry in entries)


def _check(entry: object, index: int) -> Check:
    if not isinstance(entry, dict):
        raise ConfigError(f"[{index}]: expected an object, found {_kind(entry)}")
    given = cast("dict[str, object]", entry)
    name = given.get("name", Check.name)
    place = f"[{index}] ({name})" if isinstance(name, str) else f"[{index}]"
    fields: dict[str, Any] = {}
    for key, value in given.items():
        if key not in _FIELDS:
            known = ", ".join(_FIELDS)
            raise ConfigError(f"{place}.{key}: unknown key, expected one of {known}")
        try:
            fields[key] = _FIELDS[key](value)
        except FieldError as error:
            raise ConfigError(f"{place}.{key}: {error}") from None
    check = Check(**fields)
    if not check.base:
        marks = check.on_fail is not OnFail.NONE or check.on_ok is not OnOk.NONE
        if marks:
            raise ConfigError(f"{place}.reason_base: it is empty, so its drain has no mark")
    return check


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise FieldError(f"expected a string, found {_kind(value)}")
    return value


def _name(value: object) -> str:
    text = _text(value)
    if not text or "/" in text or not text.isprintable():
        raise FieldError(f"expected a name without a slash, found {text!r}")
    return text


def _log(value: object) -> str:
    text = _text(value)
    if text.startswith("/") or ".." in text.split("/"):
        raise FieldError(f"expected a path below the folder of outputs, found {text!r}")
    return text


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise FieldError(f"expected true or false, found {_kind(value)}")
    return value


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise FieldError(f"expected a list of strings, found {_kind(value)}")
    return tuple(_text(one) for one in cast("list[object]", value))


def _some_of(known: tuple[str, ...]) -> Callable[[object], tuple[str, ...]]:
    def parsed(value: object) -> tuple[str, ...]:
        found = _texts(value)
        for one in found:
            if one not in known:
                raise FieldError(f"found {one!r}, expected some of {', '.join(known)}")
        return found

    return parsed


def _one_of(kind: type[E]) -> Callable[[object], E]:
    def parsed(value: object) -> E:
        text = _text(value)
        try:
            return kind(text)
        except ValueError:
            known = ", ".join(str(one.value) for one in kind)
            raise FieldError(f"found {value!r}, expected one of {known}") from None

    return parsed


def _kind(value: object) -> str:
    names = {"dict": "an object", "list": "a list", "str": "a string", "bool": "true or false"}
    return "null" if value is None else names.get(type(value).__name__, "a number")


_FIELDS: dict[str, Callable[[object], Any]] = {
    "name": _name,
    "command": _text,
    "platforms": _texts,
    "skip_for_cpu_jobs": _flag,
    "skip_for_partial_gpu_jobs": _flag,
    "contexts": _some_of(CONTEXTS),
    "node_states": _some_of(STATES),
    "on_fail": _one_of(OnFail),
    "on_ok": _one_of(OnOk),
    "reason_base": _text,
    "reason_append_details": _flag,
    "run_in_jail": _flag,
    "log": _log,
    "need_env": _some_of(VARIABLES),
}
