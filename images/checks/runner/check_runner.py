"""Runs the checks of checks.json in one context of slurmd, outside the jail.

slurmd starts it by prolog.sh, epilog.sh or hc_program.sh, which set the context and the paths:

* CHECKS_CONTEXT: prolog, epilog or hc_program;
* CHECKS_CONFIG: the configuration;
* CHECKS_OUTPUTS_BASE_DIR: the folder of outputs, a path in the jail;
* CHECKS_RUNNER_OUTPUT: the file with a line for each check, overwritten by each run.

The exit status is 1 for a failed check in the prolog, else 0. A configuration that cannot be read,
and any failure of the runner itself, is logged and has no other effect.

`--validate FILE` reads a configuration only.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TextIO

from check_config import ANY, Check, ConfigError, read
from check_drain import (
    HEALTH,
    CheckResult,
    Drain,
    NodeChange,
    OnFail,
    OnOk,
    Outcome,
    Undrain,
    next_changes,
)
from check_node import CHANGE_SECONDS, CommandError, WorkerNode, gpu_count
from check_share import VISIBLE_SECONDS, keeps_drain, limit, postponed_words

BUDGET_SECONDS = 6.5
"""For all checks of one run. With a change of the node at its end it takes less than 10 s; a drain
takes a second more, or four where slurmctld is slow."""
SKIP = "skip_checks"
"""The comment of a job that has no checks."""
SKIPPED = "skipped:"
"""How details of a check begin that exits with 0 because it lacks its hardware or command."""
DETAILS = 3
"""The descriptor on which a check writes what it found."""
LARGEST_DETAILS = 4096
AROUND_JOBS = ("prolog", "epilog")
JAIL = "/mnt/jail"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Places:
    """Paths of a run. `root` is that of the container, below which all others are."""

    root: Path = Path("/")
    shell: tuple[str, ...] = ("bash", "-l", "-c")
    container_log: Path = Path("/proc/1/fd/2")
    seconds: float = BUDGET_SECONDS
    visible_seconds: float = VISIBLE_SECONDS

    @property
    def jail(self) -> Path | None:
        """The root of jobs; None where that is the container's own."""
        path = self.root / JAIL.strip("/")
        return path if (path / "usr").is_dir() else None

    @property
    def users_root(self) -> Path:
        """The folder to which paths in the jail belong."""
        return self.jail or self.root

    @property
    def scripts(self) -> str:
        """The folder in which checks run."""
        return "opt/slurm_scripts"

    @property
    def state(self) -> Path:
        """Facts that runs of one pod share."""
        return self.root / "run/penstock/checks"


def open_below(root: Path, path: str) -> TextIO:
    """Open a new text of a path below a root that users may write: no link is followed."""
    fd = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        *folders, name = path.strip("/").split("/")
        for folder in folders:
            with contextlib.suppress(FileExistsError):
                os.mkdir(folder, 0o755, dir_fd=fd)
            below = os.open(
                folder, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd
            )
            os.close(fd)
            fd = below
        flags = os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        file = os.open(name, flags, 0o644, dir_fd=fd)
        os.ftruncate(file, 0)
        return open(file, "w", encoding="utf-8", buffering=1)  # noqa: PTH123 (of a descriptor)
    finally:
        os.close(fd)


class Report:
    """Lines about a run: all in its file, some of them in the container's log as well."""

    def __init__(self, places: Places, path: str, prefix: str) -> None:
        self._places, self._prefix = places, prefix
        self._file: TextIO | None = None
        inside = path.removeprefix(JAIL)
        try:
            self._file = open_below(places.users_root, inside) if inside else None
        except OSError as error:
            self.log(f"{path}: {error.strerror}; this run has no output file")

    def line(self, text: str) -> None:
        """Write a line to the file of this run."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.write(f"{text}\n")

    def log(self, text: str) -> None:
        """Write a line to the container's log as well."""
        self.line(text)
        with contextlib.suppress(OSError):
            fd = os.open(self._places.container_log, os.O_WRONLY | os.O_NONBLOCK | os.O_APPEND)
            try:
                os.write(fd, f"{self._prefix}: {text}\n".encode())
            finally:
                os.close(fd)


