import ipaddress

import pytest

from penstock.local.addresses import COUNT, FIRST, MOST_NODES, Addresses, choose, routes
from penstock.local.errors import LocalError

PROC_NET_ROUTE = """\
Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0
psbr\t004D0A0A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
"""


def test_the_same_name_gets_the_same_block() -> None:
    assert choose("penstock", (), ()) == choose("penstock", (), ())


def test_a_block_of_another_node_is_passed_over() -> None:
    first = choose("penstock", (), ())
    assert choose("penstock", {first.block}, ()).block != first.block


def test_a_block_that_the_host_routes_is_passed_over() -> None:
    first = choose("penstock", (), ())
    inside = str(next(ipaddress.IPv4Network(first.all).subnets(new_prefix=24)))
    assert choose("penstock", (), [inside]).block != first.block
    assert choose("penstock", (), ["192.0.2.0/24"]) == first


def test_no_block_left_names_the_next_step() -> None:
    with pytest.raises(LocalError, match="take other nodes down"):
        choose("penstock", range(FIRST, FIRST + COUNT), ())


def test_ranges_of_one_node_do_not_meet() -> None:
    mine = Addresses(200)
    link = ipaddress.IPv4Network(f"{mine.machine}/30", strict=False)
    parts = [ipaddress.IPv4Network(mine.pods), ipaddress.IPv4Network(mine.services), link]
    assert not any(a.overlaps(b) for a in parts for b in parts if a is not b)
    assert all(part.subnet_of(ipaddress.IPv4Network(mine.all)) for part in parts)
    assert ipaddress.ip_address(mine.node) in link
    assert ipaddress.ip_address(mine.dns) in parts[1]


def test_the_name_of_the_link_fits_an_interface() -> None:
    assert len(Addresses(FIRST + COUNT - 1).link) <= 15


def test_routes_are_read_without_the_default() -> None:
    assert routes(PROC_NET_ROUTE) == ["10.10.77.0/24", "192.0.2.0/24"]


def test_each_node_of_a_cluster_has_a_pod_range_of_its_own_inside_the_clusters() -> None:
    addresses = Addresses(200)
    whole = ipaddress.IPv4Network(addresses.pods)
    ranges = [ipaddress.IPv4Network(addresses.pods_of(n)) for n in range(MOST_NODES)]
    assert all(one.subnet_of(whole) for one in ranges)
    assert not any(a.overlaps(b) for a in ranges for b in ranges if a is not b)
    places = [addresses.node_of(n) for n in range(MOST_NODES)]
    assert len({*places, addresses.bridge, addresses.machine}) == MOST_NODES + 2
    assert places[0] == addresses.node
