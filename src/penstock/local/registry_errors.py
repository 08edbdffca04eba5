"""Explains errors of a registry, with the next step."""

import re

from penstock.local.image_prefix import ImagePrefix

_MESSAGE = re.compile(r'msg="((?:[^"\\]|\\.)*)"')
_LAST = 300
"""Characters of a registry's own words that are shown."""

_HELP: tuple[tuple[str, str], ...] = (
    (
        r"server gave HTTP response to HTTPS client|http: server gave HTTP",
        "Registry {host} serves plain HTTP: add --plain-http if that is meant. The Kubernetes "
        "nodes need the same setting, and passwords and images then travel unencrypted",
    ),
    (
        r"x509|certificate",
        "The certificate of registry {host} is not trusted: put its authority into "
        "/etc/containers/certs.d/{host}/ca.crt, here and likewise on the Kubernetes nodes",
    ),
    (r"no such host|server misbehaving|lookup ", "There is no registry {host}: correct the name"),
    (
        r"connection refused|i/o timeout|no route to host|network is unreachable|deadline exceeded",
        "Registry {host} does not answer: correct name and port, or start it",
    ),
    (
        r"immutable|ImageTagAlreadyExists",
        "Registry {host} does not replace tags: push under another --version",
    ),
    (
        r"no space left|quota|insufficient storage|\b507\b|\b413\b|entity too large",
        "Registry {host} has no room for {name}: free some or raise its quota, and push again",
    ),
    (
        r"name unknown|name_unknown|repository .*(does not|not) (exist|found)|RepositoryNotFound",
        "Registry {host} creates no repositories: create {repository}, and one for each "
        "other image that `penstock images list --prefix {prefix}` names",
    ),
    (
        r"unable to retrieve auth token: invalid username/password|unauthorized|authentication "
        r"required|no basic auth|\b401\b",
        "Registry {host} rejects the login{user}: `docker login {host}` (or podman, skopeo), or "
        "give --username with the password in PENSTOCK_REGISTRY_PASSWORD",
    ),
    (
        r"denied|forbidden|\b403\b|insufficient_scope",
        "Registry {host} does not let {who} push to {repository}: log in, ask for the right to, or "
        "create the repository first where the registry makes none by itself",
    ),
)
"""Patterns of errors of skopeo and of registries, the most specific one first."""


def explain(output: str, prefix: ImagePrefix, name: str, username: str) -> str:
    """Explain skopeo's error about an image in one or two sentences; ends with its own words."""
    words = last_words(output)
    help_ = next((h for p, h in _HELP if re.search(p, words, re.IGNORECASE)), None)
    if help_ is None:
        return f"{name} cannot be pushed: {words}"
    message = help_.format(
        host=prefix.host,
        prefix=prefix,
        name=name,
        repository=name.rpartition(":")[0],
        user=f" of {username}" if username else "",
        who=username or "you",
    )
    return f"{message}: {words}"


def last_words(output: str) -> str:
    """The error in a log of skopeo's, without its time and level."""
    found = [message.replace('\\"', '"') for message in _MESSAGE.findall(output)]
    return (found or [output.strip() or "no reason given"])[-1][-_LAST:]


def is_absent(output: str) -> bool:
    """Whether a registry answered that it has no such image."""
    words = last_words(output)
    return bool(re.search(r"manifest unknown|name unknown|not found|404", words, re.IGNORECASE))
