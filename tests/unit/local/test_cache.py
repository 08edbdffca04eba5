import threading
from pathlib import Path

import pytest

from penstock.local import cache


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def test_the_border_between_parts_counts() -> None:
    assert cache.digest("ab", "c") != cache.digest("a", "bc")
    assert cache.digest("a", "b") != cache.digest("b", "a")
    assert cache.digest("a") == cache.digest(b"a")


def test_an_entry_is_built_once() -> None:
    built: list[Path] = []

    def build(folder: Path) -> None:
        built.append(folder)
        (folder / "file").write_text("x")

    first = cache.keyed("thing", "1", build)
    assert cache.keyed("thing", "1", build) == first
    assert (first / "file").read_text() == "x"
    assert len(built) == 1
    assert cache.keyed("thing", "2", build) != first


def test_a_failed_build_leaves_nothing() -> None:
    def build(folder: Path) -> None:
        (folder / "half").touch()
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        cache.keyed("thing", "1", build)
    assert list(cache.cache_dir().iterdir()) == []


def test_what_a_killed_builder_left_is_dropped() -> None:
    left = cache.cache_dir() / ".thing-1.abc.new"
    left.mkdir()
    cache.keyed("thing", "1", lambda folder: (folder / "file").touch())
    assert not left.exists()


def test_of_two_builders_the_second_waits_for_the_first() -> None:
    built: list[int] = []
    inside, go = threading.Event(), threading.Event()

    def build(number: int) -> None:
        def fill(_: Path) -> None:
            built.append(number)
            inside.set()
            assert go.wait(10)

        cache.keyed("thing", "1", fill)

    first = threading.Thread(target=build, args=(1,))
    first.start()
    assert inside.wait(10)
    second = threading.Thread(target=build, args=(2,))
    second.start()
    go.set()
    first.join(10)
    second.join(10)
    assert built == [1]
    assert [p.name for p in cache.cache_dir().iterdir()] == ["thing-1"]
