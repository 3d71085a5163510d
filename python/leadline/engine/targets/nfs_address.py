"""A directory of an NFS server, as people spell it: `nfs://HOST[:PORT]/EXPORT/PATH[?mountport=N]`."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from leadline.errors import TargetRefused
from leadline.record.jobs.nfs import NfsServerAddress

_SPELLING = "an NFS target is nfs://HOST[:PORT]/EXPORT/PATH, with ?mountport=N where needed"


class NfsAddress(NfsServerAddress, frozen=True, kw_only=True):
    """Where the directory is, and how people spell it."""

    @property
    def text(self) -> str:
        """The one spelling of it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = f":{self.port}" if self.port else ""
        options = f"?mountport={self.mount_port}" if self.mount_port else ""
        return f"nfs://{host}{port}{quote(self.path)}{options}"

    @property
    def name(self) -> str:
        """A name for the system when nobody gave one."""
        return f"{self.host}{self.path}".rstrip("/").replace("/", "-")

    @classmethod
    def parse(cls, text: str) -> NfsAddress:
        """Read an address; nobody is asked whether it is there.

        Raises:
            TargetRefused: what is wrong, and how it is spelled.

        """
        try:
            parts = urlsplit(text)
            host, port = parts.hostname, parts.port
        except ValueError as error:
            raise TargetRefused(f"{text}: {error}; {_SPELLING}") from None
        path = "/" + unquote(parts.path).strip("/")
        if not host or parts.netloc != parts.netloc.strip() or "@" in parts.netloc:
            raise TargetRefused(
                f"{text}: the host is missing or not a plain name or address (the user is the one "
                f"who runs leadline); {_SPELLING}"
            )
        if not parts.path.startswith("/") or parts.fragment or port == 0:
            raise TargetRefused(f"{text}: {_SPELLING}")
        if any(name in (".", "..") for name in path.split("/")):
            raise TargetRefused(f"{text}: the path goes through . or ..; write it in full")
        ports = _ports(text, parts.query)
        return cls(
            host=host,
            port=port or ports.get("nfsport"),
            mount_port=ports.get("mountport"),
            path=path,
        )


def _ports(text: str, query: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for key, value in parse_qsl(query, keep_blank_values=True):
        if key == "version" and value == "3":
            continue
        if key == "version":
            raise TargetRefused(f"{text}: this client speaks version 3 of NFS only: leave it out")
        if key not in ("mountport", "nfsport"):
            raise TargetRefused(f"{text}: {key!r} is no option of it; {_SPELLING}")
        if not re.fullmatch("[0-9]{1,5}", value) or not 0 < int(value) < 2**16:
            raise TargetRefused(
                f"{text}: {key}={value[:20]} is no port; give a number from 1 to 65535"
            )
        found[key] = int(value)
    return found
