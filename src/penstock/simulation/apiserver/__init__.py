"""A simulated Kubernetes API server, for testing operators in simulated time.

`ApiServer` holds the objects and does what kube-apiserver and its garbage collector do with them.
`Connection` is the way of one client to it: a `penstock.kube.client.transport.Transport` that can
be slow, cut, stale or dead. Nothing here needs a network, a thread or the system's clock.
"""

from penstock.simulation.apiserver.connection import Connection, Trouble
from penstock.simulation.apiserver.server import ApiServer
from penstock.simulation.apiserver.store import Change

__all__ = ["ApiServer", "Change", "Connection", "Trouble"]
