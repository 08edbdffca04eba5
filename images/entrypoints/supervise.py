"""Process 1 of a Slurm container: starts its daemons, follows them, and ends when they end.

slurmctld, slurmd and sackd reconfigure by starting a new process and leaving the old one, so a
container whose process 1 is the daemon itself would die at its first `scontrol reconfigure`.
Started with `--systemd` they announce the new process through NOTIFY_SOCKET (`MAINPID=`, see
sd_notify(3)); this supervisor listens there in systemd's place. Its other tasks are those of any
process 1: hand signals on, and reap orphans. With a folder for it, it also keeps what each daemon
says (`journal`).
"""

from __future__ import annotations

import contextlib
import os
import pwd
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from journal import Edit, Voice, as_it_is

STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)
FORWARDED = (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
LONGEST_PAUSE = 30.0
HEALTHY_SECONDS = 60.0


def never() -> bool:
    """Answer for a daemon whose end is the container's end."""
    return False


def always() -> bool:
    """Answer for a helper that is started again whenever it ends."""
    return True


def nothing() -> None:
    """Do nothing about a daemon that has reconfigured."""


@dataclass(frozen=True)
class Program:
    """One daemon of the container.

    `restart` is asked when it has ended by itself: true starts it again (after a pause that
    doubles up to 30 s), false ends the container with the daemon's exit status. `user` is taken
    on only when the supervisor is root. `edit` says what is shown of its lines where they are kept.
    `is_signalled` is whether SIGHUP and the signals of users are sent on to it; None for a daemon
    that is not `always` started again. `moved` is called when another process has become its main
    one, as after a reconfigure.
    """

    name: str
    argv: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    user: str | None = None
    restart: Callable[[], bool] = never
    edit: Edit = as_it_is
    is_signalled: bool | None = None
    moved: Callable[[], None] = nothing


def say(text: str) -> None:
    """Write one line to the container's log."""
    print(f"penstock: {text}", file=sys.stderr, flush=True)


class Daemon:
    """A program with the process that is its main one now."""

    def __init__(self, program: Program, folder: Path, journal: Path | None) -> None:
        self.program = program
        self.voice = Voice(program.name, journal, program.edit) if journal else None
        self.pid: int | None = None
        self.pidfd = -1
        self.status = 0
        self.started_at = 0.0
        self.due_at: float | None = None
        self.pause = 0.0
        self.account = pwd.getpwnam(program.user) if program.user and os.geteuid() == 0 else None
        self.notify_path = folder / f"{program.name}.notify"
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self.notify.bind(str(self.notify_path))
        if self.account:
            os.chown(self.notify_path, self.account.pw_uid, self.account.pw_gid)
        self._popen: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the program and make it the main process."""
        account = self.account
        env = {**os.environ, **self.program.env, "NOTIFY_SOCKET": str(self.notify_path)}
        if account:
            env |= {"HOME": account.pw_dir, "USER": account.pw_name, "LOGNAME": account.pw_name}
        self.due_at, self.started_at = None, time.monotonic()
        # A Popen reaps its process when it is polled or collected, which is the supervisor's task:
        # it is kept, and a former one believes that it has done so.
        if self._popen:
            self._popen.returncode = self.status
        said = self.voice.write if self.voice else None
        self._popen = subprocess.Popen(
            list(self.program.argv),
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            user=account.pw_uid if account else None,
            group=account.pw_gid if account else None,
            extra_groups=os.getgrouplist(account.pw_name, account.pw_gid) if account else None,
        )
        self.follow(self._popen.pid)

    def follow(self, pid: int) -> None:
        """Take PID as the main process. It need not be a child: a pidfd tells its end too."""
        self.forget()
        self.pidfd = os.pidfd_open(pid)
        self.pid = pid

    def forget(self) -> None:
        """Stop watching the main process."""
        if self.pidfd >= 0:
            os.close(self.pidfd)
        self.pid, self.pidfd = None, -1

    def announced(self) -> list[int]:
        """Process ids that MAINPID messages name, oldest first."""
        pids: list[int] = []
        with contextlib.suppress(BlockingIOError):
            while True:
                for line in self.notify.recv(4096).decode(errors="replace").splitlines():
                    key, _, value = line.partition("=")
                    if key == "MAINPID" and value.isdecimal():
                        pids.append(int(value))
        return pids

    def hand_on(self) -> None:
        """Have what it said shown and kept."""
        if self.voice:
            self.voice.hand_on(self.pid or 0)

    def send(self, number: int) -> None:
        """Send a signal to the main process, if there is one."""
        if self.pidfd >= 0:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self.pidfd, number)


class Supervisor:
    """Runs daemons until one that must not end has ended, or a stop was asked for."""

    def __init__(
        self,
        programs: Sequence[Program],
        stop_seconds: float,
        pause: float,
        journal: Path | None,
    ) -> None:
        # /tmp, or whatever TMPDIR names, where the root is read-only and /run is not ours.
        parent = "/run" if os.access("/run", os.W_OK) else None
        self.folder = Path(tempfile.mkdtemp(prefix="penstock-", dir=parent))
        self.folder.chmod(0o711)
        self.daemons = [Daemon(program, self.folder, journal) for program in programs]
        self.statuses: dict[int, int] = {}
        self.stop_seconds, self.first_pause = stop_seconds, pause
        self.stopping = False
        self.kill_at: float | None = None
        self.verdict = 0

    def run(self) -> int:
        """Return the exit status of the container."""
        woken, wake = socket.socketpair()
        for end in (woken, wake):
            end.setblocking(False)
        signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, *STOPPING, *FORWARDED):
            signal.signal(number, woken_by)
        try:
            for daemon in self.daemons:
                self.start(daemon)
            while any(daemon.pid or daemon.due_at is not None for daemon in self.daemons):
                self.step(woken)
        finally:
            # Its socket ends with this function: a later signal would end the log with an error.
            signal.set_wakeup_fd(-1)
            for daemon in self.daemons:
                if daemon.voice:
                    daemon.voice.finish(daemon.pid or 0)
            shutil.rmtree(self.folder, ignore_errors=True)
        return self.verdict

    def step(self, woken: socket.socket) -> None:
        """Handle whatever happens next: a signal, a message, an end, a moment that was set."""
        fds = [woken.fileno(), *(daemon.notify.fileno() for daemon in self.daemons)]
        fds += [daemon.voice.read for daemon in self.daemons if daemon.voice]
        ready = wait_for([*fds, *(d.pidfd for d in self.daemons if d.pid)], self.moments())
        if woken.fileno() in ready:
            self.signalled(woken.recv(4096))
        for daemon in self.daemons:
            daemon.hand_on()
        # Messages first: a new process announces itself before the old one leaves.
        for daemon in self.daemons:
            for pid in daemon.announced():
                self.moved(daemon, pid)
        # One that ends after this has a status only after the next reap.
        leaving = [d for d in self.daemons if d.pid and wait_for([d.pidfd], [time.monotonic()])]
        self.reap()
        for daemon in leaving:
            self.ended(daemon)
        now = time.monotonic()
        for daemon in self.daemons:
            if daemon.due_at is not None and now >= daemon.due_at:
                daemon.due_at = None
                self.decide(daemon, start=True)
        if self.kill_at is not None and now >= self.kill_at:
            self.kill_at = None
            for daemon in self.daemons:
                daemon.send(signal.SIGKILL)

    def moments(self) -> list[float]:
        """Return the times at which something must be done even if nothing happens."""
        times = [daemon.due_at for daemon in self.daemons]
        return [moment for moment in (*times, self.kill_at) if moment is not None]

    def signalled(self, numbers: bytes) -> None:
        """Act on the signals that this process was sent."""
        for number in numbers:
            if number in STOPPING:
                self.stop()
            elif number in FORWARDED:
                for daemon in self.daemons:
                    given = daemon.program.is_signalled
                    if daemon.program.restart is not always if given is None else given:
                        daemon.send(number)

    def start(self, daemon: Daemon) -> None:
        """Start a daemon; one that cannot be started counts as ended with status 127."""
        try:
            daemon.start()
        except OSError as why:
            say(f"{daemon.program.name} could not be started: {why}")
            daemon.status = 127
            self.decide(daemon)

    def moved(self, daemon: Daemon, pid: int) -> None:
        """Follow a daemon that has announced its new main process."""
        if pid != daemon.pid:
            with contextlib.suppress(ProcessLookupError):
                daemon.follow(pid)
                daemon.program.moved()

    def reap(self) -> None:
        """Collect every child that has ended, ours or an orphan."""
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                if any(pid == daemon.pid for daemon in self.daemons):
                    self.statuses[pid] = os.waitstatus_to_exitcode(status)

    def ended(self, daemon: Daemon) -> None:
        """Record a daemon's end and decide what follows from it."""
        # The status of a process that is not our child is not ours to know: a failure.
        code = self.statuses.pop(daemon.pid or 0, 1)
        daemon.status = code if code >= 0 else 128 - code
        # Its last words come before those about its end.
        daemon.hand_on()
        daemon.forget()
        if not self.stopping:
            how = f"ended with status {code}" if code >= 0 else f"was killed by signal {-code}"
            say(f"{daemon.program.name} {how}")
            self.decide(daemon)

    def decide(self, daemon: Daemon, *, start: bool = False) -> None:
        """Have an ended daemon started again (now, if `start`), or end the container."""
        if not daemon.program.restart():
            self.verdict = daemon.status
            self.kill_at = time.monotonic() + self.stop_seconds
            self.stop()
        elif start:
            self.start(daemon)
        else:
            if not daemon.pause or time.monotonic() - daemon.started_at > HEALTHY_SECONDS:
                daemon.pause = self.first_pause
            daemon.due_at = time.monotonic() + daemon.pause
            daemon.pause = min(2 * daemon.pause, LONGEST_PAUSE)

    def stop(self) -> None:
        """Ask every daemon to end, and start none again."""
        self.stopping = True
        for daemon in self.daemons:
            daemon.due_at = None
            daemon.send(signal.SIGTERM)


def woken_by(_number: int, _frame: FrameType | None) -> None:
    """Let a signal through to the wakeup descriptor instead of its default action."""


def wait_for(fds: Sequence[int], moments: Sequence[float]) -> set[int]:
    """Return the descriptors that are readable, at the latest at the first of the moments.

    A pidfd is readable when its process has ended.
    """
    poll = select.poll()
    for fd in fds:
        poll.register(fd, select.POLLIN)
    pause = max(0.0, min(moments) - time.monotonic()) * 1000 if moments else None
    return {fd for fd, _ in poll.poll(pause)}


def supervise(
    programs: Sequence[Program],
    stop_seconds: float = 5.0,
    pause: float = 1.0,
    journal: Path | None = None,
) -> int:
    """Run programs as process 1 of a container does; return the container's exit status.

    When a daemon has failed, the others have `stop_seconds` to end before they are killed.
    `pause` is the time in seconds before a first restart. `journal` is the folder in which what
    the daemons say is kept for `journalctl`; without it they write to the container's log.
    """
    return Supervisor(programs, stop_seconds, pause, journal).run()
