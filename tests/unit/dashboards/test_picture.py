"""Pictures of dashboards: values with units, and no text over another or over its panel."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree

import pytest

from dashboards.all import DASHBOARDS
from dashboards.files import files
from dashboards.picture import SMALL, WIDTH, Series, draw, fit, name
from dashboards.units import shown
from docs_kit.diagrams import FOLDER

SVG = "{http://www.w3.org/2000/svg}"
WIDTHS = {"title": 7.8, "big": 14.5, "head": 10.5, "": 6.2}
"""Pixels of a character, on average, by the kind of text."""
HEIGHT = 9
LABELS = {
    **dict.fromkeys(("node_name", "node"), "worker-12"),
    "reason": "[node_problem] broken-file: job 1234 [slurm_job]",
    "state": "IDLE",
    "job_state": "NODE_FAIL",
    "user_name": "a-user-with-a-long-name",
    "job_name": "a-job-with-a-name-that-is-longer-than-its-column",
    "message_type": "MESSAGE_NODE_REGISTRATION_STATUS",
}


def fetch(expr: str) -> Sequence[Series]:
    """Some curves for any expression, with a gap and a value that is none."""
    count = 1 if expr.startswith(("(", "sum(", "max(", "count(", "hist")) else 7
    size = 3e9 if "bytes" in expr else 5.0
    points = [(1.79e9 + 2 * at, size * abs(math.sin(at / 30))) for at in range(200) if at % 90 < 70]
    points[3] = (points[3][0], math.nan)
    return [Series({**LABELS, "partition": f"p{n}"}, tuple(points)) for n in range(count)]


def pictures() -> list[Any]:
    texts = files()
    drawn = [
        pytest.param(draw(json.loads(texts[f"dashboards/{one.name}.json"]), fetch), id=one.name)
        for one in DASHBOARDS
    ]
    kept = [
        pytest.param(path.read_text(), id=path.stem)
        for path in sorted(FOLDER.glob("dashboard-*.svg"))
    ]
    return [*drawn, *kept]


def boxes(text: str) -> list[tuple[float, float, float, float, str]]:
    """Left, top, right and bottom of each text."""
    found: list[tuple[float, float, float, float, str]] = []
    for one in ElementTree.fromstring(text).iter(f"{SVG}text"):
        words = one.text or ""
        wide = WIDTHS[one.get("class", "")] * len(words)
        x, y = float(one.get("x", 0)), float(one.get("y", 0))
        left = x - wide * {"start": 0, "middle": 0.5, "end": 1}[one.get("text-anchor", "start")]
        found.append((left, y - HEIGHT, left + wide, y, words))
    return found


@pytest.mark.parametrize("text", pictures())
def test_no_text_is_over_another_or_beyond_the_picture(text: str) -> None:
    found = boxes(text)
    for number, (left, top, right, bottom, words) in enumerate(found):
        assert left >= 0, words
        assert right <= WIDTH, words
        for other in found[number + 1 :]:
            apart = right <= other[0] or other[2] <= left or bottom <= other[1] or other[3] <= top
            assert apart, (words, other[4])


@pytest.mark.parametrize("text", pictures())
def test_a_picture_has_colours_for_a_light_and_a_dark_page(text: str) -> None:
    assert "@media (prefers-color-scheme: dark)" in text
    assert not re.search(r"nan|inf\b", text.partition("</style>")[2])


def test_a_dashboard_without_answers_is_drawn_without_curves() -> None:
    text = draw(json.loads(files()["dashboards/jobs.json"]), lambda _: [])
    assert "no data" in text
    assert 'class="line' not in text


@pytest.mark.parametrize(
    ("value", "unit", "words"),
    [
        (0.125, "percentunit", "12.5 %"),
        (1.5 * 2**30, "bytes", "1.5 GiB"),
        (0, "bytes", "0 B"),
        (0.25, "s", "250 ms"),
        (90, "s", "1.5 min"),
        (90 * 86400, "s", "90 d"),
        (0.3, "ops", "0.3/s"),
        (12, "opm", "12/min"),
        (12345, "short", "12.3 k"),
        (math.nan, "short", "none"),
    ],
)
def test_a_value_has_its_unit(value: float, unit: str, words: str) -> None:
    assert shown(value, unit) == words


def test_a_series_is_named_by_its_labels_and_a_long_name_is_cut() -> None:
    assert name("{{node}} of {{partition}}", {"node": "a", "partition": "b"}) == "a of b"
    assert name("__auto", {"node": "a"}) == ""
    assert fit("abcdefghij", 6 * SMALL + 1) == "abcde…"
