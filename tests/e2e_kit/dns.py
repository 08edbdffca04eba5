"""Names of the world outside that the cluster's DNS knows, as a real one does of other servers."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Generator, Mapping

from e2e_kit.site import Site

_COREFILE = "/etc/kubernetes/Corefile"
_BEFORE = "    template ANY ANY . {"
_NAME = """\
    template IN A {name} {{
        answer "{{{{ .Name }}}} 5 IN A {address}"
    }}
    template IN ANY {name} {{
        rcode NOERROR
    }}
"""


@contextlib.contextmanager
def known(site: Site, names: Mapping[str, str]) -> Generator[None]:
    """While it lasts these names have these addresses in the cluster."""
    before = site.node.run("cat", _COREFILE)
    if _BEFORE not in before:
        raise LookupError(f"{_COREFILE} does not refuse unknown names where it did")
    more = "".join(_NAME.format(name=name, address=at) for name, at in names.items())
    _serve(site, before.replace(_BEFORE, more + _BEFORE))
    try:
        yield
    finally:
        _serve(site, before)


def _serve(site: Site, text: str) -> None:
    site.node.run("sh", "-c", 'printf %s "$1" >"$2"', "sh", text, _COREFILE)
    # CoreDNS reads its file again, and answers meanwhile.
    site.node.processes()["coredns"].signal(signal.SIGUSR1)
