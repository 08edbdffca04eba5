"""The images of Penstock for the built-in node: built once, kept as files, found again.

`build_all` is what the demo and the tests use. An image is built again only when its
Containerfile, a file that this copies, or the image below it has changed.
"""

import re
import shutil
import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from penstock import __version__
from penstock.local import buildah, oci, progress
from penstock.local.cache import cache_dir, digest, keyed
from penstock.local.recipes import (
    BACKUP,
    IMAGES,
    JAIL_RECIPES,
    JAIL_ROLES,
    JAIL_SUITE,
    LATEST,
    NFS_SERVER,
    OPERATOR,
    POPULATE_JAIL,
    PYTHON,
    ROLES,
    SLURM_RECIPES,
    Recipe,
    Release,
    architecture,
    operator_context,
    reference,
    version_tag,
)

KEPT = 3
"""Archives of former states of the source that stay in the cache."""
_FILE = "images.tar"
_EXPORTED = (*ROLES, *JAIL_ROLES, NFS_SERVER.role, BACKUP.role)
_EXACT = re.compile(r"(?P<release>[^-]+)-[0-9a-f]{16}")
"""Tag of an image that identifies its exact content."""


@dataclass(frozen=True)
class ImageArchive:
    """An image as a file. Images that share layers share one file: import each path once.

    `reference` and `versioned` stay the same when the content changes, `exact` does not.
    """

    role: str
    reference: str
    exact: str
    path: Path

    @property
    def release(self) -> str:
        """The release of Slurm that it was built for."""
        return self.exact.rpartition(":")[2].partition("-")[0]

    @property
    def versioned(self) -> str:
        """The name by which the charts look for it where it was loaded into nodes."""
        return reference(self.role, version_tag(self.role, release=self.release))


def build_all(release: Release = LATEST) -> dict[str, ImageArchive]:
    """Every image by role, built where the cache has none of the present source.

    Needs root on Debian. Raises LocalError with the words of the tool that failed.
    """
    return {**build_slurm(release), **build_operator()}


def build_slurm(release: Release = LATEST) -> dict[str, ImageArchive]:
    """Images of slurmctld, slurmd, slurmrestd, slurmdbd, login and the sidecars (`slurm`)."""
    below = buildah.base_key(release.suite)
    keys = {recipe.role: recipe.key(below) for recipe in SLURM_RECIPES}

    def build(folder: Path) -> None:
        with (
            buildah.store(release.suite) as store,
            progress.step(f"build the images of Slurm {release.tag}"),
        ):
            _build_children(store, None, keys, release)
            _export(store, keys, folder, release)

    # An entry of its own, so that neither of two releases takes the other's place in the cache.
    name = "images-slurm" if release is LATEST else f"images-release-{release.tag}"
    return _archives(name, digest(*keys.values()), keys, build, release)


def build_operator() -> dict[str, ImageArchive]:
    """The operator's image, from this checkout's source and locked requirements."""
    with tempfile.TemporaryDirectory(prefix="penstock-operator-") as name:
        context = Path(name)
        operator_context(context, architecture())
        python = {PYTHON.role: PYTHON.key(buildah.BASE_KEY)}
        keys = {OPERATOR.role: OPERATOR.key(buildah.BASE_KEY, context)}

        def build(folder: Path) -> None:
            with buildah.store() as store, progress.step("build the operator's image"):
                _build(store, PYTHON, IMAGES, python)
                _build(store, OPERATOR, context, python | keys)
                _export(store, keys, folder)

        return _archives("images-operator", keys[OPERATOR.role], keys, build)


def build_jail(release: Release = LATEST) -> dict[str, ImageArchive]:
    """Images of a SlurmCluster: munge, populate-jail, and its slurmctld, slurmd and login.

    No other suite of tests and no demo needs them, so `build_all` leaves them out.
    """
    keys = _keys(release)
    exported = {role: keys[role] for role in JAIL_ROLES}
    root = replace(release, suite=JAIL_SUITE)

    def build(folder: Path) -> None:
        title = f"build the images of the jail of Slurm {release.tag}"
        with buildah.store(release.suite) as store, progress.step(title):
            store.import_base(root.suite)
            _build(store, POPULATE_JAIL, IMAGES, keys, root)
            for recipe in JAIL_RECIPES:
                _build_from_below(store, recipe, keys, release)
            _export(store, exported, folder, release)

    name = "images-jail" if release is LATEST else f"images-jail-{release.tag}"
    return _archives(name, digest(*exported.values()), exported, build, release)


def build_nfs_server(release: Release = LATEST) -> dict[str, ImageArchive]:
    """The image of the chart `nfs-server`, which a registry is given with those of the jail."""
    return _without_slurm("images-nfs", NFS_SERVER, "the NFS server", release)


def build_backup(release: Release = LATEST) -> dict[str, ImageArchive]:
    """The image of the Jobs of Backups and Restores."""
    return _without_slurm("images-backup", BACKUP, "backups", release)


def _without_slurm(
    name: str, recipe: Recipe, title: str, release: Release
) -> dict[str, ImageArchive]:
    """An image without Slurm, called as those of a release are: charts look for all by one tag."""
    keys = {recipe.role: recipe.key(buildah.BASE_KEY)}
    called = replace(LATEST, tag=release.tag)

    def build(folder: Path) -> None:
        with buildah.store() as store, progress.step(f"build the image of {title}"):
            _build(store, recipe, IMAGES, keys, called)
            _export(store, keys, folder, called)

    entry = name if release is LATEST else f"{name}-{release.tag}"
    return _archives(entry, keys[recipe.role], keys, build, called)


