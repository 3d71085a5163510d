"""The five workloads on which CP94 compares systems (Fig. 16)."""

from __future__ import annotations

from leadline.record import Workload

MB = 2**20
KB = 2**10
"""The paper's MB and KB are powers of two: its "4 KB" is a page, its "100 KB" no multiple of it."""

NAMED: dict[str, Workload] = {
    "workstation": Workload(
        unique_bytes=1 * MB, size_mean=4 * KB, read_frac=0.8, seq_frac=0.8, process_num=1
    ),
    "large_utility": Workload(
        unique_bytes=10 * MB, size_mean=8 * KB, read_frac=0.6, seq_frac=0.9, process_num=1
    ),
    "scientific_write": Workload(
        unique_bytes=250 * MB, size_mean=100 * KB, read_frac=0.2, seq_frac=0.5, process_num=1
    ),
    "scientific_read": Workload(
        unique_bytes=250 * MB, size_mean=100 * KB, read_frac=0.8, seq_frac=0.5, process_num=1
    ),
    "database": Workload(
        unique_bytes=500 * MB, size_mean=4 * KB, read_frac=0.2, seq_frac=0.1, process_num=2
    ),
}
"""Compile and grep, sort, satellite data, image processing, TPC: the same on every system, as
in the paper, which scales none of them."""
