"""Entry point of the jail-slurmctld image: slurmctld as slurm, or as PENSTOCK_SLURM_USER.

slurmctld takes its options from SLURMCTLD_OPTIONS and the container's arguments. Arguments that
begin with no option are a command in its place, which gets the same user, once the jail is filled
and the key and the configuration are there: the sidecar `reconfigure`.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import jail
from options import words
from supervise import Program, supervise

USER = os.environ.get("PENSTOCK_SLURM_USER") or "slurm"
"""SlurmUser of slurm.conf."""
SPOOL = Path("/var/spool/slurmctld")
KEY = Path("/mnt/rest-jwt-key/rest_jwt.key")
"""The key of auth/jwt, in the mount of its Secret."""
KEY_COPY = SPOOL / "jwt_hs256.key"
"""Where slurm.conf names it. slurmctld rejects a key of another user."""
RUN = Path("/run/slurmctld")
KEYS = RUN / "penstock-keys"
"""Where the sidecar `reconfigure` finds the digest of the present slurm.jwks. With `start` behind
it slurmctld has read that file at its start; else it must reconfigure."""
DROP = ("setpriv", f"--reuid={USER}", f"--regid={USER}", "--init-groups")


def give_to_slurm(folder: Path) -> None:
    """Give a folder with all in it to slurm: another slurmctld may have run as root."""
    shutil.chown(folder, USER, USER)
    for path, folders, files in os.walk(folder):
        for name in (*folders, *files):
            one = Path(path, name)
            if one.lstat().st_uid != folder.stat().st_uid:
                os.chown(one, folder.stat().st_uid, folder.stat().st_gid, follow_symlinks=False)


def prepare() -> None:
    """Give slurm its folders and the key."""
    for folder in (RUN, Path("/var/log/slurm"), SPOOL):
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        give_to_slurm(folder)
    if KEY.exists():
        jail.copy_for(USER, KEY, KEY_COPY)


def report_keys(text: str) -> None:
    """Write the file for the sidecar by rename; no file without slurm.jwks."""
    if not text:
        KEYS.unlink(missing_ok=True)
        return
    new = KEYS.with_name(f"{KEYS.name}.new")
    new.write_text(f"{text}\n", encoding="utf-8")
    new.chmod(0o644)
    new.replace(KEYS)


def observe_keys(digest: str) -> None:
    """Report other keys than those of the last report."""
    known = KEYS.read_text(encoding="utf-8").split()[:1] if KEYS.exists() else []
    if known != ([digest] if digest else []):
        report_keys(digest)


def main(arguments: list[str]) -> int:
    """Run slurmctld or a command; return the container's exit status."""
    jail.wait_until_filled()
    digest = jail.prepare_auth(USER)
    jail.wait_for_configuration()
    if arguments and not arguments[0].startswith("-"):
        os.execvp(DROP[0], [*DROP, *arguments])
    prepare()
    report_keys(f"{digest} start" if digest else "")
    jail.follow_keys(USER, digest, observe_keys)
    options = words("SLURMCTLD_OPTIONS", arguments)
    argv = ["/usr/sbin/slurmctld", "--systemd", *options]
    return supervise([Program("slurmctld", argv, user=USER)])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
