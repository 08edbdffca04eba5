"""Slurm's daemons in namespaces of their own on loopback, with a jail: no node, no image.

The root of the daemons and the jail are two overlays of one folder of Debian packages in the cache.
The first process ends when its standard input does; the kernel then ends every process and drops
every mount of it, whatever becomes of the test.
"""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.local.debian import unpacked
from penstock.local.errors import LocalError
from penstock.local.process import Process
from penstock.local.recipes import IMAGES, LATEST, Release

PACKAGES = (
    "bash",
    "coreutils",
    "dash",
    "findutils",
    "gcc",
    "grep",
    "iproute2",
    "libc6-dev",
    "libpam-modules",
    "libslurm-dev",
    "login",
    "make",
    "mount",
    "munge",
    "passwd",
    "procps",
    "python3",
    "sed",
    "slurm-client",
    "slurm-wlm-basic-plugins",
    "slurmctld",
    "slurmd",
    "sudo",
    "util-linux",
)
USERS = {"munge": 101, "slurm": 401, "alice": 2001, "bob": 2002}
NODE = "worker-0"
JAIL = "/mnt/jail"
POD = "chown dac_override fowner fsetid kill setgid setuid setpcap net_bind_service net_raw"
POD_CAPABILITIES = f"{POD} sys_chroot mknod audit_write setfcap sys_admin".split()
"""Those of a pod on containerd with SYS_ADMIN added, as workers of a jail have."""
_SETUP = """
set -e
mount -t tmpfs tmpfs "$2"
cd "$2"
mkdir -p c/upper c/work j/upper j/work root
mount -t overlay -o "lowerdir=$1,upperdir=c/upper,workdir=c/work" overlay root
mkdir -p root/mnt/jail
mount -t overlay -o "lowerdir=$1,upperdir=j/upper,workdir=j/work" overlay root/mnt/jail
mkdir -p root/mnt/jail/mnt root/mnt/jail/opt
mount -t proc proc root/proc
mount -t tmpfs -o mode=755 tmpfs root/dev
for name in full null random tty urandom zero; do
  touch root/dev/$name
  mount --bind /dev/$name root/dev/$name
done
mkdir root/dev/pts root/dev/shm
mount -t devpts -o newinstance,ptmxmode=666,mode=620,gid=5 devpts root/dev/pts
mount -t tmpfs -o mode=1777 tmpfs root/dev/shm
ln -s pts/ptmx root/dev/ptmx
ln -s /proc/self/fd root/dev/fd
mount --rbind /sys root/sys
mount -t tmpfs -o mode=755 tmpfs root/run
mount -t tmpfs -o mode=1777 tmpfs root/tmp
hostname worker-0
cd root
pivot_root . .
umount -l .
exec /usr/bin/python3 -c "$3"
"""
_INIT = """
import signal, subprocess, sys
signal.signal(signal.SIGCHLD, signal.SIG_DFL)
# getaddrinfo with AI_ADDRCONFIG finds nothing while 127.0.0.1 is the only address.
for words in ("link set lo up", "address add 10.99.0.1/32 dev lo"):
    subprocess.run(["/usr/sbin/ip", *words.split()], check=True)
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
print("up", flush=True)
sys.stdin.read()
"""
_COMPLETE = r"""
set -e
cd "$1"
mount -t proc proc proc
mount --rbind /sys sys
mount --rbind /dev dev
mount -t tmpfs -o mode=755 tmpfs run
mkdir -p run/munge etc/slurm var/spool/slurmd /run/munge /var/spool/slurmd /var/log/slurm
mount --bind /run/munge run/munge
mount --bind /tmp tmp
mount --bind /etc/slurm etc/slurm
mount -o remount,bind,ro etc/slurm
mount --bind /var/spool/slurmd var/spool/slurmd
for lib in /usr/lib/*/slurm-wlm; do
  mount --bind "$lib" ".$lib"
  mount -o remount,bind,ro ".$lib"
done
"""
SLURM_CONF = """
ClusterName=jail
SlurmctldHost=worker-0(10.99.0.1)
SlurmUser=slurm
AuthType=auth/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
PrologFlags=Alloc,Contain
LaunchParameters=use_interactive_step
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=1
SlurmdSpoolDir=/var/spool/slurmd
StateSaveLocation=/var/spool/slurmctld
SlurmctldPidFile=/run/slurmctld/pid
SlurmdPidFile=/run/slurmd.pid
SlurmctldLogFile=/var/log/slurm/slurmctld.log
SlurmdLogFile=/var/log/slurm/slurmd.log
SlurmdDebug=verbose
ReturnToService=2
SlurmdParameters=config_overrides
KillWait=5
MailProg=/bin/true
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
NodeName=worker-0 NodeAddr=10.99.0.1 CPUs=8 RealMemory=4000
PartitionName=all Nodes=ALL Default=YES State=UP
"""


