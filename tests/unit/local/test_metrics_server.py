from penstock.local import metrics_server, programs
from penstock.local.addresses import Addresses
from penstock.local.components import Size, components, further_programs, programs_of


def test_metrics_server_is_beside_the_api_server_whatever_taints_are_there() -> None:
    every = {one["kind"]: one for one in metrics_server.objects("first")}
    pod = every["Deployment"]["spec"]["template"]["spec"]
    assert pod["nodeSelector"] == {"kubernetes.io/hostname": "first"}
    assert pod["tolerations"] == [{"operator": "Exists"}]
    (container,) = pod["containers"]
    assert container["image"] == metrics_server.IMAGE
    assert container["imagePullPolicy"] == "Never"
    assert every["APIService"]["spec"]["service"] == {
        "name": every["Service"]["metadata"]["name"],
        "namespace": every["Service"]["metadata"]["namespace"],
    }


def test_no_node_compiles_or_runs_it_by_itself() -> None:
    for size in Size:
        assert programs.METRICS_SERVER_PROGRAM not in programs_of(size)


def test_the_api_server_forwards_users_to_the_servers_of_other_apis() -> None:
    for size in Size:
        found = {one.name: one for one in components(size, "a", Addresses(200))}
        command = found["kube-apiserver"].command
        assert "--requestheader-allowed-names=front-proxy-client" in command


def test_each_node_with_containers_has_the_client_of_its_runtime() -> None:
    assert programs.CRICTL in programs_of(Size.NODE)
    assert programs.CRICTL in further_programs()
    assert programs.CRICTL not in programs_of(Size.API)
