"""`make release`: wheel, charts, manifests, images, lists of their parts, and checksums."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from penstock import __version__
from penstock.local import images
from penstock.local.errors import LocalError
from release import charts, image_archives, manifests, python_packages, sbom
from release.checksums import SUMS, write_sums
from release.epoch import commit_time


def main() -> int:
    """Write the folder; 1 with the words of the tool that failed."""
    parser = argparse.ArgumentParser(prog="python -m release", description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("dist"))
    parser.add_argument("--without-images", action="store_true", help="what needs no root")
    options = parser.parse_args()
    folder: Path = options.folder
    try:
        write(folder, with_images=not options.without_images)
    except LocalError as error:
        sys.stderr.write(f"release: {error}\n")
        return 1
    sys.stdout.write((folder / SUMS).read_text(encoding="utf-8"))
    return 0


def write(folder: Path, *, with_images: bool) -> None:
    """All files of the release, in a folder that is emptied first. Raises LocalError."""
    epoch = commit_time()
    shutil.rmtree(folder, ignore_errors=True)
    for part in ("charts", "images", "sbom"):
        (folder / part).mkdir(parents=True)
    wheel = python_packages.build(folder, epoch)
    sbom.write(
        folder / "sbom" / f"{wheel.stem}.cdx.json",
        sbom.Subject("penstock", __version__, wheel.name),
        python_packages.locked(),
        epoch,
    )
    charts.package(folder / "charts", epoch)
    manifests.write(folder)
    if with_images:
        every = {
            **images.build_all(),
            **images.build_jail(),
            **images.build_nfs_server(),
        }
        for archive in every.values():
            made = image_archives.write(folder / "images", archive, epoch)
            sbom.write(
                folder / "sbom" / f"{made.name}.cdx.json",
                sbom.Subject(archive.role, made.tag, made.digest),
                image_archives.packages(made.path),
                epoch,
            )
    write_sums(folder)


if __name__ == "__main__":
    sys.exit(main())
