"""What a store is given of a study."""

from __future__ import annotations

from typing import Any

import msgspec

from leadline.record.study import Records


class StudySample(msgspec.Struct, frozen=True, kw_only=True):
    """A study of one kind: what a store is given of it."""

    records: Records[Any, Any]
    start: Any
    items: tuple[tuple[str, Any], ...]
    """Each with its group."""
    answer: Any

    @property
    def study_id(self) -> str:
        """Its id."""
        return str(self.start.study_id)
