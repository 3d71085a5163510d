"""Ids and seeds of points: the same in every process, so that a replay asks the same again."""

from __future__ import annotations

import hashlib


def derive_seed(seed: int, order: int) -> int:
    """Seed of one point: 63 bits, the same in every process and on every machine."""
    digest = hashlib.blake2b(f"{seed}:{order}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def point_id(run_id: str, order: int) -> str:
    """Id of a point of a survey or a validation: the same for the same run and order."""
    return hashlib.blake2b(f"{run_id}:{order}".encode(), digest_size=16).hexdigest()
