"""AD98 Fig. 2 as code gives the paper's numbers, and our own model is built of the same parts."""

from __future__ import annotations

import pytest

from leadline.record.streaming import KERNELS, KernelName, Platform
from leadline.studies.streaming.models import (
    FIG_2,
    Direction,
    Symbols,
    paper_corrections,
    paper_model,
    total,
    touched_apart,
)
from leadline.studies.streaming.resources import (
    Choices,
    own_copies,
    own_corrections,
    own_model,
    touched_at_random,
)

EIGHT = Symbols(parties=8, match_frac=0.5)
REMOTE = 7 / 8
PUBLISHED: dict[tuple[KernelName, Platform], tuple[float, float, float, float]] = {
    # I/O bus: read, write; memory bus: read, write. Sums of Fig. 2's cells for P = 8.
    ("scan", "process"): (1, 1, 1 + 0.1 + 0.5 * 2, 1),
    ("scan", "cluster"): (1, 1, 1 + 0.1 + 0.5 * 2, 1),
    ("scan", "threads"): (1, 1, 1 + 0.1 + 0.5 * 2, 1),
    ("sort", "process"): (1, 1, 1 + 2 + 0.1 + 0.08, 1 + 0.08 + 2),
    ("sort", "cluster"): (2.75, 1, 2 * REMOTE + 5 + 0.1 + 0.08, 1 + 0.08 + 2),
    ("sort", "threads"): (1, 1, 1 + 4 + 0.1 + 0.08 * 3, 1 + 0.08 + 2),
    ("transpose", "process"): (1, 1, 1 + 2, 1),
    ("transpose", "cluster"): (2.75, 1, 1 + 2 * REMOTE + 2, 1),
    ("transpose", "threads"): (1, 1, 1 + 2, 1),
}


@pytest.mark.parametrize(("kernel", "platform"), sorted(PUBLISHED))
def test_figure_2_cell_by_cell(kernel: KernelName, platform: Platform) -> None:
    phases: tuple[Direction, Direction] = ("read", "write")
    found = [
        total(paper_model(kernel, platform, phase, bus, EIGHT))
        for bus in ("io", "memory")
        for phase in phases
    ]
    assert found == pytest.approx(PUBLISHED[kernel, platform])


def test_the_table_is_whole() -> None:
    assert set(FIG_2) == set(PUBLISHED)


def test_the_cluster_moves_nearly_three_times_the_disks_bytes() -> None:
    """§5.2.1: "On our 8-node cluster, that comes to 2.75 D_r"."""
    assert total(paper_model("sort", "cluster", "read", "io", EIGHT)) == 2.75
    many = Symbols(parties=1000)
    assert total(paper_model("sort", "cluster", "read", "io", many)) == pytest.approx(3, abs=0.01)


def test_the_papers_corrections() -> None:
    """§5.3.1: 1.92 D_r where .18 D_r was predicted; 4/5; the sort's 7 and the cluster's 12."""
    terms = {
        term.name: term.coefficient for term in paper_corrections("sort", "process", "read", EIGHT)
    }
    lines = sum(value for name, value in terms.items() if "line" in name)
    assert lines == pytest.approx(1.92 - 0.18)
    sort = total(paper_model("sort", "process", "read", "memory", EIGHT)) + sum(terms.values())
    assert sort == pytest.approx(7, rel=0.1)
    both = paper_model("sort", "cluster", "read", "memory", EIGHT) + paper_corrections(
        "sort", "cluster", "read", EIGHT
    )
    assert total(both) == pytest.approx(12, rel=0.1)
    assert not paper_corrections("sort", "process", "write", EIGHT)


def test_lines_that_matches_touch() -> None:
    assert touched_apart(0.5) == pytest.approx(4 / 5)
    for touched in (touched_apart, touched_at_random):
        assert touched(0.0) == 0.0
        assert touched(1.0) == 1.0
        assert touched(0.5) > 0.5
    assert touched_at_random(0.3) < touched_apart(0.3)


