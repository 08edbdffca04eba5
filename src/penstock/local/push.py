"""Pushes the images of a cluster to a registry of the user's, by skopeo.

skopeo speaks to registries with a password and with tokens, finds the logins of docker and podman
with their helpers, and sends no layer that a registry has. What it has of an interrupted push is
there, so that the next one goes on.
"""

import contextlib
import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Collection, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from penstock import __version__
from penstock.local import oci, progress
from penstock.local.cache import cache_dir, locked
from penstock.local.errors import LocalError
from penstock.local.image_prefix import ImagePrefix
from penstock.local.images import ImageArchive
from penstock.local.recipes import OPERATOR, reference, version_tag
from penstock.local.registry_errors import explain, is_absent
from penstock.local.registry_login import Login, auth_file

RETRIES = 2
"""Attempts after the first one, for a connection that breaks."""
_UNPACKED = ".push-"
_VERSION = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
"""Source: OCI Distribution Specification, tags; Slurm's release comes before it."""


@dataclass(frozen=True)
class Pushed:
    """An image in the registry; `sent` is false when it was there already."""

    name: str
    sent: bool


@dataclass(frozen=True)
class Push:
    """Where to push and how. Images of another content are replaced only with `overwrite`."""

    prefix: ImagePrefix
    version: str = __version__
    plain_http: bool = False
    login: Login = field(default_factory=Login)
    overwrite: bool = False

    def name(self, image: ImageArchive) -> str:
        """What the image is called in the registry."""
        tag = version_tag(image.role, self.version, image.release)
        return reference(image.role, tag, str(self.prefix))

    def reach(self) -> None:
        """Ask the registry for one image, so that a wrong login fails before anything is built.

        Raises LocalError in words for a user.
        """
        if not _VERSION.fullmatch(self.version):
            raise LocalError(
                f"--version {self.version!r} cannot be part of a tag: use letters, digits, "
                "dots, dashes and underscores."
            )
        if shutil.which("skopeo") is None:
            raise LocalError("skopeo is not installed: apt-get install skopeo.")
        name = reference(OPERATOR.role, version_tag(OPERATOR.role, self.version), str(self.prefix))
        with auth_file(self.login, self.prefix.host) as authfile:
            self._manifest(name, authfile)

    def images(self, images: Iterable[ImageArchive]) -> list[Pushed]:
        """Push what the registry lacks. Raises LocalError in words for a user."""
        every = list(images)
        with auth_file(self.login, self.prefix.host) as authfile:
            there = [self._is_there(image, authfile) for image in every]
            missing = [image for image, is_there in zip(every, there, strict=True) if not is_there]
            with _layouts({image.path for image in missing}) as folders:
                for image in missing:
                    with progress.step(f"push {self.name(image)}"):
                        self._send(image, folders / image.path.parent.name, authfile)
        return [
            Pushed(self.name(image), not is_there)
            for image, is_there in zip(every, there, strict=True)
        ]

    def _is_there(self, image: ImageArchive, authfile: Path | None) -> bool:
        """Whether the registry has this very image by its name.

        Raises LocalError when it has another one, which nodes may have pulled: they would keep it.
        """
        name = self.name(image)
        manifest = self._manifest(name, authfile)
        if not manifest:
            return False
        if _config(manifest) == oci.config_digest(image.path, image.exact):
            return True
        if self.overwrite:
            return False
        raise LocalError(
            f"{name} is in the registry with another content: push under another --version (then "
            "set global.imageVersion in the charts). --overwrite replaces it, but nodes that "
            "pulled it keep what they have."
        )

    def _manifest(self, name: str, authfile: Path | None) -> str:
        """The manifest of an image in the registry; empty where it has none of that name."""
        done = self._skopeo(["inspect", "--raw"], (f"docker://{name}",), authfile, "")
        if done.returncode == 0:
            return done.stdout
        # Who may not look may still push: Docker Hub denies the look at what is not there.
        if is_absent(done.stderr) or "denied" in done.stderr.lower():
            return ""
        raise LocalError(explain(done.stderr, self.prefix, name, self.login.username))

    def _send(self, image: ImageArchive, layout: Path, authfile: Path | None) -> None:
        name = self.name(image)
        places = (f"oci:{layout}:{image.exact}", f"docker://{name}")
        command = ["copy", "--quiet", f"--retry-times={RETRIES}"]
        done = self._skopeo(command, places, authfile, "dest-")
        if done.returncode:
            raise LocalError(explain(done.stderr, self.prefix, name, self.login.username))

    def _skopeo(
        self, command: list[str], places: Sequence[str], authfile: Path | None, side: str
    ) -> subprocess.CompletedProcess[str]:
        options = [f"--{side}authfile={authfile}"] if authfile else []
        if self.plain_http or self.prefix.loopback:
            options.append(f"--{side}tls-verify=false")
        whole = ["skopeo", *command, *options, *places]
        return subprocess.run(whole, capture_output=True, text=True, check=False)


@contextmanager
def _layouts(archives: Collection[Path]) -> Generator[Path]:
    """Archives as folders, side by side in one: skopeo would unpack an archive for each image."""
    with contextlib.ExitStack() as stack:
        if archives:
            stack.enter_context(locked(cache_dir() / ".push.lock"))
            for left in cache_dir().glob(f"{_UNPACKED}*"):
                shutil.rmtree(left, ignore_errors=True)  # of a push that was killed
        folder = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix=_UNPACKED, dir=cache_dir()))
        )
        for archive in sorted(archives):
            oci.unpack(archive, folder / archive.parent.name)
        yield folder


def _config(manifest: str) -> str:
    """The digest of an image's configuration, which stays when layers are compressed."""
    try:
        return str(json.loads(manifest)["config"]["digest"])
    except (ValueError, KeyError, TypeError):
        return ""
