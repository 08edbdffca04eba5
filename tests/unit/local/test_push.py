"""Pushing images: what is asked of skopeo, what is skipped, and what a refusal is made of.

A program in skopeo's place keeps a registry in a file; the real ones are in tests/e2e.
"""

from __future__ import annotations

import json
import sys
import tarfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from penstock import __version__
from penstock.api.kubernetes.meta import Json
from penstock.cli.images import app
from penstock.local import image_prefix, oci, registry_errors
from penstock.local.errors import LocalError
from penstock.local.images import ImageArchive
from penstock.local.push import Push
from penstock.local.registry_login import Login, auth_file

PREFIX = image_prefix.parse("registry.example.com/team")
SKOPEO = """#!{python}
import json, pathlib, sys
here = pathlib.Path({folder!r})
with (here / "calls").open("a") as log:
    log.write(" ".join(sys.argv[1:]) + "\\n")
for one in sys.argv:
    if "authfile=" in one:
        (here / "login").write_text(pathlib.Path(one.partition("=")[2]).read_text())
said = here / "refusal"
if said.exists():
    sys.stderr.write(said.read_text())
    sys.exit(1)
name = sys.argv[-1].removeprefix("docker://")
file = here / "registry.json"
there = json.loads(file.read_text()) if file.exists() else {{}}
if sys.argv[1] == "inspect":
    if name not in there:
        sys.stderr.write('time="x" level=fatal msg="Error: reading manifest: manifest unknown"')
        sys.exit(1)
    print(json.dumps({{"config": {{"digest": there[name]}}}}))
else:
    layout = pathlib.Path(sys.argv[-2].split(":")[1])
    image = sys.argv[-2].split(":", 2)[2]
    index = json.loads((layout / "index.json").read_text())["manifests"]
    digest = next(e["digest"] for e in index if image in e["annotations"].values())
    manifest = json.loads((layout / "blobs" / digest.replace(":", "/")).read_text())
    there[name] = manifest["config"]["digest"]
    file.write_text(json.dumps(there))
"""


