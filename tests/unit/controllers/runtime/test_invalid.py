"""Faults of an object, which are looked for once while it is unchanged."""

from __future__ import annotations

import pytest

from penstock.api.admission import Problem
from penstock.api.kubernetes.kinds import Pod
from penstock.api.kubernetes.meta import KubeObject, ObjectMeta
from penstock.controllers.runtime import report


def test_an_object_is_validated_again_only_after_it_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[KubeObject] = []

    def problems(obj: KubeObject) -> list[Problem]:
        asked.append(obj)
        return [Problem("spec.size", f"is of version {obj.metadata.resource_version}")]

    monkeypatch.setattr(report, "problems", problems)
    first, second = (
        Pod(metadata=ObjectMeta(uid="of-this-test", resource_version=one)) for one in ("1", "2")
    )
    seen = [report.invalid(one) for one in (first, first, second, second, first)]
    assert [found.message[-1] for (found,) in seen] == ["1", "1", "2", "2", "1"]
    assert asked == [first, second, first]
    seen[-1].clear()
    assert report.invalid(first)
