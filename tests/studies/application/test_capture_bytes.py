"""Bytes that a capture saw against those that the kernel counted."""

from __future__ import annotations

import msgspec
import pytest

from leadline.record.application.capture import Capture
from leadline.studies.application.characterize import format_capture

SEEN = {
    "way": "bpf",
    "no_bpf": None,
    "wall_s": 1.0,
    "calls": 100,
    "lost": 0,
    "read_bytes": (900_000, 0, 0),
    "written_bytes": (0, 0),
    "uncounted_bytes": 0,
    "counted_bytes": (1_000_000, 0),
    "mapped_bytes": 0,
    "mapped_files": 0,
    "calls_of_32_bits": 0,
    "threads_missed": 0,
    "left_running": 0,
    "ended": None,
    "stopped": None,
    "files": (),
}


@pytest.mark.parametrize(
    ("edge_bytes", "bytes_off", "said"),
    [
        (0, 0.1, "bytes 10% off /proc/PID/io"),
        (60_000, 0.04, "bytes 4.0% off /proc/PID/io"),
        (100_000, 0.0, "within 97.7 KiB moved while tracing began or ended"),
    ],
)
def test_bytes_at_the_edges_are_no_error_and_are_said(
    edge_bytes: int, bytes_off: float, said: str
) -> None:
    capture = msgspec.convert(SEEN | {"edge_bytes": edge_bytes}, Capture)
    assert capture.bytes_off == pytest.approx(bytes_off)
    assert capture.whole == (bytes_off == 0)
    assert said in " ".join(format_capture(capture))


def test_bytes_are_equal_only_where_all_were_seen() -> None:
    capture = msgspec.convert(SEEN | {"read_bytes": (1_000_000, 0, 0)}, Capture)
    assert "bytes equal to /proc/PID/io" in " ".join(format_capture(capture))
