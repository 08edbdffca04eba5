"""Scripts that RUN steps of Containerfiles mount: buildah does not see that they have changed."""

from __future__ import annotations

from pathlib import Path

from penstock.local.recipes import IMAGES, mounted

STEP = "FROM x\nRUN --mount=type=bind,source={script},target=/s \\\n    sh /s\n"


def test_each_script_that_any_image_mounts_counts_once(tmp_path: Path) -> None:
    for role, script in (("one", "install"), ("two", "jail/set"), ("three", "install")):
        (tmp_path / role).mkdir()
        (tmp_path / role / "Containerfile").write_text(STEP.format(script=script))
    (tmp_path / "jail").mkdir()
    (tmp_path / "install").write_text("a")
    (tmp_path / "jail/set").write_text("b")
    assert mounted(tmp_path) == [b"a", b"b"]


def test_the_scripts_of_our_images_are_among_them() -> None:
    found = mounted()
    assert (IMAGES / "install").read_bytes() in found
    assert (IMAGES / "jail/configure").read_bytes() in found
