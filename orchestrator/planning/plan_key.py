"""The key of a cached response."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from cache import hash_key
from orchestrator.planning.plan import Plan

_encode = msgspec.msgpack.Encoder(order="deterministic").encode


def plan_hash(plan: Plan) -> bytes:
    """Sixteen bytes that differ whenever the plans differ; equal plans have equal bytes, in every process."""
    return hash_key(_encode(plan))


def cache_key(plan_hash: bytes, data_version: Sequence[str | int], build_id: str, content_ids: Sequence[str]) -> bytes:
    """Sixteen bytes that differ whenever the response may differ.

    No list of settings is needed: what decides a response is in the plan.

    :param plan_hash: see :func:`plan_hash`.
    :param data_version: of the plan's scope.
    :param build_id: identity of the encoder and analysers.
    :param content_ids: hashes of files and models that a plan only names, and of the response format.
    """
    return hash_key(plan_hash, data_version, build_id, content_ids)
