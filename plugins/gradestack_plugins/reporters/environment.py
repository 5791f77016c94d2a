"""The Jinja environment of the pages."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from pathlib import Path
from types import CodeType
from typing import IO, Any

import attrs
import jinja2
from jinja2.bccache import Bucket
from markupsafe import Markup

from gradestack_plugins.reporters.index import shade
from gradestack_plugins.reporters.text import capital, clean, number, title, token

_BUFFERED = 500


class _Compiled(jinja2.BytecodeCache):
    """Templates compiled in this process: compiling takes longer than most pages, and is the same for every run."""

    def __init__(self) -> None:
        self._codes: dict[str, tuple[str, CodeType | None]] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        """Give the code of a template whose text has not changed."""
        checksum, code = self._codes.get(bucket.key, ("", None))
        if checksum == bucket.checksum:
            bucket.code = code

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep what was compiled."""
        self._codes[bucket.key] = bucket.checksum, bucket.code


_COMPILED = _Compiled()


def _finalize(value: Any) -> Any:
    """Return what is put into a page: texts cleaned, None refused by being visible as a figure without value."""
    if type(value) is str:
        return clean(value)
    return number(value) if value is None else value


def _escaped(name: str | None) -> bool:
    return name is not None and name.endswith(".html")


def environment() -> jinja2.Environment:
    """Return an environment that escapes in every ``.html`` template and shows hidden characters in all.

    Markdown templates are not escaped by Jinja; they pass every text through the filters of
    :mod:`gradestack_plugins.reporters.markdown`.
    """
    env = jinja2.Environment(
        loader=jinja2.PackageLoader("gradestack_templates", ""),
        autoescape=_escaped,  # noqa: S701 - on for every HTML template, off for Markdown
        undefined=jinja2.StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        auto_reload=False,
        bytecode_cache=_COMPILED,
    )
    env.filters.update(capital=capital, num=number, shade=shade, title_of=title, token=token)
    return env


def asset(env: jinja2.Environment, name: str) -> Markup:
    """Return a style sheet or script as it stands in the package, to be put inline."""
    assert env.loader is not None  # noqa: S101 - the environment above has one
    text = env.loader.get_source(env, name)[0]
    return Markup(text)  # noqa: S704 - our own file, not data


def content_hash(text: str) -> str:
    """Return the source expression by which a content security policy allows one inline text."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def policy(styles: Iterable[str], scripts: Iterable[str], *, loading: bool = False) -> str:
    """Return a content security policy that allows these inline texts and nothing else, no network least of all.

    Args:
        styles: The style sheets.
        scripts: The scripts.
        loading: Whether these scripts may load others, the only way to read a file beside a page without a server.
    """
    more = " 'strict-dynamic'" if loading else ""
    return "; ".join(
        (
            "default-src 'none'",
            f"style-src {' '.join(map(content_hash, styles))}",
            f"script-src {' '.join(map(content_hash, scripts))}{more}",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


def write_stream(template: jinja2.Template, path: Path, context: dict[str, Any]) -> None:
    """Render a template into a file piece by piece; a failure leaves none."""
    file: IO[str]
    try:
        with path.open("w", encoding="utf-8", errors="replace", newline="\n") as file:
            stream = template.stream(context)
            stream.enable_buffering(_BUFFERED)
            file.writelines(stream)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def write_whole(path: Path, text: str) -> None:
    """Write a text into a file; a failure leaves none."""
    try:
        path.write_text(text, encoding="utf-8", errors="replace", newline="\n")
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def check_limits(options: Any) -> None:
    """Refuse negative limits among a reporter's options.

    Raises:
        ValueError: A limit is negative.
    """
    for name, value in attrs.asdict(options).items():
        if value < 0:
            msg = f"{name} must not be negative, got {value}"
            raise ValueError(msg)
