"""An image that cannot be pulled: of every kind, which image, why, and the value to set."""

from __future__ import annotations

import msgspec
import pytest

from penstock.api.kubernetes.kinds import ContainerState, ContainerStatus, ContainerWaiting, Pod
from penstock.api.kubernetes.meta import Json, ObjectMeta
from penstock.api.slinky.accounting import Accounting
from penstock.api.slinky.controller import Controller
from penstock.api.slinky.loginset import LoginSet
from penstock.api.slinky.nodeset import NodeSet
from penstock.api.slinky.restapi import RestApi
from penstock.decide.observed.image_pull import Pull, advice
from penstock.decide.pod.workload import workload
from penstock.model.image_sources import ImageSources
from penstock.translate.slinky.image_sources import Staffed, image_sources

IMAGE = "registry.example.com/team/slurmd:26.05-0.1.0"
KINDS: dict[str, tuple[type[Staffed], str, Json]] = {
    "slurmctld": (Controller, "slurmctld", {}),
    "slurmd": (NodeSet, "slurmd", {"controllerRef": {"name": "slurm"}}),
    "login": (LoginSet, "login", {"controllerRef": {"name": "slurm"}}),
    "slurmrestd": (RestApi, "slurmrestd", {"controllerRef": {"name": "slurm"}}),
    "slurmdbd": (Accounting, "slurmdbd", {}),
}
DENIED = (
    f'failed to pull and unpack image "{IMAGE}": failed to resolve reference "{IMAGE}": '
    "unexpected status from HEAD request to https://registry.example.com/v2/: 401 Unauthorized"
)
REFUSED = (
    'rpc error: code = Unavailable desc = failed to pull and unpack image "localhost/penstock/a:1":'
    ' failed to resolve reference "localhost/penstock/a:1": failed to do request: Head '
    '"https://localhost/v2/penstock/a/manifests/1": dial tcp 127.0.0.1:443: connect: connection '
    "refused"
)


def made(daemon: str, spec: Json | None = None, *, helm: bool = False) -> ImageSources:
    kind, _, base = KINDS[daemon]
    labels = {"app.kubernetes.io/managed-by": "Helm"} if helm else {}
    metadata: Json = {"name": "x", "namespace": "slurm", "labels": labels}
    made_of = {"metadata": metadata, "spec": {**base, **(spec or {})}}
    return image_sources(msgspec.convert(made_of, kind))


def failing(container: str, reason: str, message: str, image: str = IMAGE) -> Pod:
    status = ContainerStatus(
        name=container,
        image=image,
        state=ContainerState(waiting=ContainerWaiting(reason=reason, message=message)),
    )
    pod = Pod(metadata=ObjectMeta(name="x-0"))
    found = msgspec.structs.replace(pod.status, container_statuses=(status,))
    return msgspec.structs.replace(pod, status=found)


@pytest.mark.parametrize("daemon", KINDS)
def test_every_kind_names_image_cause_and_the_field_to_set(daemon: str) -> None:
    pod = failing(
        daemon, "ErrImagePull", f'failed to resolve reference "{IMAGE}": {IMAGE}: not found'
    )
    obj = made(daemon, {daemon: {"image": IMAGE}})
    finding = workload(daemon, 1, [pod], obj)
    assert (finding.ok, finding.reason) == (False, "PodsFailing")
    assert finding.message == (
        f"0 of 1 {daemon} pods are ready: x-0: container {daemon} cannot get {IMAGE}: "
        f"ErrImagePull ({IMAGE}: not found). Push the image, or set spec.{daemon}.image"
    )
    told = workload(daemon, 1, [pod], made(daemon, {daemon: {"image": IMAGE}}, helm=True)).message
    assert "or set global.imageRegistry of the chart slurm" in told
    ours = workload(daemon, 1, [pod], made(daemon)).message
    assert "global.imageRegistry of the chart slurm-operator (argument --slurm-image)" in ours


def test_the_back_off_says_the_same_as_the_attempt() -> None:
    """A condition that changed at each attempt would be written for ever."""
    one = failing("slurmd", "ErrImagePull", DENIED)
    other = failing(
        "slurmd", "ImagePullBackOff", f'Back-off pulling image "{IMAGE}": ErrImagePull: {DENIED}'
    )
    assert workload("slurmd", 1, [one]) == workload("slurmd", 1, [other])


def test_a_port_that_differs_at_each_attempt_is_left_out() -> None:
    said = {
        Pull("login", IMAGE, "ErrImagePull", f"read tcp 10.0.0.7:{port}->10.0.0.9:443: reset").cause
        for port in (40000, 40001)
    }
    assert said == {"read tcp 10.0.0.9:443: reset"}


@pytest.mark.parametrize(
    ("reason", "message", "image", "words"),
    [
        ("ErrImagePull", REFUSED, "localhost/penstock/a:1", "Load the image into the Kubernetes"),
        ("ErrImagePull", DENIED, IMAGE, "If registry.example.com wants a login, name a Secret"),
        ("ErrImagePull", "no such host", IMAGE, "Make registry registry.example.com reachable"),
        ("ErrImagePull", "x509: unknown authority", IMAGE, "trust the certificate"),
        (
            "ErrImagePull",
            "http: server gave HTTP response to HTTPS client",
            IMAGE,
            "serves plain HTTP",
        ),
        ("ErrImagePull", "write /var: no space left on device", IMAGE, "Make room on the disk"),
        ("ErrImageNeverPull", "", IMAGE, "Load the image into the Kubernetes nodes"),
        ("InvalidImageName", "couldn't parse image name", "X/Y:1", "Correct spec.slurmd.image"),
        ("ErrImagePull", "pull access denied", "penstock/slurmd:1", "If docker.io wants a login"),
    ],
)
def test_each_cause_has_its_next_step(reason: str, message: str, image: str, words: str) -> None:
    obj = made("slurmd", {"slurmd": {"image": image}})
    assert words in advice(obj, Pull("slurmd", image, reason, message))


def test_a_secret_that_is_named_is_the_one_to_correct() -> None:
    template: Json = {"spec": {"imagePullSecrets": [{"name": "mine"}]}}
    obj = made("slurmd", {"slurmd": {"image": IMAGE}, "template": template})
    said = advice(obj, Pull("slurmd", IMAGE, "ErrImagePull", DENIED))
    assert said == (
        "Correct the login for registry.example.com in Secret mine of namespace slurm, "
        "or set spec.template.spec.imagePullSecrets"
    )


def test_a_container_beside_the_daemon_names_the_daemons_field_unless_it_has_one() -> None:
    pull = Pull("logfile", IMAGE, "ErrImagePull", "not found")
    assert advice(made("slurmd", {"slurmd": {"image": IMAGE}}), pull).endswith("spec.slurmd.image")
    both: Json = {"slurmd": {"image": IMAGE}, "logfile": {"image": "other"}}
    assert advice(made("slurmd", both), pull).endswith("spec.logfile.image")


def test_a_container_of_the_users_own_is_found_in_the_template() -> None:
    own: Json = {"spec": {"containers": [{"name": "mine", "image": IMAGE}, "nonsense"]}}
    said = advice(
        made("login", {"template": own}), Pull("mine", IMAGE, "ErrImagePull", "not found")
    )
    assert said.endswith("image of container mine in spec.template.spec.containers")


def test_a_message_without_end_is_cut() -> None:
    assert len(Pull("slurmd", IMAGE, "ErrImagePull", "x" * 100_000).cause) < 400
    assert "\n" not in Pull("slurmd", IMAGE, "ErrImagePull", "a\nb\u2028c").cause
