"""The table of `penstock network`: S080."""

from __future__ import annotations

from penstock.decide.cluster.network import Place, SlurmNode, lines, pairs, table

CTL = Place("slurmctld", "", host="ctl.example.com", port=6817)
BURST = Place("slurmd", "burst-0", "burst-0", "slurmd", "10.1.0.4", 6818)
METAL = Place("slurmd", "metal-1", host="10.9.0.2", port=6818)
LOGIN = Place("login", "login-x", "login-x", "login")
REST = Place("slurmrestd", "rest-x", "rest-x", "slurmrestd", "slurm-restapi.slurm", 6820)
DBD = Place("slurmdbd", "", host="db.example.com", port=6819)
OPERATOR = Place("operator", "", "penstock-system/op", "operator")
ALL = (CTL, BURST, METAL, LOGIN, REST, DBD, OPERATOR)
IDLE = {name: SlurmNode(name, "10.9.0.2", "idle") for name in ("burst-0", "metal-1")}


def test_every_daemon_has_its_clients_and_nobody_speaks_to_itself() -> None:
    found = {(s.role, s.name, t.address) for s, t in pairs(ALL)}
    assert ("slurmd", "burst-0", "ctl.example.com:6817") in found
    assert ("slurmctld", "", "10.1.0.4:6818") in found
    assert ("slurmd", "burst-0", "10.9.0.2:6818") in found
    assert ("slurmd", "metal-1", "10.1.0.4:6818") in found
    assert ("login", "login-x", "10.9.0.2:6818") in found
    assert ("slurmctld", "", "db.example.com:6819") in found
    assert ("slurmdbd", "", "ctl.example.com:6817") in found
    assert ("operator", "", "slurm-restapi.slurm:6820") in found
    assert ("slurmd", "burst-0", "10.1.0.4:6818") not in found
    assert not any(target.startswith(":") for _, _, target in found)


def test_what_begins_in_a_pod_is_what_was_tried_there() -> None:
    tried = {("burst-0", "ctl.example.com:6817"): "nameless", ("burst-0", "10.9.0.2:6818"): "open"}
    ways = {(w.source.name, w.target.address): w for w in table(ALL, tried, {})}
    assert ways["burst-0", "ctl.example.com:6817"].closed
    assert "does not resolve" in ways["burst-0", "ctl.example.com:6817"].found
    assert ways["burst-0", "10.9.0.2:6818"].found == "yes"
    assert not ways["login-x", "10.9.0.2:6818"].closed
    assert ways["login-x", "10.9.0.2:6818"].found.startswith("not known")


def test_of_hosts_outside_slurmctlds_word_counts_and_else_the_command_is_told() -> None:
    nodes = {**IDLE, "metal-1": SlurmNode("metal-1", "10.9.0.2", "idle*")}
    ways = {(w.source.role, w.source.name, w.target.address): w for w in table(ALL, {}, nodes)}
    assert ways["slurmctld", "", "10.1.0.4:6818"].found == "yes, slurmctld reports idle"
    assert ways["slurmctld", "", "10.9.0.2:6818"].closed
    assert "nc -vz -w 3 10.1.0.4 6818" in ways["slurmd", "metal-1", "10.1.0.4:6818"].found


def test_the_text_has_a_row_for_each_way_in_columns() -> None:
    text = lines(table(ALL, {}, IDLE))
    assert len(text) == len(pairs(ALL)) + 1
    column = text[0].index("ADDRESS")
    assert all(line[column - 1] == " " and line[column] != " " for line in text)
