"""Programs that are run to their end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support import child

FIXTURE = """
import signal, sys, time
from pathlib import Path
signal.signal(signal.SIGTERM, signal.default_int_handler)
try:
    Path("begun").touch()
    print("begun", flush=True)
    time.sleep(60)
finally:
    time.sleep(1)
    Path("cleaned").touch()
"""
PARENT = f"""
import sys
from support import child
child.run([sys.executable, "-c", {FIXTURE!r}])
print("goes on", flush=True)
"""


def test_the_status_is_the_programs(tmp_path: Path) -> None:
    script = "import os; raise SystemExit(int(os.environ['STATUS']) + os.path.exists('here'))"
    (tmp_path / "here").touch()
    command = [sys.executable, "-c", script]
    assert child.run(command, cwd=tmp_path, env={**os.environ, "STATUS": "3"}) == 4


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGTERM, 128 + signal.SIGTERM), (signal.SIGINT, 130)]
)
def test_one_is_waited_for_after_a_signal_to_end_and_nothing_comes_after_it(
    tmp_path: Path, number: signal.Signals, status: int
) -> None:
    """SIGINT as Ctrl-C sends it, to the whole group, and SIGTERM as `kill` does, to one process."""
    run = subprocess.Popen(
        [sys.executable, "-c", PARENT],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert run.stdout is not None
    assert run.stdout.readline() == b"begun\n"
    if number == signal.SIGINT:
        os.killpg(run.pid, number)
    else:
        run.send_signal(number)
    said, _ = run.communicate(timeout=30)
    assert (tmp_path / "cleaned").exists()
    assert (run.returncode, said) == (status, b"")