@pytest.fixture
def skopeo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with what skopeo was asked, and with its registry."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "skopeo"
    program.write_text(SKOPEO.format(python=sys.executable, folder=str(folder)))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("REGISTRY_AUTH_FILE", "DOCKER_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    return folder


def archive(folder: Path, role: str, content: str) -> ImageArchive:
    """An image whose configuration has the digest `content`."""
    exact = f"localhost/penstock/{role}:26.05-0123456789abcdef"
    blobs = folder / role / "layout/blobs/sha256"
    blobs.mkdir(parents=True, exist_ok=True)
    (blobs / "1").write_text(json.dumps({"config": {"digest": content}}))
    entry = {"digest": "sha256:1", "annotations": {oci.REF: exact}}
    index = folder / role / "layout/index.json"
    index.write_text(json.dumps({"manifests": [entry]}))
    path = folder / role / "images.tar"
    oci.archive(blobs.parent.parent, path, {exact: (exact,)})
    return ImageArchive(role, f"localhost/penstock/{role}:26.05", exact, path)


@pytest.fixture
def images(tmp_path: Path) -> list[ImageArchive]:
    return [archive(tmp_path, role, f"sha256:{role}") for role in ("slurmd", "operator")]


def calls(skopeo: Path) -> list[str]:
    file = skopeo / "calls"
    found = file.read_text().splitlines() if file.exists() else []
    file.unlink(missing_ok=True)
    return found


def registry(skopeo: Path) -> Json:
    return json.loads((skopeo / "registry.json").read_text())


def test_what_is_pushed_has_the_prefix_and_the_version(
    skopeo: Path, images: list[ImageArchive]
) -> None:
    done = Push(PREFIX).images(images)
    assert [one.sent for one in done] == [True, True]
    assert registry(skopeo) == {
        f"registry.example.com/team/slurmd:26.05-{__version__}": "sha256:slurmd",
        f"registry.example.com/team/operator:{__version__}": "sha256:operator",
    }
    assert not list((skopeo.parent / "cache/penstock").glob(".push-*"))


def test_a_second_push_sends_nothing(skopeo: Path, images: list[ImageArchive]) -> None:
    Push(PREFIX).images(images[:1])
    calls(skopeo)
    done = Push(PREFIX).images(images)
    assert [one.sent for one in done] == [False, True]
    assert [line.split()[0] for line in calls(skopeo)] == ["inspect", "inspect", "copy"]


def test_a_registry_that_rejects_is_reported_before_anything_is_built(skopeo: Path) -> None:
    Push(PREFIX).reach()  # has nothing yet, which is well
    (skopeo / "refusal").write_text("unauthorized: authentication required")
    with pytest.raises(LocalError, match="rejects the login"):
        Push(PREFIX).reach()
    (skopeo / "refusal").write_text("denied: requested access to the resource is denied")
    Push(PREFIX).reach()  # as Docker Hub says of what is not there


def test_what_a_killed_push_left_is_removed(skopeo: Path, images: list[ImageArchive]) -> None:
    left = skopeo.parent / "cache/penstock/.push-left"
    left.mkdir(parents=True)
    Push(PREFIX).images(images)
    assert not left.exists()


def test_an_image_of_another_content_stays_unless_it_is_to_go(
    skopeo: Path, tmp_path: Path, images: list[ImageArchive]
) -> None:
    Push(PREFIX).images(images)
    other = archive(tmp_path / "other", "slurmd", "sha256:changed")
    with pytest.raises(LocalError, match="with another content: push under another --version"):
        Push(PREFIX).images([other])
    assert Push(PREFIX, overwrite=True).images([other])[0].sent
    assert "sha256:changed" in registry(skopeo).values()


def test_plain_http_only_when_asked_for_or_on_localhost(
    skopeo: Path, images: list[ImageArchive]
) -> None:
    Push(PREFIX).images(images)
    assert not [line for line in calls(skopeo) if "tls-verify" in line]
    Push(PREFIX, version="2", plain_http=True).images(images)
    assert all("tls-verify=false" in line for line in calls(skopeo))
    Push(image_prefix.parse("localhost:5000/a")).images(images)
    assert all("tls-verify=false" in line for line in calls(skopeo))


def test_a_password_is_in_no_command_line(skopeo: Path, images: list[ImageArchive]) -> None:
    Push(PREFIX, login=Login("ann", "s3cr3t")).images(images)
    assert "s3cr3t" not in "\n".join(calls(skopeo))
    found = json.loads((skopeo / "login").read_text())
    assert found == {"auths": {"registry.example.com": {"auth": "YW5uOnMzY3IzdA=="}}}


@pytest.mark.parametrize("variable", ["REGISTRY_AUTH_FILE", "DOCKER_CONFIG"])
def test_logins_are_where_podman_and_docker_keep_them(variable: str, tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text("{}")
    value = file if variable == "REGISTRY_AUTH_FILE" else tmp_path
    with auth_file(Login(), "registry.example.com", {variable: str(value)}) as found:
        assert found == file
    with auth_file(Login(), "registry.example.com", {}) as found:
        assert found is None
    other = tmp_path / "other"
    with (
        pytest.raises(LocalError, match="There is no file"),
        auth_file(Login(authfile=other), "registry.example.com", {variable: str(value)}),
    ):
        pass


def test_the_file_with_a_password_is_the_owners_and_goes() -> None:
    with auth_file(Login("ann", "s3cr3t"), "registry.example.com", {}) as found:
        assert found is not None
        assert found.stat().st_mode & 0o077 == 0
    assert not found.exists()


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (
            "unable to retrieve auth token: invalid username/password: unauthorized: x",
            "rejects the login of ann: `docker login registry.example.com`",
        ),
        ("lookup registry.example.com on 1.1.1.1:53: no such host", "There is no registry"),
        ("dial tcp 10.0.0.1:443: connect: connection refused", "does not answer"),
        ("http: server gave HTTP response to HTTPS client", "serves plain HTTP: add --plain-http"),
        ("x509: certificate signed by unknown authority", "is not trusted"),
        (
            "name unknown: The repository with name 'team/slurmd' does not exist",
            "creates no repositories: create registry.example.com/team/slurmd",
        ),
        ("denied: requested access to the resource is denied", "does not let ann push to"),
        ("write /data: no space left on device", "has no room for"),
        ("tag invalid: The image tag '1' already exists and is immutable", "another --version"),
        ("something else", "cannot be pushed: something else"),
    ],
)
def test_each_rejection_names_the_next_step(said: str, words: str) -> None:
    log = f'time="2026" level=warning msg="retrying"\ntime="2026" level=fatal msg="{said}"'
    name = "registry.example.com/team/slurmd:1"
    told = registry_errors.explain(log, PREFIX, name, "ann")
    assert words in told
    assert told.endswith(said)
    assert "\n" not in told


