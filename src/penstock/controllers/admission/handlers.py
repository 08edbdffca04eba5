"""The webhooks' answers, out of the caches: nothing is asked of anybody while a user waits."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec

from penstock.api.admission import AdmissionResult, ApiGroup, Registry
from penstock.api.kubernetes.meta import Json, KubeStruct
from penstock.api.registry import groups as all_groups
from penstock.controllers.admission.related import CacheOf, RelatedObjectsFinder
from penstock.kube.webhook.review import NOTHING, AdmissionRequest, Answer, Cause, Handler

VALIDATE = "/validate"
DEFAULT = "/default"


class _Specified(KubeStruct, frozen=True):
    spec: Json | None = None


class Admission:
    """Answers about kinds by their rules and by the caches of this process.

    Of those of `groups`, None for all.
    """

    def __init__(
        self,
        cache_of: CacheOf,
        namespaces: Collection[str] = (),
        groups: Sequence[ApiGroup] | None = None,
    ) -> None:
        self._namespaces = namespaces
        self._registry = Registry(all_groups() if groups is None else groups)
        self._related = RelatedObjectsFinder(self._registry, cache_of)

    @property
    def handlers(self) -> Mapping[str, Handler]:
        """By path. One path takes all kinds; the others are those of the original operators."""
        older = (
            f"{VALIDATE}-{info.resource.group.replace('.', '-')}-{info.resource.version}-"
            f"{info.resource.kind.lower()}"
            for info in self._registry.kinds
        )
        judged = dict.fromkeys((VALIDATE, *older), self.validate)
        return {**judged, DEFAULT: self.default}

    def validate(self, request: AdmissionRequest) -> Answer:
        """Whether this object of ours may be created, changed or deleted."""
        rules = self._registry.of_kind(request.kind.group, request.kind.kind)
        if rules is None or request.sub_resource or not self._ours(request.namespace):
            return Answer()
        type_ = rules.info.type
        old = _decoded(request.old_object, type_)
        if request.operation == "DELETE":
            if old is None:
                return Answer()
            return _answer(self._registry.on_delete(old, self._related.users(old)))
        try:
            new = msgspec.json.decode(request.object, type=type_)
        except msgspec.MsgspecError as error:
            # One that is there already and cannot be read either is not for a webhook to hold up.
            if request.operation == "UPDATE" and old is None:
                return Answer()
            return Answer((_unreadable(str(error)),))
        related = self._related.around(new)
        return _answer(self._registry.validate_change(new, old, related))

    def default(self, request: AdmissionRequest) -> Answer:
        """What this new object of ours is to have as well."""
        rules = self._registry.of_kind(request.kind.group, request.kind.kind)
        made = request.operation == "CREATE" and not request.sub_resource
        if rules is None or not made or not self._ours(request.namespace):
            return Answer()
        # The validating webhook rejects an object that cannot be decoded, with a message.
        new = _decoded(request.object, rules.info.type)
        given: Mapping[str, str] = rules.defaults(new) if new is not None else {}
        if not given:
            return Answer()
        there = msgspec.json.decode(request.object, type=_Specified).spec
        if there is None:
            return Answer(patch=({"op": "add", "path": "/spec", "value": given},))
        return Answer(
            patch=tuple(
                {"op": "add", "path": f"/spec/{field}", "value": value}
                for field, value in given.items()
            )
        )

    def _ours(self, namespace: str) -> bool:
        return not self._namespaces or namespace in self._namespaces


def _decoded(raw: msgspec.Raw, type_: type[Any]) -> Any:
    """The object, or None for none and for one that cannot be read."""
    if bytes(raw) == bytes(NOTHING):
        return None
    try:
        return msgspec.json.decode(raw, type=type_)
    except msgspec.MsgspecError:
        return None


def _answer(found: AdmissionResult) -> Answer:
    causes = tuple(Cause(one.path, one.message) for one in found.problems)
    return Answer(causes, found.warnings)


def _unreadable(words: str) -> Cause:
    """A cause out of msgspec's words, which end in ` - at `$.path``."""
    message, _, path = words.partition(" - at `$.")
    return Cause(path.rstrip("`") or "spec", message)
