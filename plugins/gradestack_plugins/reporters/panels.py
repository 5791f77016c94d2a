"""Panels of plugins: asked for what they show; one that cannot costs only itself."""

from __future__ import annotations

import contextlib
import copy
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import jinja2
from markupsafe import Markup

from gradestack import Panel, Report, error_text
from gradestack_plugins.reporters.drawing import Drawn, drawn
from gradestack_plugins.reporters.environment import place_in_template
from gradestack_plugins.reporters.text import token

PAGE = "report.html"
_LEFT_OUT = re.compile(r"panel '[a-z0-9_]*' of plugin \S+ is left out")


_FRAMES: Mapping[str, tuple[str, str | None]] = {
    "overview": ("_panel.html", ""),
    "sample": ("_panel_of_sample.html", ""),
    "compare": ("_panel.html", None),
    "page": ("_panel_of_page.html", PAGE),
}
"""Place -> what stands around a panel there, and where its links to samples lead; None: nowhere."""


@attrs.frozen
class Filled:
    """A panel with what it shows: blocks, or the data of its template."""

    panel: Panel
    blocks: tuple[Drawn, ...] = ()
    data: Mapping[str, Any] | None = None

    @property
    def id(self) -> str:
        """Its id on the page."""
        return f"panel-{token(self.panel.plugin)}-{self.panel.name}"

    @property
    def file(self) -> str:
        """The file of a panel that is a page of its own."""
        return f"{token(self.panel.plugin.removesuffix('.py'))}-{self.panel.name}.html"


@attrs.frozen
class Asked:
    """The panels of a place, and what is said of those that are left out."""

    filled: tuple[Filled, ...] = ()
    left_out: tuple[str, ...] = ()


def asked(panels: Iterable[Panel], places: Sequence[str], about: Any) -> Asked:
    """Ask the panels of some places what they show.

    Args:
        panels: Any panels.
        places: The places.
        about: What their functions get: a copy, so that none changes what is written of the run.
    """
    chosen = [panel for panel in panels if panel.place in places]
    if not chosen:
        return Asked()
    own = about.apart() if isinstance(about, Report) else copy.deepcopy(about)
    found, told = [], []
    for panel in chosen:
        try:
            filled = _fill(panel, own)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - the page is worth more than a panel
            told.append(left_out(panel, error))
        else:
            found += [filled] if filled is not None else []
    return Asked(tuple(found), tuple(told))


def _fill(panel: Panel, about: Any) -> Filled | None:
    function, _ = panel.load()
    made = function(about)
    if made is None:
        return None
    if panel.template:
        if not isinstance(made, Mapping):
            msg = f"{panel.target} must return a mapping for its template, returned {type(made).__name__}"
            raise TypeError(msg)
        return Filled(panel, data=made)
    shown = tuple(each for block in made for each in drawn(block))
    return Filled(panel, shown) if shown else None


def left_out(panel: Panel, error: BaseException, samples: str = "") -> str:
    """Return what is said of a panel that is left out."""
    place = place_in_template(error)
    return f"{panel.known_as} is left out{samples}: {error_text(error)}{f' ({place})' if place else ''}"


def says_left_out(warning: str) -> bool:
    """Return whether a warning is of a panel; pages written again find it anew."""
    return _LEFT_OUT.match(warning) is not None


def folders(panels: Iterable[Panel]) -> Mapping[str, tuple[Path, ...]]:
    """Return where the templates of panels lie, by plugin; a panel that cannot be loaded has none."""
    found: dict[str, dict[Path, None]] = {}
    for panel in panels:
        if panel.template:
            try:
                found.setdefault(panel.plugin, {})[panel.load()[1]] = None
            except KeyboardInterrupt:
                raise
            except BaseException:  # noqa: BLE001, S112 - told where it is asked
                continue
    return {plugin: tuple(places) for plugin, places in found.items()}


class Sheets:
    """Panels as HTML."""

    def __init__(self, env: jinja2.Environment, panels: Iterable[Panel], *, rows: bool = True) -> None:
        self._env, self._rows = env, rows
        self._of_samples = tuple(panel for panel in panels if panel.place == "sample")
        self._samples: Counter[Panel] = Counter()
        self._first: dict[Panel, BaseException] = {}
        self.titles: dict[str, None] = {}
        """Of the panels that have shown something of a sample."""

    def rendered(self, found: Asked) -> tuple[tuple[tuple[Filled, Markup], ...], tuple[str, ...]]:
        """Return panels with their HTML, and what is said of those left out."""
        shown, told = [], list(found.left_out)
        for filled in found.filled:
            try:
                shown.append((filled, self._render(filled)))
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # noqa: BLE001 - the page is worth more than a panel
                told.append(left_out(filled.panel, error))
        return tuple(shown), tuple(told)

    def shows(self, rows: Iterable[Mapping[str, Any]]) -> bool:
        """Return whether any panel shows something of samples: of those rendered, else of these; no failure counts."""
        for row in () if self.titles else rows:
            for panel in self._of_samples:
                with contextlib.suppress(Exception):
                    if _fill(panel, row) is not None:
                        self.titles[panel.title] = None
        return bool(self.titles)

    def of_sample(self, row: Mapping[str, Any]) -> Iterator[Markup]:
        """Yield what panels show of a sample; where one fails it is missing and counted."""
        for panel in self._of_samples:
            try:
                filled = _fill(panel, row)
                html = None if filled is None else self._render(filled)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # noqa: BLE001 - a sample is worth more than a panel
                self._samples[panel] += 1
                self._first.setdefault(panel, error)
            else:
                if html is not None:
                    self.titles[panel.title] = None
                    yield html

    def left_out_of_samples(self) -> tuple[str, ...]:
        """Return what is said of panels that are missing in samples."""
        return tuple(
            left_out(panel, error, f" of {(n := self._samples[panel])} sample{'' if n == 1 else 's'}, first")
            for panel, error in self._first.items()
        )

    def _render(self, filled: Filled) -> Markup:
        panel = filled.panel
        template, where = _FRAMES[panel.place]
        body = ""
        if filled.data is not None:
            body = self._env.get_template(f"{panel.plugin}/{panel.template}").render(
                data=filled.data, title=panel.title
            )
        known = {"filled": filled, "body": Markup(body), "where": where if self._rows else None}  # noqa: S704 - escaped
        return Markup(self._env.get_template(template).render(known))  # noqa: S704 - the same
