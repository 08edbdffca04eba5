"""The code that answers a newcomer's questions is where the list of them says."""

from __future__ import annotations

import importlib
import tomllib
from pathlib import Path

LIST = Path(__file__).parents[2] / "structure/questions.toml"


def test_each_question_of_a_newcomer_is_answered_by_code_that_exists() -> None:
    asked = tomllib.loads(LIST.read_text(encoding="utf-8"))["question"]
    assert len(asked) == 24
    for one in asked:
        module, _, name = one["code"].partition(":")
        assert hasattr(importlib.import_module(module), name), one