def test_a_version_that_no_tag_can_have_is_rejected() -> None:
    with pytest.raises(LocalError, match="cannot be part of a tag"):
        Push(PREFIX, version="0.1.0+g1").reach()


def test_what_a_cluster_needs_is_listed_for_a_mirror() -> None:
    done = CliRunner().invoke(app, ["list", "--prefix", "registry.example.com/team/"])
    assert f"registry.example.com/team/operator:{__version__}" in done.output.splitlines()
    assert f"registry.example.com/team/slurmd:26.05-{__version__}" in done.output.splitlines()


def test_images_of_the_jail_are_listed_on_request() -> None:
    command = ["list", "--prefix", "registry.example.com/team"]
    names = {
        f"registry.example.com/team/{role}:26.05-{__version__}"
        for role in ("munge", "populate-jail", "jail-slurmctld", "jail-slurmd", "jail-login")
    }
    assert not names & set(CliRunner().invoke(app, command).output.splitlines())
    assert names <= set(CliRunner().invoke(app, [*command, "--jail"]).output.splitlines())


def test_images_of_the_jail_of_an_older_release_have_its_tag_all_of_them() -> None:
    command = ["list", "--prefix", "registry.example.com/team", "--jail", "--slurm", "24.11"]
    names = set(CliRunner().invoke(app, command).output.split())
    slurm = {name for name in names if f"operator:{__version__}" not in name}
    assert len(names) == len(slurm) + 1
    assert {name.partition(":")[2] for name in slurm} == {f"24.11-{__version__}"}
    assert f"registry.example.com/team/backup:24.11-{__version__}" in slurm


def test_images_of_the_jail_are_built_without_an_engine() -> None:
    done = CliRunner().invoke(app, ["build", "--jail", "--engine", "docker"])
    assert done.exit_code == 2
    assert "--jail goes without --engine" in done.output


def test_a_user_without_a_password_is_asked_for_one() -> None:
    done = CliRunner().invoke(app, ["push", "registry.example.com/a", "--username=ann"])
    assert done.exit_code == 2
    assert "goes with a password" in done.output


def test_a_prefix_that_is_none_is_reported_before_anything_is_built() -> None:
    done = CliRunner().invoke(app, ["push", "https://registry.example.com/a"])
    assert (done.exit_code, "write registry.example.com/a" in done.output) == (1, True)


def test_an_archive_is_unpacked_as_it_was(tmp_path: Path) -> None:
    one = archive(tmp_path, "slurmd", "sha256:a")
    oci.unpack(one.path, tmp_path / "out")
    with tarfile.open(one.path) as tar:
        for member in tar.getmembers():
            assert (tmp_path / "out" / member.name).stat().st_size == member.size
    assert oci.config_digest(one.path, one.exact) == "sha256:a"


def test_a_node_that_does_not_run_is_reported_before_anything_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setenv("PENSTOCK_STATE", str(tmp_path))
    done = CliRunner().invoke(app, ["load", "--name", "other"])
    assert (done.exit_code, "The node other does not run" in done.output) == (1, True)
