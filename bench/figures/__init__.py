"""What benches measured, kept as JSON, and the text that is rendered from it.

A bench stores what it measured where its command line says `--save`; README and docs/ have markers
that name a stored result; `make figures` puts figures between them, `make test` fails where text
and JSON differ, and `make figures-stale` lists what is older than the code it measured.
"""

from figures.rendered import markdown, say
from figures.saving import add_save_option, save
from figures.stored import Cell, Column, Content, Result, Row, share, slug

__all__ = [
    "Cell",
    "Column",
    "Content",
    "Result",
    "Row",
    "add_save_option",
    "markdown",
    "save",
    "say",
    "share",
    "slug",
]
