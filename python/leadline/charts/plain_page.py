"""A page of sentences, charts and tables, for whatever needs no page of its own design."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from leadline.charts.drawable import Drawn
from leadline.charts.embedding import page_parts, render_page
from leadline.charts.paged import Sheet, paged_pdf
from leadline.charts.saving import Forms
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


def save_plain(forms: Forms, path: Path, make: Callable[[], PlainPage]) -> None:
    """Write a page; .html as it is, .pdf its words and charts, .svg and .png the charts alone.

    Raises:
        ReportError: another suffix, nothing to draw, or the file cannot be written.

    """
    forms.save(
        path,
        html=lambda: render_plain(make()),
        pdf=lambda: _on_paper(make()),
        charts=lambda: make().charts,
    )


def _on_paper(page: PlainPage) -> bytes:
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
