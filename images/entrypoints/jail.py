"""What a daemon of a SlurmCluster waits for: a filled jail, its key, and Slurm's configuration."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from supervise import say

JAIL = Path("/mnt/jail")
ETC = JAIL / "etc/slurm"
MARKERS = ("etc/soperator-jail-populated", ".populated")
"""Any of them: the jail is filled. The second one is of older versions."""
MANIFEST = ".penstock-files"
"""Sums of the configuration's files as `sha256sum -- *` prints them; it is written last."""
SOCKET = "/run/munge/munge.socket.2"
SLURM_KEY = Path("/mnt/slurm-key/slurm.key")
"""The key of auth/slurm, in the mount of its Secret."""
SLURM_KEY_COPY = Path("/run/penstock-auth/slurm.key")
"""Slurm rejects a key that belongs to neither root nor its user, or that others can read."""
SLURM_JWKS = SLURM_KEY.with_name("slurm.jwks")
"""All keys that are valid during a rotation. Slurm reads this file where it exists."""
SLURM_JWKS_COPY = SLURM_KEY_COPY.with_name("slurm.jwks")
SLURM_RUN = "/run/slurm"
"""Where slurmd and sackd serve the socket of auth/slurm."""
PAUSE_SECONDS = 0.1
LOG_SECONDS = 10.0
QUIET_SECONDS = 2.0
"""A configuration without a manifest counts as complete when nothing changed for so long."""
DIFFERENT_SECONDS = 30.0
"""One that differs from its manifest is used all the same when nothing changed for so long."""


def has_jail() -> bool:
    """Return whether jobs and sessions have a root other than the container's."""
    return os.environ.get("JAIL_MODE") != "None"


def use_own_root() -> None:
    """Make the folder that /home of the images is a link to."""
    (JAIL / "home").mkdir(mode=0o755, parents=True, exist_ok=True)


def munge_socket() -> Path:
    """Return the socket of munged, as the munge image names it in its environment."""
    return Path(os.environ.get("MUNGE_SOCKET_FILE", SOCKET))


def is_filled(jail: Path) -> bool:
    """Return whether the Job that fills the jail has completed."""
    return any((jail / name).exists() for name in MARKERS)


def is_socket(path: Path) -> bool:
    """Return whether the path is a socket."""
    try:
        return stat.S_ISSOCK(path.stat().st_mode)
    except OSError:
        return False


def matches_manifest(folder: Path) -> bool | None:
    """Return whether all files are those of the manifest; None without a manifest."""
    if not (folder / MANIFEST).exists():
        return None
    # Python's own sums are no part of the minimal one that the images have.
    command = ["sha256sum", "--check", "--status", "--", MANIFEST]
    done = subprocess.run(command, cwd=folder, stderr=subprocess.DEVNULL, check=False)
    return done.returncode == 0


def state(folder: Path) -> Sequence[tuple[str, int, int]]:
    """Return names, inodes and times of the files of a folder."""
    found: list[tuple[str, int, int]] = []
    for path in sorted(folder.iterdir()):
        try:
            status = path.stat()
        except FileNotFoundError:
            continue
        found.append((path.name, status.st_ino, status.st_mtime_ns))
    return found


@dataclass
class Configuration:
    """Decides when the files of a folder are complete: they are renamed into it one by one."""

    folder: Path
    clock: Callable[[], float] = time.monotonic
    _state: Sequence[tuple[str, int, int]] = ()
    _since: float = 0.0

    def is_complete(self) -> bool:
        """Return whether slurm.conf and all files that it goes with are in place."""
        if not (self.folder / "slurm.conf").is_file():
            return False
        if not has_jail():
            # The kubelet puts all files of a ConfigMap into place at once.
            return True
        matches = matches_manifest(self.folder)
        if matches:
            return True
        now, found = self.clock(), state(self.folder)
        if found != self._state:
            self._state, self._since = found, now
        quiet = now - self._since
        if matches is None:
            return quiet >= QUIET_SECONDS
        if quiet >= DIFFERENT_SECONDS:
            say(f"files in {self.folder} differ from {MANIFEST}; starting with them")
            return True
        return False


