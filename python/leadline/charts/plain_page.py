"""A page of sentences, charts and tables, for whatever needs no page of its own design."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from leadline.charts.drawable import Drawn
from leadline.charts.embedding import page_parts, render_page
from leadline.charts.paged import Sheet, paged_pdf
from leadline.record import Status
from leadline.record.finding import Finding


class PlainTable(NamedTuple):
    """A table of a page; without rows it is left out."""

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    folded: bool = False
    """Whether only who asks for it sees it."""


class PlainPage(NamedTuple):
    """What a page says, in its order."""

    brand: str
    """What was done, as `a page cache`."""
    title: str
    sub: str
    """Id, target and date."""
    status: Status
    sentences: Sequence[str]
    warnings: Sequence[Finding]
    charts: Mapping[str, Drawn]
    tables: Sequence[PlainTable]
    document: Any
    """All of it, for who saves the page's data."""


def plain_pdf(page: PlainPage) -> bytes:
    """Put the page's words and charts on paper."""
    return paged_pdf(Sheet(page.title, page.sub, page.sentences, page.warnings, page.charts))


def render_plain(page: PlainPage) -> str:
    """Render the page; it holds its own data and asks nothing of the network."""
    own = page._asdict()
    del own["charts"], own["document"], own["status"], own["warnings"]
    unfinished = "" if page.status is Status.DONE else page.status.value
    return render_page(
        "plain.html.j2",
        **own,
        unfinished=unfinished,
        **page_parts(page.charts, page.document, warnings=page.warnings),
    )