class Run:
    """One run of the checks in one context."""

    def __init__(
        self,
        context: str,
        environ: Mapping[str, str],
        places: Places,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.context, self._environ, self._places, self._clock = context, environ, places, clock
        worker = environ.get("SLURMD_NODENAME") or socket.gethostname().partition(".")[0]
        self._node = WorkerNode(worker, places.root, places.state, self._left, environ)
        output = environ.get("CHECKS_RUNNER_OUTPUT", "")
        self._report = Report(places, output, f"checks of {worker} ({context})")
        self._until = clock() + places.seconds

    def _left(self) -> float:
        return self._until - self._clock()

    def run(self) -> int:
        """Run the checks; return the exit status."""
        if self._environ.get("SLURM_JOB_COMMENT") == SKIP:
            self._report.line(f"no checks: the comment of the job is {SKIP}")
            return 0
        try:
            checks = read(Path(self._environ.get("CHECKS_CONFIG", "")))
        except ConfigError as error:
            self._report.log(f"{error}; no check runs until it is fixed")
            return 0
        with contextlib.suppress(OSError):
            self._places.state.mkdir(mode=0o755, parents=True, exist_ok=True)
        results = self._results(checks)
        failed = [one for one in results if one.outcome is Outcome.FAILED]
        is_postponed = False
        try:
            is_postponed = self._change(results)
        except CommandError as error:
            self._report.log(f"the state of the node is unchanged: {error}")
        if is_postponed:
            # slurmctld drains a node whose prolog fails, however many are drained already.
            return 0
        if failed and self.context == "prolog":
            print(f"print node {self._node.name} failed {failed[0].base}: {failed[0].details}")
            return 1
        return 0

    def _results(self, checks: Sequence[Check]) -> list[CheckResult]:
        """Results in their order, until the first failure."""
        found: list[CheckResult] = []
        for check in (
            *(one for one in checks if not one.run_in_jail),
            *(one for one in checks if one.run_in_jail),
        ):
            began = self._clock()
            try:
                skipped = self._why_skipped(check)
                result = self._skipped(check, skipped) if skipped else self._execute(check)
            except CommandError as error:
                result = self._skipped(check, str(error))
            took = f"{self._clock() - began:.2f} s"
            details = f": {result.details}" if result.details else ""
            self._report.line(f"{check.name} {result.outcome.value} ({took}){details}")
            shown = result.details if check.reason_append_details else ""
            found.append(replace(result, details=shown))
            if result.outcome is Outcome.FAILED:
                break
        return found

    def _why_skipped(self, check: Check) -> str:
        """Why a check does not run here; empty when it does. Raises CommandError."""
        if ANY not in check.contexts and self.context not in check.contexts:
            return f"it runs in {', '.join(check.contexts)}"
        around = self.context in AROUND_JOBS
        if check.skip_for_cpu_jobs and around and not self._node.job_gpus:
            return "the job has no GPU"
        if check.repairs_only and self._node.has_no_mark:
            return "no check has drained the node"
        if ANY not in check.platforms and not set(check.platforms) & set(self._node.tags):
            return f"the node is {', '.join(self._node.tags)}, not {', '.join(check.platforms)}"
        if check.skip_for_partial_gpu_jobs and around:
            used, count = self._node.job_gpus, gpu_count(self._node.tags)
            if 0 < used < count:
                return f"the job has {used} of {count} GPUs"
        if ANY not in check.node_states and not self._node.slurm_state.is_drained:
            return "the node is not drained"
        if check.run_in_jail:
            jail = self._places.jail
            if jail is None:
                return "there is no jail"
            if not (jail / self._places.scripts).is_dir():
                return f"the jail has no /{self._places.scripts}"
        return ""

    def _skipped(self, check: Check, why: str) -> CheckResult:
        return CheckResult(check.base, Outcome.SKIPPED, check.on_fail, check.on_ok, why)

    def _execute(self, check: Check) -> CheckResult:
        left = self._left()
        if left <= 0:
            return self._skipped(check, f"the run has taken {self._places.seconds} s")
        environ = {**self._environ, "PATH": self._environ.get("PATH", PATH)}
        environ["CHECKS_JAIL"] = JAIL if self._places.jail is not None else ""
        environ |= {name: self._node.variable(name) for name in check.need_env}
        with self._output(check) as output, _details() as details:
            process = subprocess.Popen(
                [*self._places.shell, details.command(check.command)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=environ,
                pass_fds=(details.file,),
                start_new_session=True,
                # This process has one thread.
                preexec_fn=self._enter(check),
            )
            try:
                status = process.wait(timeout=left)
            except subprocess.TimeoutExpired:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                self._report.log(f"{check.name} had no result when the time of the run was over")
                return self._skipped(check, f"no result in {left:.1f} s")
            words = details.text()
        if status == 0 and words.startswith(SKIPPED):
            return self._skipped(check, words.removeprefix(SKIPPED).strip())
        if status in (126, 127) and not words:
            # The shell's own words for a command that it cannot run: no finding about the node.
            self._report.log(f"{check.name}: the command cannot be run: {check.command}")
            return self._skipped(check, f"the command cannot be run: {check.command}")
        outcome = Outcome.FAILED if status else Outcome.PASSED
        return CheckResult(check.base, outcome, check.on_fail, check.on_ok, words)

    def _enter(self, check: Check) -> Callable[[], None]:
        root = self._places.jail if check.run_in_jail else None
        folder = self._places.scripts

        def enter() -> None:
            if root is not None:
                os.chroot(root)
                os.chdir(f"/{folder}")
                return
            with contextlib.suppress(OSError):
                os.chdir(self._places.root / folder)

        return enter

    @contextlib.contextmanager
    def _output(self, check: Check) -> Generator[int]:
        base = self._environ.get("CHECKS_OUTPUTS_BASE_DIR", "")
        path = f"{base}/{check.log_path(self._node.name, self.context)}"
        try:
            file = open_below(self._places.users_root, path)
        except OSError as error:
            self._report.line(f"{check.name}: {path}: {error.strerror}")
            yield subprocess.DEVNULL
            return
        with file:
            yield file.fileno()

    def _change(self, results: Sequence[CheckResult]) -> bool:
        """Drain, undrain or comment; whether a drain was postponed. Raises CommandError."""
        if not self._may_change(results):
            return False
        is_postponed = False
        with self._locked():
            # Another run, or a user, may have been faster.
            self._node.forget()
            self._node.left = lambda: CHANGE_SECONDS
            state = self._node.slurm_state
            for change in next_changes(state, results, self.context):
                if isinstance(change, Drain) and not state.is_drained:
                    is_postponed = not self._drain(change)
                    continue
                self._node.apply(change)
                self._report.log(_words(change))
        return is_postponed

    def _drain(self, change: Drain) -> bool:
        """Drain the node if checks may drain another one; whether it is drained.

        Raises CommandError. Where slurmctld does not answer after the drain, the node stays
        drained.
        """
        count, out = self._node.out_by_checks()
        most = limit(self._node.share, count)
        if len(out) >= most:
            self._report.log(f"postponed: {change.reason}: {postponed_words(most, len(out))}")
            return False
        self._node.apply(change)
        # All workers may do so at once. In the next second each sees who was first.
        time.sleep(self._places.visible_seconds)
        count, out = self._node.out_by_checks()
        most, own = limit(self._node.share, count), out.get(self._node.name)
        if own is None or own.reason != change.reason or keeps_drain(most, own, out.values()):
            self._report.log(_words(change))
            return True
        self._node.apply(Undrain(change.reason))
        words = postponed_words(most, len(out) - 1)
        self._report.log(f"postponed: {change.reason}: {words}")
        return False

    def _may_change(self, results: Sequence[CheckResult]) -> bool:
        """Whether results could change the node, so that its state is worth a question."""
        failed = any(
            one.outcome is Outcome.FAILED and one.on_fail is not OnFail.NONE for one in results
        )
        passed = any(
            one.outcome is Outcome.PASSED and one.on_ok is not OnOk.NONE for one in results
        )
        return failed or (passed and self.context == HEALTH and not self._node.has_no_mark)

    @contextlib.contextmanager
    def _locked(self) -> Generator[None]:
        """One run at a time changes the node; without a folder for the lock all do."""
        try:
            lock = (self._places.state / "lock").open("w")
        except OSError:
            yield
            return
        with lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


@dataclass(frozen=True)
class Details:
    """A file in memory that a check has as descriptor 3."""

    file: int

    def command(self, text: str) -> str:
        """A command of bash with the file as its descriptor 3."""
        if self.file == DETAILS:
            return text
        return f"exec {DETAILS}>&{self.file} {self.file}>&-\n{text}"

    def text(self) -> str:
        """What the check wrote."""
        return os.pread(self.file, LARGEST_DETAILS, 0).decode(errors="replace").strip()


@contextlib.contextmanager
def _details() -> Generator[Details]:
    file = os.memfd_create("details")
    try:
        yield Details(file)
    finally:
        os.close(file)


def _words(change: NodeChange) -> str:
    if isinstance(change, Undrain):
        return f"undrained the node, which had the reason {change.reason}"
    name = type(change).__name__.lower()
    text = getattr(change, "reason", "") or getattr(change, "text", "")
    return f"{name}: {text}"


def validate(path: str) -> int:
    """Read a configuration and print the first mistake; return the exit status."""
    try:
        checks = read(Path(path))
    except ConfigError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{path}: {len(checks)} checks")
    return 0


def main(arguments: Sequence[str], environ: Mapping[str, str], places: Places) -> int:
    """Run the checks, or validate a configuration; return the exit status."""
    if len(arguments) == 2 and arguments[0] == "--validate":
        return validate(arguments[1])
    context = environ.get("CHECKS_CONTEXT", "")
    try:
        return Run(context, environ, places).run()
    except Exception as error:
        # A fault of the runner must neither fail a job nor drain a node.
        words = f"{type(error).__name__}: {error}"
        Report(places, "", f"checks ({context})").log(f"the runner failed: {words}")
        return 0