def wait_for(what: str, is_so: Callable[[], bool]) -> None:
    """Wait without end, and log the reason at intervals."""
    log_at = time.monotonic() + LOG_SECONDS
    while not is_so():
        if time.monotonic() >= log_at:
            say(f"waiting for {what}")
            log_at = time.monotonic() + LOG_SECONDS
        time.sleep(PAUSE_SECONDS)


def wait_until_filled() -> None:
    """Wait for the Job that fills the jail, if there is one."""
    if not has_jail():
        return
    wait_for(f"{JAIL / MARKERS[0]}: the jail is not filled yet", lambda: is_filled(JAIL))


def has_munge() -> bool:
    """Return whether messages are signed with munge, and not by auth/slurm."""
    return os.environ.get("AUTH_TYPE") != "auth/slurm"


def auth_folder() -> str:
    """Return the folder of the socket that clients in the jail need."""
    return str(munge_socket().parent) if has_munge() else SLURM_RUN


def prepare_auth(user: str = "root") -> str:
    """Wait for munged; with auth/slurm give the user copies of the keys, where Slurm finds them.

    Returns the digest of `copy_keys`.
    """
    if has_munge():
        path = munge_socket()
        wait_for(f"munge at {path}", lambda: is_socket(path))
        return ""
    digest = copy_keys(user)
    os.environ["SLURM_SACK_KEY"] = str(SLURM_KEY_COPY)
    os.environ["SLURM_SACK_JWKS"] = str(SLURM_JWKS_COPY)
    return digest


def copy_keys(user: str) -> str:
    """Copy the keys for a user; return the SHA-256 of slurm.jwks, empty where there is none."""
    copy_for(user, SLURM_KEY, SLURM_KEY_COPY)
    if not SLURM_JWKS.exists():
        SLURM_JWKS_COPY.unlink(missing_ok=True)
        return ""
    copy_for(user, SLURM_JWKS, SLURM_JWKS_COPY)
    # Python's own sums are no part of the minimal one that the images have.
    command = ["sha256sum", "--", str(SLURM_JWKS_COPY)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[0]


def follow_keys(
    user: str, digest: str, observe: Callable[[str], None], pause: float = PAUSE_SECONDS * 10
) -> None:
    """Copy the keys again whenever the kubelet has put others into place.

    `digest` is that of the first copy. `observe` is called at intervals with the present one.
    """

    def follow() -> None:
        seen, now = "", digest
        while True:
            time.sleep(pause)
            found = generation(SLURM_KEY.parent)
            if found not in ("", seen):
                try:
                    now = copy_keys(user)
                except (OSError, subprocess.CalledProcessError) as error:
                    # The kubelet removes the former folder a moment after it has put another one.
                    say(f"keys in {SLURM_KEY.parent} cannot be read: {error}")
                    continue
                seen = found
            observe(now)

    if not has_munge():
        threading.Thread(target=follow, daemon=True).start()


def copy_for(user: str, source: Path, target: Path) -> None:
    """Put a key into place by rename, for one user alone."""
    target.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    new = target.with_name(f"{target.name}.new")
    new.unlink(missing_ok=True)
    new.touch(mode=0o400)
    new.write_bytes(source.read_bytes())
    shutil.chown(new, user, user)
    new.replace(target)


def wait_for_configuration() -> None:
    """Wait for the files of Slurm's configuration."""
    configuration = Configuration(ETC)
    wait_for(f"slurm.conf and the files of {MANIFEST} in {ETC}", configuration.is_complete)


def follow_configuration(folder: Path = ETC, pause: float = PAUSE_SECONDS * 10) -> None:
    """Send this process SIGHUP whenever the kubelet has put other files into place.

    slurmctld has each slurmd reconfigure, maybe before the kubelet of its pod has the files. The
    supervisor sends the signal on to slurmd, which reads its files again.
    """
    # Until the supervisor has its handlers, slurmd is not there: it will read the new files.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    seen = generation(folder)

    def follow() -> None:
        nonlocal seen
        while True:
            time.sleep(pause)
            found = generation(folder)
            if found not in ("", seen):
                seen = found
                say(f"files in {folder} changed; slurmd reads them again")
                os.kill(os.getpid(), signal.SIGHUP)

    threading.Thread(target=follow, daemon=True).start()


def generation(folder: Path) -> str:
    """Return the name of the kubelet's folder with the present files; empty without one."""
    try:
        return str((folder / "..data").readlink())
    except OSError:
        return ""