@pytest.mark.parametrize("match_frac", [0.1, 0.5, 0.8])
def test_lines_at_random_by_counting(match_frac: float) -> None:
    import random  # noqa: PLC0415

    draw = random.Random(4)
    lines, count = set(), 64_000
    for record in range(count):
        if draw.random() < match_frac:
            lines |= {record * 100 // 64, (record * 100 + 99) // 64, (record * 100 + 50) // 64}
    assert len(lines) / (count * 100 / 64) == pytest.approx(touched_at_random(match_frac), rel=0.01)


def test_direct_io_in_place_saves_the_papers_copies() -> None:
    own = total(own_model(Choices(kernel="sort", phase="read"), "memory"))
    paper = total(paper_model("sort", "process", "read", "memory", Symbols(bucket_bytes=16)))
    assert own == pytest.approx(paper - 2)
    mapped = total(own_model(Choices(kernel="sort", phase="read", mapped=True), "memory"))
    assert mapped == pytest.approx(paper)
    buffered = Choices(kernel="scan", phase="write", write_direct=False, read_share=0.0)
    assert total(own_model(buffered, "memory")) == pytest.approx(3)
    threads = Choices(kernel="sort", phase="read", platform="threads")
    assert total(own_model(threads, "memory")) == pytest.approx(own)


def test_what_is_mapped_is_copied_where_it_does_not_lie_in_one_piece() -> None:
    scan = Choices(kernel="scan", phase="read", mapped=True)
    direct = total(own_model(Choices(kernel="scan", phase="read"), "memory"))
    assert total(own_model(scan, "memory")) == pytest.approx(direct)
    striped = Choices(kernel="scan", phase="read", mapped=True, disks=2)
    assert total(own_model(striped, "memory")) == pytest.approx(direct + 2)
    merge = Choices(kernel="sort", phase="merge", mapped=True, read_share=0.5)
    unmapped = Choices(kernel="sort", phase="merge", read_share=0.5)
    assert own_model(merge, "memory") == own_model(unmapped, "memory")


def test_copies_of_the_program_itself() -> None:
    """What phases count as copied_bytes, by the byte moved."""
    assert own_copies(Choices(kernel="scan", phase="read", match_frac=0.3)) == pytest.approx(0.3)
    assert own_copies(Choices(kernel="scan", phase="write", read_share=0)) == 0
    assert own_copies(Choices(kernel="sort", phase="read")) == 0
    assert own_copies(Choices(kernel="sort", phase="write", read_share=0)) == 1
    assert own_copies(Choices(kernel="sort", phase="merge", read_share=0.5)) == 0.5
    assert own_copies(Choices(kernel="transpose", phase="read")) == 1
    assert own_copies(Choices(kernel="sort", phase="read", ranks=4)) == 2
    buffered = Choices(kernel="sort", phase="read", read_direct=False)
    assert own_copies(buffered) == 0, "the kernel copies, not the program"


def test_a_second_pass_reads_and_writes_once_more() -> None:
    """Per byte of the data set: two of each, and a copy and a gathering."""
    for phase in ("runs", "merge"):
        choices = Choices(kernel="sort", phase=phase, read_share=0.5)
        assert total(own_model(choices, "io")) == pytest.approx(1)
    runs = total(own_model(Choices(kernel="sort", phase="runs", read_share=0.5), "memory"))
    merge = total(own_model(Choices(kernel="sort", phase="merge", read_share=0.5), "memory"))
    assert runs == pytest.approx((1 + 1 + 0.1 + 2 * 0.16 + 2) / 2)
    assert merge == pytest.approx((1 + 1 + 0.1 + 2) / 2)


def test_ranks_exchange_what_is_not_their_own() -> None:
    for kernel in ("sort", "transpose"):
        four = Choices(kernel=kernel, phase="read", platform="cluster", ranks=4)
        assert total(own_model(four, "io")) == pytest.approx(1 + 2 * 3 / 4)
    runs = Choices(kernel="sort", phase="runs", platform="cluster", ranks=4, read_share=0.5)
    assert total(own_model(runs, "io")) == pytest.approx(1 + 2 * 3 / 4 / 2)
    scan = Choices(kernel="scan", phase="read", platform="cluster", ranks=4)
    assert total(own_model(scan, "io")) == 1
    write = Choices(kernel="sort", phase="write", platform="cluster", ranks=4, read_share=0)
    assert total(own_model(write, "io")) == 1


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_term_is_named_and_corrections_only_add(kernel: KernelName) -> None:
    phases = {
        "scan": ("read", "write"),
        "sort": ("read", "write", "runs", "merge"),
        "transpose": ("read", "write", "tiles"),
    }
    shares = {"read": 1.0, "write": 0.0, "runs": 0.5, "merge": 0.5, "tiles": 0.5}
    for phase in phases[kernel]:
        for ranks in (1, 4):
            choices = Choices(
                kernel=kernel, phase=phase, ranks=ranks, read_share=shares[phase], mapped=ranks == 1
            )
            terms = own_model(choices, "memory")
            assert total(terms) >= 1
            for term in terms + own_corrections(choices):
                assert all((term.name, term.symbol, term.source))
                assert term.coefficient > 0
