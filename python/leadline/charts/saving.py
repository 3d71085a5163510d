"""What a study can be written as, told by a file's suffix: a page, a table, its charts."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from leadline.charts.drawable import Drawn, unchecked
from leadline.charts.images import ReportError, save_chart
from leadline.outputs import write_whole


@dataclass(frozen=True)
class Forms:
    """The forms in which one kind of answer can be written."""

    what: str
    """As messages name it: `a comparison`."""
    said: str
    """The suffixes in words: `.html, .svg or .png`."""
    nothing: str = "nothing was measured that can be drawn"
    """What is said when there is no chart."""

    def require(self, path: Path) -> None:
        """Refuse what it cannot be written as; called before anything is measured.

        Raises:
            ReportError: another suffix.

        """
        if path.suffix.lower() not in (".htm", *re.findall(r"\.\w+", self.said)):
            raise ReportError(f"cannot write {self.what} as {path.suffix!r}; use {self.said}")

    def save(
        self,
        path: Path,
        *,
        charts: Callable[[], Mapping[str, Drawn]],
        **made: Callable[[], str | bytes],
    ) -> None:
        """Write what the suffix of `path` asks for.

        Args:
            path: where.
            charts: what is drawn for every other suffix: the first goes to `path`, each other one
                beside it as `<stem>-<chart><suffix>`.
            made: the content of the file, by its suffix.

        Raises:
            ReportError: another suffix, nothing to draw, or the file cannot be written.

        """
        self.require(path)
        suffix = path.suffix.lower()
        make = made.get("html" if suffix == ".htm" else suffix[1:])
        try:
            with unchecked():
                if make is None:
                    self._draw(charts(), path)
                    return
                content = make()
            write_whole(path, content)
        except OSError as error:
            raise ReportError(
                f"{path} cannot be written: {error.strerror}; give another file"
            ) from error

    def _draw(self, charts: Mapping[str, Drawn], path: Path) -> None:
        if not charts:
            raise ReportError(self.nothing)
        for number, (name, chart) in enumerate(charts.items()):
            save_chart(chart, path if number == 0 else path.with_stem(f"{path.stem}-{name}"))
