"""AdmissionReview in both versions: what is read, what is answered, what is refused as none."""

from __future__ import annotations

import base64
import json
from typing import Any

import msgspec
import pytest

from penstock.kube.webhook.review import AdmissionError, AdmissionRequest, Answer, Cause, answer

BOTH = pytest.mark.parametrize("version", ["admission.k8s.io/v1", "admission.k8s.io/v1beta1"])


def review(version: str = "admission.k8s.io/v1", **request: Any) -> bytes:
    kind = {"group": "slinky.slurm.net", "version": "v1beta1", "kind": "NodeSet"}
    asked = {
        "uid": "u-1",
        "kind": kind,
        "resource": {"group": kind["group"], "version": "v1beta1", "resource": "nodesets"},
        "name": "compute",
        "namespace": "slurm",
        "operation": "UPDATE",
        "userInfo": {"username": "somebody"},
        "object": {"metadata": {"name": "compute"}},
        "oldObject": None,
        "dryRun": False,
        "options": None,
        **request,
    }
    return json.dumps({"apiVersion": version, "kind": "AdmissionReview", "request": asked}).encode()


def asked(body: bytes) -> AdmissionRequest:
    """What a handler is given."""
    seen: list[AdmissionRequest] = []
    answer(body, lambda request: seen.append(request) or Answer())
    return seen[0]


@BOTH
def test_it_is_answered_in_the_version_in_which_it_was_asked(version: str):
    """Slinky section 4 and 11.6: the API server sends v1beta1 to upstream's configurations."""
    assert json.loads(answer(review(version), lambda _: Answer())) == {
        "apiVersion": version,
        "kind": "AdmissionReview",
        "response": {"uid": "u-1", "allowed": True},
    }


@BOTH
def test_a_rejection_names_each_field_and_what_to_write(version: str):
    causes = (Cause("spec.replicas", "write a number"), Cause("spec.slurmd.image", "one string"))
    response = json.loads(answer(review(version), lambda _: Answer(causes)))["response"]
    assert not response["allowed"]
    status = response["status"]
    assert (status["code"], status["reason"], status["status"]) == (422, "Invalid", "Failure")
    assert status["message"] == "spec.replicas: write a number; spec.slurmd.image: one string"
    assert status["details"]["causes"] == [
        {"field": "spec.replicas", "message": "write a number"} | {"reason": "FieldValueInvalid"},
        {"field": "spec.slurmd.image", "message": "one string"} | {"reason": "FieldValueInvalid"},
    ]


@BOTH
def test_a_patch_goes_as_base64_with_its_type(version: str):
    patch = {"op": "add", "path": "/metadata/annotations", "value": {"a/b": "c"}}
    response = json.loads(answer(review(version), lambda _: Answer(patch=(patch,))))["response"]
    assert response["patchType"] == "JSONPatch"
    assert json.loads(base64.b64decode(response["patch"])) == [patch]


def test_warnings_are_one_line_each_and_no_longer_than_the_server_passes_on():
    given = ("two\nlines", "ü" * 300, *(f"{n} " + "x" * 200 for n in range(40)))
    response = json.loads(answer(review(), lambda _: Answer(warnings=given)))["response"]
    shown: list[str] = response["warnings"]
    assert shown[0] == "two lines"
    assert shown[1].endswith("...")
    assert all(len(one.encode()) <= 256 for one in shown)
    assert 10 < len(shown) < 40
    assert sum(len(one.encode()) for one in shown) <= 4096


def test_what_is_absent_is_null_for_a_handler():
    request = asked(review(operation="DELETE", object=None, oldObject={"kind": "NodeSet"}))
    assert bytes(request.object) == b"null"
    assert json.loads(bytes(request.old_object)) == {"kind": "NodeSet"}
    del_ = json.loads(review())
    del del_["request"]["oldObject"]
    assert bytes(asked(msgspec.json.encode(del_)).old_object) == b"null"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'{"apiVersion": "admission.k8s.io/v2", "kind": "AdmissionReview"}',
        b'{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}',
        review(version="v1"),
        review(operation="CONNECTED"),
    ],
)
def test_what_is_no_review_gets_an_error(body: bytes):
    with pytest.raises(AdmissionError):
        answer(body, lambda _: Answer())
