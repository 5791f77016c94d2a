"""Addresses of remote files: which are opened, and how they are shown, which is without passwords and signatures."""

from __future__ import annotations

import re
from typing import Final

from gradestack.errors import ConfigError

PROTOCOLS: Final = ("http", "https", "s3", "gs", "az")
"""What is opened. Others stand for local files, archives or commands, and no library ever sees them."""
_OTHER_NAMES: Final = {"gcs": "gs", "s3a": "s3", "s3n": "s3", "abfs": "az", "abfss": "az", "adl": "az"}
_LIKE_ONE: Final = re.compile(r"[\s\x00-\x1f]*[^\W\d_][\w+.-]+:|[^/\\]*::|.*://", re.DOTALL)
"""What people, or a library, may take for an address; C:\\ is the letter of a disk."""
_PLACE: Final = re.compile(
    r"(?:([^/?#]*)@)?([\w.-]+(?::\d{1,5})?|\[[\da-fA-F:.]+\](?::\d{1,5})?)(/[^?#]*|)(?:[?#].*)?", re.DOTALL
)
"""What stands behind ``://``: userinfo, host or bucket, path; a query or fragment is dropped."""
_LONGEST: Final = 60
"""Characters that are shown of a malformed one."""


def is_address(text: str) -> bool:
    """Return whether a text looks like an address, of whatever kind, rather than like the name of a local file."""
    return _LIKE_ONE.match(text) is not None


def shown_address(text: str) -> str:
    """Return an address without userinfo, query and fragment, which may be secret; of a malformed one only its kind."""
    protocol, separator, rest = text.partition("://")
    place = _PLACE.fullmatch(rest) if protocol.isalnum() else None
    if place is None:
        whole = len(text) <= _LONGEST and not separator and not set("@?#") & set(text)
        return text if whole else f"{text.partition(':')[0].strip()[:_LONGEST]}:…"
    return f"{protocol}{separator}{place[2]}{place[3]}"


def protocol_of(text: str) -> str:
    """Return the protocol of an address that may be opened."""
    protocol, separator, rest = text.partition("://")
    place = _PLACE.fullmatch(rest)
    if why := _refusal(protocol if separator else "", text):
        raise ConfigError(f"{shown_address(text)}: {why}")
    if place is None:
        raise ConfigError(f"{shown_address(text)}: the address names no host or bucket")
    if place[1] is not None and (protocol in {"s3", "gs"} or (protocol == "az" and ":" in place[1])):
        advice = "its package finds keys and passwords elsewhere, such as in the environment"
        raise ConfigError(f"{shown_address(text)}: an address of {protocol} holds no user or password; {advice}")
    return protocol


def _refusal(protocol: str, text: str) -> str:
    absent = "" if "://" in text else ", and there is no file of this name"
    if "::" in text:
        return f"chained addresses (::) are not opened{absent}"
    if not text.isprintable() or any(map(str.isspace, text)):
        return "an address holds no spaces and control characters; write a space as %20, or in a bucket as *"
    if protocol in PROTOCOLS:
        return ""
    meant = _OTHER_NAMES.get(protocol.lower(), protocol.lower())
    near = f"; did you mean {meant}://?" if meant in PROTOCOLS else ""
    near = "; a local file is named by its path" if protocol in {"file", "local"} else near
    *first, last = (f"{each}://" for each in PROTOCOLS)
    return f"only addresses that begin with {', '.join(first)} or {last} are opened{near}{absent}"