def key_of(role: str) -> str:
    """A digest of all that decides what is in an image of Slurm or of a SlurmCluster."""
    return _keys()[role]


def stored(store: buildah.Store, role: str) -> str:
    """The name of such an image in the store, built there if need be: to build others on it."""
    keys = _keys()
    if role == POPULATE_JAIL.role:
        root = replace(LATEST, suite=JAIL_SUITE)
        store.import_base(root.suite)
        _build(store, POPULATE_JAIL, IMAGES, keys, root)
    else:
        recipes = {one.role: one for one in (*SLURM_RECIPES, *JAIL_RECIPES)}
        _build_from_below(store, recipes[role], keys)
    return _exact(role, keys)


def _keys(release: Release = LATEST) -> dict[str, str]:
    """Digests of images of Slurm and of a SlurmCluster, by role."""
    below = buildah.base_key(release.suite)
    keys = {one.role: one.key(below) for one in (*SLURM_RECIPES, *JAIL_RECIPES)}
    return keys | {POPULATE_JAIL.role: POPULATE_JAIL.key(buildah.base_key(JAIL_SUITE))}


def _build_children(
    store: buildah.Store, parent: Recipe | None, keys: Mapping[str, str], release: Release
) -> None:
    """Build the Slurm images on `parent` at once, and after each those on it."""

    def grow(recipe: Recipe) -> None:
        _build(store, recipe, IMAGES, keys, release)
        _build_children(store, recipe, keys, release)

    children = [recipe for recipe in SLURM_RECIPES if recipe.parent is parent]
    if children:
        with ThreadPoolExecutor(max_workers=len(children)) as pool:
            list(pool.map(grow, children))


def _build_from_below(
    store: buildah.Store, recipe: Recipe, keys: Mapping[str, str], release: Release = LATEST
) -> None:
    """Build an image and those that it is built from."""
    for one in (recipe.parent, *(other for _, other in recipe.also)):
        if one is not None:
            _build_from_below(store, one, keys, release)
    _build(store, recipe, IMAGES, keys, release)


def _build(
    store: buildah.Store,
    recipe: Recipe,
    context: Path,
    keys: Mapping[str, str],
    release: Release = LATEST,
) -> None:
    """Build one image, unless the store still has it from before."""
    name, parent = _exact(recipe.role, keys, release), recipe.parent
    if not store.has(name):
        below = _exact(parent.role, keys, release) if parent else buildah.base(release.suite)
        others = {argument: _exact(other.role, keys, release) for argument, other in recipe.also}
        store.build(recipe.containerfile, context, name, {recipe.argument: below, **others})


def _export(
    store: buildah.Store, keys: Mapping[str, str], folder: Path, release: Release = LATEST
) -> None:
    layout = folder / "layout"
    exact = {role: _exact(role, keys, release) for role in keys if role in _EXPORTED}
    for name in exact.values():
        store.copy_to(name, layout)
    names = {
        name: (
            reference(role, release.tag),
            reference(role, version_tag(role, release=release.tag)),
            name,
        )
        for role, name in exact.items()
    }
    oci.archive(layout, folder / _FILE, names)
    shutil.rmtree(layout)


def _archives(
    name: str,
    key: str,
    keys: Mapping[str, str],
    build: Callable[[Path], None],
    release: Release = LATEST,
) -> dict[str, ImageArchive]:
    """The archives of cache entry `name`-`key`, made when absent; a few older ones are kept."""
    folder = keyed(name, digest(key, __version__), build)
    folder.touch()
    others = sorted(cache_dir().glob(f"{name}-*"), key=lambda path: path.stat().st_mtime)
    for old in others[:-KEPT]:
        shutil.rmtree(old, ignore_errors=True)
    return {
        role: ImageArchive(
            role, reference(role, release.tag), _exact(role, keys, release), folder / _FILE
        )
        for role in keys
        if role in _EXPORTED
    }


def _exact(role: str, keys: Mapping[str, str], release: Release = LATEST) -> str:
    return reference(role, f"{release.tag}-{keys[role]}")


def names(
    prefix: str, version: str = __version__, release: Release = LATEST, *, jail: bool = False
) -> list[str]:
    """What the images of one version are called in a registry; of a SlurmCluster as well."""
    roles = _EXPORTED if jail else ROLES
    return [reference(role, version_tag(role, version, release.tag), prefix) for role in roles]


def built() -> list[ImageArchive]:
    """The archives that the cache has, newest first, whatever state of the source made them."""
    names = ("slurm", "jail", "nfs", "backup", "release", "operator")
    folders = [folder for name in names for folder in cache_dir().glob(f"images-{name}-*")]
    found: list[ImageArchive] = []
    for folder in sorted(folders, key=lambda path: path.stat().st_mtime, reverse=True):
        for exact in oci.names(folder / _FILE):
            role, _, tag = exact.rpartition("/")[2].partition(":")
            message = _EXACT.fullmatch(tag)
            if message and role in _EXPORTED:
                name = reference(role, message["release"])
                found.append(ImageArchive(role, name, exact, folder / _FILE))
    return found
