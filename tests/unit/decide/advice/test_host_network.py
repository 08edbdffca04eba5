"""What a user is told of pods in the network of their machine."""

from __future__ import annotations

from penstock.api.kubernetes.conditions import conditions
from penstock.decide.advice.host_network import EXPOSED, findings

LISTENS = "slurmd listens on 6818"


def test_pods_in_the_hosts_network_are_told_with_what_they_open_until_they_are_not() -> None:
    """S069."""
    assert findings({}, LISTENS, ()) == []
    (found,) = findings({"hostNetwork": True}, LISTENS, ())
    assert LISTENS in found.message
    shown = conditions([found])
    told = {one.type: one.status for one in shown}
    assert (told["Ready"], told[EXPOSED]) == ("True", "True")
    (over,) = findings({}, LISTENS, shown)
    assert {one.type: one.status for one in conditions([over])}[EXPOSED] == "False"
