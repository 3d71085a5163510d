"""Writes the README as a package index shows it: pictures and links lead to the repository.

    python release/readme.py https://github.com/OWNER/NAME REF <README.md >OUT.md

An index has no files beside the text. REF is the tag of the release.
"""

from __future__ import annotations

import re
import sys

_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?://|#)([^)\s]+)\)")
_MARKER = re.compile(r"^<!-- .* -->\n", re.MULTILINE)


def absolute(text: str, repository: str, ref: str) -> str:
    """Return the text with links to the repository, without the markers of figures."""

    def link(found: re.Match[str]) -> str:
        picture, words, path = found.groups()
        kind = "raw" if picture else "blob"
        return f"{picture}[{words}]({repository}/{kind}/{ref}/{path})"

    return _MARKER.sub("", _LINK.sub(link, text))


def main() -> None:
    """Read from stdin, write to stdout."""
    repository, ref = sys.argv[1:]
    sys.stdout.write(absolute(sys.stdin.read(), repository.rstrip("/"), ref))


if __name__ == "__main__":
    main()
