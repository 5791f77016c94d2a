"""Themes: the colours and fonts of a page, as values of its CSS variables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gradestack import suggest

COLOURS = (
    *("bg", "panel", "ink", "soft", "line", "faint", "accent", "good", "good-bg", "bad", "bad-bg", "bad-line"),
    *("warn", "warn-bg", "low", "high", "absent", "mark", "mark-ink"),
)
"""Variables that are colours."""
FONTS = ("sans", "mono")
"""Variables that are lists of fonts."""
SCHEMES = ("light", "dark")

_NUMBER = r"[-+]?[0-9.]{1,12}(?:%|deg)?"
_COLOUR = re.compile(
    rf"#(?:[0-9a-fA-F]{{3,4}}|[0-9a-fA-F]{{6}}|[0-9a-fA-F]{{8}})|[a-z]{{3,30}}"
    rf"|(?:rgb|rgba|hsl|hsla|hwb|lab|lch|oklab|oklch)\({_NUMBER}(?:[ ,/]{{1,3}}{_NUMBER}){{2,3}}\)"
)
_FONT = re.compile(r"""[A-Za-z][\w -]{0,60}|"[\w -]{1,60}"|'[\w -]{1,60}'""", re.ASCII)


def theme_css(theme: Path | Mapping[str, Any] | None) -> str:
    """Return the style sheet of a theme, to stand behind the page's own; "" for none."""
    held = _read(theme) if isinstance(theme, Path) else theme or {}
    both = {key: value for key, value in held.items() if key not in SCHEMES}
    for scheme in SCHEMES:
        if not isinstance(held.get(scheme, {}), Mapping):
            msg = f"theme: {scheme} must be a mapping of variables"
            raise ValueError(msg)  # noqa: TRY004 - reported with its place, like any other value
    light, dark = (_declared({**both, **held.get(scheme, {})}) for scheme in SCHEMES)
    if not light and not dark:
        return ""
    return (
        f"\n:root {{ {light} }}\n"
        f'@media screen and (prefers-color-scheme: dark) {{ :root:not([data-theme="light"]) {{ {dark} }} }}\n'
        f'@media screen {{ :root[data-theme="dark"] {{ {dark} }} }}\n'
    )


def _read(path: Path) -> Mapping[str, Any]:
    from gradestack import yaml_data  # noqa: PLC0415 - pages without a theme need no YAML

    try:
        found = yaml_data(path.read_text(encoding="utf-8"))
    except Exception as error:
        msg = f"theme: {path.name} cannot be read: {getattr(error, 'strerror', None) or error}"
        raise ValueError(msg) from error
    if not isinstance(found, Mapping):
        msg = f"theme: {path.name} must hold a mapping of variables"
        raise ValueError(msg)  # noqa: TRY004 - the same
    return found


def _declared(values: Mapping[str, Any]) -> str:
    return " ".join(f"--{name}: {_checked(str(name), value)};" for name, value in values.items())


def _checked(name: str, value: Any) -> str:
    known = (*COLOURS, *FONTS)
    if name not in known:
        msg = f"theme: there is no variable {name!r}{suggest(name, known)}; there are: {', '.join(known)}"
        raise ValueError(msg)
    if not isinstance(value, str) or not (_COLOUR.fullmatch(value) if name in COLOURS else _fonts(value)):
        wanted = "a colour such as '#0b5cad' or 'rgb(11 92 173)'" if name in COLOURS else "a list of font names"
        msg = f"theme: {name} must be {wanted}, got {value!r}"
        raise ValueError(msg)
    return value


def _fonts(value: str) -> bool:
    return len(value) <= 400 and all(_FONT.fullmatch(each.strip()) for each in value.split(","))
