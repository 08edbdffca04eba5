"""The pictures in the repository are those that docs_kit.diagrams draws."""

from __future__ import annotations

from xml.etree import ElementTree

from docs_kit.blocks import ROOT
from docs_kit.diagrams import FOLDER, PICTURES, draw


def test_each_picture_is_drawn_and_used() -> None:
    drawn = {f"{name}.svg": draw(one) for name, one in PICTURES.items()}
    there = {path.name: path.read_text() for path in FOLDER.glob("*.svg")}
    # A test on a real cluster draws those of dashboards.
    others = {name for name in there if name.startswith("dashboard-")}
    assert {name: text for name, text in there.items() if name not in others} == drawn
    pages = "".join(path.read_text() for path in (ROOT / "docs").rglob("*.md"))
    for name in there:
        assert f"pictures/{name})" in pages, f"{name} is on no page"


def test_no_text_is_wider_than_its_box() -> None:
    for name, picture in PICTURES.items():
        ElementTree.fromstring(draw(picture))
        for box in picture.boxes.values():
            for number, line in enumerate(box.text.splitlines()):
                width = len(line) * (6.9 if number else 8.2)
                assert width < box.w + 14, (name, line, width, box.w)
