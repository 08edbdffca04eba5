"""What is a registry with a path, and what is said of what is none."""

import pytest

from penstock.local import image_prefix
from penstock.local.errors import LocalError


@pytest.mark.parametrize(
    ("text", "host", "path"),
    [
        ("registry.example.com/team/penstock", "registry.example.com", "team/penstock"),
        ("registry.example.com:5000/a/", "registry.example.com:5000", "a"),
        ("localhost/penstock", "localhost", "penstock"),
        ("127.0.0.1:5000/a", "127.0.0.1:5000", "a"),
        ("[::1]:5000/a", "[::1]:5000", "a"),
        ("123456789012.dkr.ecr.eu-west-1.amazonaws.com", "", ""),
        ("ghcr.io/some-body/my_images/v1.2", "ghcr.io", "some-body/my_images/v1.2"),
    ],
)
def test_a_registry_with_a_path_or_without(text: str, host: str, path: str) -> None:
    found = image_prefix.parse(text)
    assert (found.host, found.path) == (host or text, path)
    assert str(found) == text.rstrip("/")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("https://registry.example.com/a", "write registry.example.com/a"),
        ("registry.example.com/Team", "no capitals: write registry.example.com/team"),
        ("registry.example.com/a:1.0", "has a tag"),
        ("registry.example.com/a@sha256:00", "has a digest"),
        ("team/penstock", "Docker Hub would be taken: write docker.io/team/penstock"),
        ("registry.example.com//a", "is not a registry with a path"),
        ("registry.example.com/a b", "is not a registry with a path"),
        ("registry.example.com/-a", "is not a registry with a path"),
        ("", "is not a registry with a path"),
        ("/", "is not a registry with a path"),
    ],
)
def test_what_is_no_prefix_is_reported_with_one_that_is(text: str, words: str) -> None:
    with pytest.raises(LocalError) as refused:
        image_prefix.parse(text)
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("text", "loopback"),
    [
        ("localhost/a", True),
        ("localhost:5000/a", True),
        ("127.0.0.1/a", True),
        ("127.1.2.3:5000/a", True),
        ("[::1]:5000/a", True),
        ("registry.example.com:5000/a", False),
        ("10.0.0.1/a", False),
        ("10.0.0.1:80/a", False),
        ("localhost.example.com/a", False),
    ],
)
def test_only_localhost_may_go_without_tls_unasked(text: str, loopback: bool) -> None:
    assert image_prefix.parse(text).loopback is loopback
