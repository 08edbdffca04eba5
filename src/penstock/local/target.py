"""The cluster that a demo runs on: the built-in node, a kind cluster, or a kubectl context."""

import os
import shutil
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from penstock import __version__
from penstock.local import buildah, engines, image_prefix, images, metrics_server, parts
from penstock.local.components import Size
from penstock.local.errors import LocalError
from penstock.local.node import DEFAULT_NAME, Node
from penstock.local.programs import METRICS_SERVER_PROGRAM
from penstock.local.progress import step
from penstock.local.push import Push
from penstock.local.recipes import LATEST, LOCAL, ROLES, Release, reference, version_tag

KIND_CLUSTER = "penstock"


@dataclass(frozen=True)
class Images:
    """What pods call the images: Slurm's with `{role}` for the role, and the operator's.

    The operator's name changes with its source where that is possible, so that a changed one is
    rolled out.
    """

    slurm: str
    operator: str


def _fixed(registry: str | None = None) -> Images:
    names = (
        reference(role, version_tag(role), registry or LOCAL) for role in ("{role}", "operator")
    )
    return Images(*names)


class Target(ABC):
    """One cluster, and how images get there. Methods raise LocalError in words for a user."""

    title: str
    arguments: tuple[str, ...] = ()
    """Arguments that make kubectl find the cluster."""

    @abstractmethod
    def up(self) -> None:
        """Make sure that the cluster is there."""

    @abstractmethod
    def load(self) -> Images:
        """Give it the images."""

    def load_jail(self) -> str:
        """Give it the images of a SlurmCluster; returns the prefix of their names."""
        raise LocalError(
            f"The images of a SlurmCluster cannot be given to {self.title}: "
            "push them to a registry by penstock images push --jail."
        )

    def running(self) -> bool:
        """Whether the cluster is there."""
        return True

    @abstractmethod
    def down(self) -> bool:
        """Remove the cluster if it is the demo's own; returns whether it was."""

    @property
    def env(self) -> Mapping[str, str]:
        """Environment in which `kubectl` reaches the cluster."""
        return os.environ

    def command(self, *arguments: str) -> list[str]:
        """A kubectl command for this cluster."""
        kubectl = shutil.which("kubectl", path=self.env.get("PATH"))
        if kubectl is None:
            raise LocalError("kubectl is not installed, and a cluster of yours needs it.")
        return [kubectl, *self.arguments, *arguments]

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """Standard output of kubectl. Raises LocalError with its error output."""
        done = subprocess.run(
            self.command(*arguments),
            input=stdin,
            env=self.env,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise LocalError(f"kubectl {' '.join(arguments)} failed: {done.stderr.strip()}")
        return done.stdout

    def has(self, *arguments: str) -> bool:
        """Whether `kubectl get` finds the object."""
        return bool(self.kubectl("get", *arguments, "--ignore-not-found", "-o", "name").strip())


class BuiltIn(Target):
    """The built-in node of this machine, and images of one release of Slurm."""

    def __init__(self, name: str = DEFAULT_NAME, release: Release = LATEST) -> None:
        self.node = Node(name)
        self._release = release
        self.title = f"the built-in node {name}"

    @property
    def env(self) -> Mapping[str, str]:
        """The node's own kubectl and kubeconfig."""
        return self.node.env

    def up(self) -> None:
        """Compile and build what is missing, and start Kubernetes with what `kubectl top` needs."""
        parts.prepare((Size.NODE,), also=(METRICS_SERVER_PROGRAM,))
        self.node.up()
        metrics_server.add(self.node)

    def load(self) -> Images:
        """Build the images and import what the node does not have yet."""
        built = images.build_all(self._release)
        self._import(built.values())
        return Images(reference("{role}", self._release.tag), built["operator"].exact)

    def load_jail(self) -> str:
        """Build the images of a SlurmCluster and import what the node does not have yet."""
        self._import(images.build_jail(self._release).values(), "importing the jail's images")
        return LOCAL

    def running(self) -> bool:
        """Whether the node is up."""
        return self.node.status().state == "ready"

    def _import(
        self, built: Iterable[images.ImageArchive], title: str = "importing images"
    ) -> None:
        there = self.node.images()
        missing = {
            image.path
            for image in built
            if image.exact not in there or there[image.exact] != there.get(image.versioned)
        }
        if missing:
            with step(title):
                for path in sorted(missing):
                    self.node.import_image(path)

    def down(self) -> bool:
        """Take the node down, and what a killed build of images left."""
        self.node.down()
        buildah.release_abandoned()
        return True


class Kind(Target):
    """A kind cluster of the demo's own, where docker and kind are there."""

    title = f"the kind cluster {KIND_CLUSTER}"
    arguments = ("--context", f"kind-{KIND_CLUSTER}")

    @staticmethod
    def usable() -> bool:
        """Whether docker answers and kind is installed."""
        if shutil.which("kind") is None or shutil.which("docker") is None:
            return False
        return subprocess.run(["docker", "info"], capture_output=True, check=False).returncode == 0

    def up(self) -> None:
        """Create the cluster if there is none of this name."""
        if KIND_CLUSTER not in _run("kind", "get", "clusters").split():
            with step(f"creating {self.title}"):
                _run("kind", "create", "cluster", "--name", KIND_CLUSTER)

    def load(self) -> Images:
        """Build with docker and load into kind's node."""
        engines.build("docker", engines.BASE, None, KIND_CLUSTER)
        return _fixed()

    def down(self) -> bool:
        """Delete the cluster."""
        if KIND_CLUSTER in _run("kind", "get", "clusters").split():
            _run("kind", "delete", "cluster", "--name", KIND_CLUSTER)
        return True


class Context(Target):
    """A cluster of the user's, by the name of its context.

    Images go to `registry` when one is given, into a kind cluster when the context is one, and
    must be there already otherwise.
    """

    def __init__(self, context: str, registry: str | None = None) -> None:
        self.title = f"context {context}"
        self.arguments = ("--context", context)
        self._context = context
        self._registry = registry

    def up(self) -> None:
        """Ask the cluster for its version."""
        self.kubectl("version")

    def load(self) -> Images:
        """Build and push, or load into kind; else print which images the cluster needs."""
        if self._registry:
            return self._push(self._registry)
        if self._context.startswith("kind-") and Kind.usable():
            engines.build("docker", engines.BASE, None, self._context.removeprefix("kind-"))
        else:
            with step(f"taking {', '.join(ROLES)} images as present in {self.title}"):
                pass
        return _fixed()

    def load_jail(self) -> str:
        """Build and push, if a registry is given; else the cluster must have them."""
        if not self._registry:
            return LOCAL
        prefix = image_prefix.parse(self._registry)
        Push(prefix, overwrite=True).images(images.build_jail().values())
        return str(prefix)

    def _push(self, registry: str) -> Images:
        """Build and push: as for the built-in node where that can be, else by an engine."""
        prefix = image_prefix.parse(registry)
        if not buildah.usable():
            engine = engines.installed()
            if engine is None:
                raise LocalError(f"Install one of {', '.join(engines.ENGINES)} to build images.")
            engines.build(engine, engines.BASE, str(prefix), None)
            return _fixed(str(prefix))
        built = images.build_all()
        # Named by its content, so that a changed operator is rolled out; Slurm's by the version.
        content = built["operator"].exact.rpartition("-")[2]
        of_operator = Push(prefix, f"{__version__}-{content}")
        of_operator.images([built["operator"]])
        Push(prefix, overwrite=True).images(
            image for role, image in built.items() if role != "operator"
        )
        return Images(_fixed(str(prefix)).slurm, of_operator.name(built["operator"]))

    def down(self) -> bool:
        """Leave the cluster; it is the user's."""
        return False


def choose(context: str | None, registry: str | None = None) -> Target:
    """The user's context, else kind where docker and kind are, else the built-in node."""
    if context:
        return Context(context, registry)
    return Kind() if Kind.usable() else BuiltIn()


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise LocalError(f"{' '.join(command)} failed: {done.stderr.strip()}")
    return done.stdout