@dataclass(frozen=True)
class Done:
    """A command that ended."""

    code: int
    out: str
    err: str


class JailHost:
    """munged, slurmctld and slurmd of one Slurm node, whose jobs enter the jail by chroot.so."""

    def __init__(self, folder: Path, release: Release = LATEST) -> None:
        self._packages = unpacked(
            f"test-slurm-{release.suite}", PACKAGES, suite=release.suite, version="1"
        )
        self._folder = folder
        self._starter: subprocess.Popen[bytes] | None = None
        self._first: Process | None = None
        self._daemons: list[subprocess.Popen[bytes]] = []

    def up(self) -> None:
        """Mount both roots, compile the plug-in, start the daemons, wait until the node is idle."""
        self._folder.mkdir(parents=True, exist_ok=True)
        spaces = ["--pid", "--mount", "--net", "--uts", "--ipc", "--propagation=private"]
        setup = ["sh", "-c", _SETUP, "sh", str(self._packages), str(self._folder), _INIT]
        with (self._folder.parent / "host.log").open("wb") as log:
            self._starter = subprocess.Popen(
                ["unshare", "--fork", *spaces, "--", *setup],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        said = self._starter.stdout
        if said is None or said.readline().strip() != b"up":
            text = (self._folder.parent / "host.log").read_text()
            raise LocalError(f"the host cannot start: {text}")
        shell = Process.of(self._starter.pid)
        children = list(shell.children().values()) if shell is not None else []
        self._first = children[0]
        self._write_files()
        self.check("sh", "-c", _COMPLETE, "sh", JAIL)
        self.build()
        self.start_daemons()

    def down(self) -> None:
        """End the first process, and with it all that it started."""
        if self._first is not None:
            self._first.signal(signal.SIGKILL)
        if self._starter is not None:
            for stream in (self._starter.stdin, self._starter.stdout):
                if stream is not None:
                    stream.close()
            self._starter.wait(20)
        for daemon in self._daemons:
            daemon.wait(20)

    def build(self) -> None:
        """Compile the plug-in with the compiler and the headers of the release."""
        target = "/usr/src/chroot"
        self.check("mkdir", "-p", target)
        for path in sorted((IMAGES / "jail/chroot").iterdir()):
            if path.is_file():
                self.write(f"{target}/{path.name}", path.read_text())
        library = self.check("sh", "-c", "echo /usr/lib/*/slurm-wlm").strip()
        self.check("make", "-B", "-C", target, "CC=gcc", f"OUT={library}")

    def plugstack(self, line: str) -> None:
        """Replace plugstack.conf; it counts from the next step."""
        self.write("/etc/slurm/plugstack.conf", line + "\n", mode="644")

    def start_daemons(self) -> None:
        """munged, slurmctld and slurmd, each as its user and with the capabilities of its pod."""
        self._start("munge", "munged", "-F")
        self._wait("munged answers", "munge", "-n")
        self.start_slurm()

    def start_slurm(
        self,
        capabilities: Sequence[str] = POD_CAPABILITIES,
        options: Sequence[str] = (),
        by: Sequence[str] = (),
    ) -> Path:
        """slurmctld and slurmd, in place of those that run; the log of slurmd.

        slurmd has these capabilities and more options, and is started by a command.
        """
        munged, *former = self._daemons
        if former:
            # slurmd waits ten seconds for a step that ends.
            self.wait_idle()
        self.run("pkill", "-x", "slurmd|slurmctld")
        for daemon in former:
            daemon.wait(20)
        self._daemons = [munged]
        self._start("slurm", "slurmctld", "-D")
        self._wait("slurmctld answers", "scontrol", "ping")
        bounding = ",".join(["-all", *(f"+{name}" for name in capabilities)])
        limits = ("setpriv", f"--bounding-set={bounding}", *by)
        words = (*limits, "/usr/sbin/slurmd", "-D", "-N", NODE, *options)
        log = self._start("root", *words)
        self.wait_idle()
        return log

    def wait_idle(self, seconds: float = 30) -> None:
        """Wait until the node runs nothing and is not drained."""
        self._wait("the node is idle", "sh", "-c", '[ "$(sinfo -hN -o %T)" = idle ]', limit=seconds)

    def run(
        self, *command: str, user: str = "root", stdin: str = "", cwd: str = "/", limit: float = 60
    ) -> Done:
        """Run a command in the container, as one of the users."""
        home = "/root" if user == "root" else f"/home/{user}"
        words = [*self._enter(cwd), "env", "-i", f"HOME={home}", f"USER={user}", "LANG=C.UTF-8"]
        words += ["SHELL=/bin/bash", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", *_as(user), *command]
        try:
            done = subprocess.run(
                words, input=stdin, capture_output=True, text=True, check=False, timeout=limit
            )
        except subprocess.TimeoutExpired as error:
            raise LocalError(
                f"{command} does not end within {limit:g} s: {error.stdout!r}"
            ) from error
        return Done(done.returncode, done.stdout, done.stderr)

    def check(self, *command: str, user: str = "root", stdin: str = "", cwd: str = "/") -> str:
        """What a command printed. Raises LocalError when it fails."""
        done = self.run(*command, user=user, stdin=stdin, cwd=cwd)
        if done.code:
            raise LocalError(f"{command} failed with {done.code}: {done.err or done.out}")
        return done.out

    def write(self, path: str, text: str, *, mode: str = "644", owner: str = "root") -> None:
        """Put a file into the container by rename."""
        script = (
            'cat >"$1.new" && chmod "$2" "$1.new" && chown "$3:$3" "$1.new" && mv "$1.new" "$1"'
        )
        uid = str(USERS.get(owner, 0))
        self.check("sh", "-c", script, "sh", path, mode, uid, stdin=text)

    def spawn(self, *command: str, user: str = "root", cwd: str = "/") -> subprocess.Popen[str]:
        """Start a command in the container; the caller waits for it."""
        home = "/root" if user == "root" else f"/home/{user}"
        words = [*self._enter(cwd), "env", "-i", f"HOME={home}", f"USER={user}"]
        words += ["SHELL=/bin/bash", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", *_as(user), *command]
        pipe = subprocess.PIPE
        return subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, text=True)

    def _write_files(self) -> None:
        for root in ("", JAIL):
            lines = [f"{name}:x:{uid}:{uid}::/home/{name}:/bin/bash" for name, uid in USERS.items()]
            groups = [f"{name}:x:{uid}:" for name, uid in USERS.items()]
            self.write(f"{root}/etc/passwd", "\n".join(["root:x:0:0::/root:/bin/bash", *lines, ""]))
            self.write(f"{root}/etc/group", "\n".join(["root:x:0:", *groups, ""]))
            shadow = [f"{name}:*:19000::::::" for name in ("root", *USERS)]
            self.write(f"{root}/etc/shadow", "\n".join([*shadow, ""]), mode="640")
            self.write(f"{root}/etc/hosts", f"127.0.0.1 localhost\n10.99.0.1 {NODE}\n")
            self.write(f"{root}/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n")
            for name in ("su", "sudo", "other"):
                text = "auth sufficient pam_rootok.so\nauth required pam_permit.so\n"
                text += "account required pam_permit.so\nsession required pam_permit.so\n"
                self.check("mkdir", "-p", f"{root}/etc/pam.d")
                self.write(f"{root}/etc/pam.d/{name}", text)
        script = """
        install -d -o munge -g munge -m 700 /etc/munge /var/lib/munge /var/log/munge
        install -d -o munge -g munge -m 755 /run/munge
        head -c 64 /dev/urandom >/etc/munge/munge.key
        chown munge: /etc/munge/munge.key; chmod 400 /etc/munge/munge.key
        mkdir -p /etc/slurm
        install -d -o slurm -g slurm /var/spool/slurmctld /var/log/slurm /run/slurmctld
        for name in alice bob; do install -d -o $name -g $name /mnt/jail/home/$name; done
        echo container >/etc/where; echo jail >/mnt/jail/etc/where
        for file in /usr/sbin/*-wlm; do ln -sf "$file" "${file%-wlm}"; done
        ln -sf dash /usr/bin/sh; ln -sf dash /mnt/jail/usr/bin/sh
        install -d -m 700 /root /mnt/jail/root
        """
        self.check("sh", "-ec", script)
        self.write("/etc/slurm/slurm.conf", SLURM_CONF)
        self.write("/etc/slurm/cgroup.conf", "CgroupPlugin=disabled\n")
        self.plugstack(f"required chroot.so {JAIL}")

    def _start(self, user: str, *command: str) -> Path:
        """Start a daemon; its output."""
        log = self._folder.parent / f"{command[0]}-{len(self._daemons)}.log"
        with log.open("wb") as output:
            self._daemons.append(
                subprocess.Popen(
                    [*self._enter("/"), *_as(user), *command],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                )
            )
        return log

    def _wait(self, name: str, *command: str, limit: float = 30) -> None:
        deadline = time.monotonic() + limit
        while (done := self.run(*command)).code:
            if time.monotonic() > deadline:
                state = self.run("sinfo", "-hN", "-o", "%T %E").out
                raise LocalError(f"not within {limit:g} s: {name}: {done.err} {state}")
            time.sleep(0.1)

    def _enter(self, cwd: str) -> list[str]:
        if self._first is None:
            raise LocalError("the host does not run")
        target = ["--target", str(self._first.pid), f"--wdns={cwd}"]
        return ["nsenter", "--mount", "--pid", "--net", "--uts", "--ipc", *target, "--"]


def _as(user: str) -> Sequence[str]:
    if user == "root":
        return ()
    uid = USERS[user]
    return ("setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "--")
