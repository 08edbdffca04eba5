"""The demo's way into a login pod: ssh with a key that is made once."""

import shutil
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from penstock.local.cache import cache_dir
from penstock.local.errors import LocalError
from penstock.local.target import BuiltIn, Target


def ssh_key() -> Path:
    """A private key for the demo's logins, made once."""
    key = cache_dir() / "demo-ssh" / "id_ed25519"
    if not key.exists():
        if shutil.which("ssh-keygen") is None:
            raise LocalError("ssh is not installed: apt-get install openssh-client.")
        key.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "penstock-demo", "-f", str(key)],
            check=True,
        )
    return key


class Ssh:
    """Runs commands in the login pod, over ssh as root or another user."""

    def __init__(self, host: str, port: int, key: Path, user: str = "root") -> None:
        self.command = [
            "ssh",
            "-q",
            "-o",
            "BatchMode=yes",
            "-o",
            "StrictHostKeyChecking=no",
            "-o",
            "UserKnownHostsFile=/dev/null",
            "-o",
            "ConnectTimeout=10",
            "-i",
            str(key),
            "-p",
            str(port),
            f"{user}@{host}",
        ]

    def __call__(self, command: str, stdin: str = "") -> str:
        """Standard output. Raises LocalError with what went to standard error."""
        done = subprocess.run(
            [*self.command, command], input=stdin, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise LocalError(
                f"ssh to the login pod failed ({done.returncode}): "
                f"{done.stderr.strip() or done.stdout.strip() or 'no answer'}"
            )
        return done.stdout


@contextmanager
def login(
    target: Target, key: Path, namespace: str, service: str, user: str = "root"
) -> Generator[Ssh]:
    """A way into the login pods behind a Service.

    On the built-in node by the Service's address, or by its port of the node if it has one; else
    through kubectl.
    """
    if isinstance(target, BuiltIn):
        query = "{.spec.clusterIP} {.spec.ports[0].nodePort}"
        found = target.kubectl(
            "get", "service", service, "-n", namespace, "-o", f"jsonpath={query}"
        ).split()
        if len(found) == 1:
            yield Ssh(found[0], 22, key, user)
        else:
            yield Ssh(target.node.address, int(found[1]), key, user)
        return
    forward = ["port-forward", "-n", namespace, f"service/{service}", ":22", "--address=127.0.0.1"]
    with (
        TemporaryDirectory() as folder,
        (Path(folder) / "errors").open("w+") as errors,
        subprocess.Popen(
            target.command(*forward),
            env=target.env,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as process,
    ):
        try:
            line = process.stdout.readline() if process.stdout else ""
            port = line.rpartition(" -> ")[0].rpartition(":")[2]
            if not port.isdigit():
                errors.seek(0)
                raise LocalError(f"kubectl port-forward failed: {errors.read().strip()}")
            yield Ssh("127.0.0.1", int(port), key, user)
        finally:
            process.terminate()
