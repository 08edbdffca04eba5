from pathlib import Path

import pytest

from support.check_worker import Worker, new_worker


@pytest.fixture
def worker(tmp_path: Path) -> Worker:
    return new_worker(tmp_path)
