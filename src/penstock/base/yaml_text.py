"""YAML of our own texts, by libyaml where PyYAML has it: a tenth of the time.

Not for texts of strangers without bounds: the parser in C overflows its stack at some thousand
levels.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import yaml

LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def document(text: str) -> Any:
    """The first document of a text, None without one. Raises yaml.YAMLError."""
    return next(iter(documents(text)), None)


def documents(text: str) -> list[Any]:
    """All documents of a text, empty ones as None. Raises yaml.YAMLError."""
    return list(cast("Iterable[Any]", yaml.load_all(text, Loader=LOADER)))


def dumped(values: Iterable[Any]) -> str:
    """The text of these documents."""
    return yaml.dump_all(values, Dumper=_DUMPER)
