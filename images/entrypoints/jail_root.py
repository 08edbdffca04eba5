"""Sidecar of a worker with a root of its own: keeps its users, and reports what is in it.

JAIL is the root (default /mnt/jail), SHARED_ETC the folder etc of the shared jail (default
/mnt/jail.shared). READY is made once the users are there: slurmd starts then.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from jail_accounts import Accounts, BusyError
from jail_report import Reporter
from supervise import say

JAIL = Path(os.environ.get("JAIL", "/mnt/jail"))
SHARED_ETC = Path(os.environ.get("SHARED_ETC", "/mnt/jail.shared"))
READY = Path(os.environ.get("READY", "/run/jail-root-ready"))
PAUSE_SECONDS = 0.5
REPORT_SECONDS = 5.0


class Log:
    """Errors of the container's log, each once until another one follows."""

    def __init__(self) -> None:
        self._last = ""

    def error(self, words: str) -> None:
        """Log an error; no words mean that it is over."""
        if words != self._last:
            self._last = words
            if words:
                say(words)


def stop(_number: int, _frame: object) -> None:
    """End the container."""
    sys.exit(0)


def main() -> int:
    """Keep and report until the container ends."""
    signal.signal(signal.SIGTERM, stop)
    accounts, reporter = Accounts(JAIL, SHARED_ETC), Reporter(JAIL)
    of_accounts, of_report = Log(), Log()
    report_at = 0.0
    while True:
        try:
            if accounts.keep():
                say("users changed as in the shared jail")
            READY.touch()
            of_accounts.error("")
        except BusyError:
            pass
        except (OSError, UnicodeError) as error:
            of_accounts.error(f"users of the shared jail cannot be kept: {error}")
        if READY.exists() and time.monotonic() >= report_at:
            try:
                if found := reporter.report():
                    print(found, flush=True)
                of_report.error("")
            except (OSError, UnicodeError) as error:
                of_report.error(f"the root cannot be reported: {error}")
            report_at = time.monotonic() + REPORT_SECONDS
        time.sleep(PAUSE_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
