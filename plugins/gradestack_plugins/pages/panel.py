"""Panels: what plugins show on pages.

Each is asked for what it shows; one that fails costs only itself.
"""

from __future__ import annotations

import contextlib
import copy
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
import msgspec
from markupsafe import Markup

from gradestack import Registry, Report, compile_later, error_text
from gradestack_plugins.pages.blocks import Panel
from gradestack_plugins.pages.draw import Shape, draw_block
from gradestack_plugins.pages.text import token

PAGE = "report.html"
_LEFT_OUT = compile_later(r"panel '[a-z0-9_-]*' of plugin \S+ is left out")
_HAS_PLACE = compile_later(r"\(\S+\.py:\d+\)$")
_FRAMES = {"sample": "_panel_of_sample.html", "page": "_panel_of_page.html"}
"""Place -> what stands around a panel there."""
FIRST = ("lead", "first")
"""Places on the first screen."""


class Placed(msgspec.Struct, frozen=True):
    """A panel with its name, and the name of the plugin it comes from."""

    name: str
    plugin: str
    panel: Panel

    @property
    def known_as(self) -> str:
        """Its name in messages."""
        return f"panel {self.name!r} of plugin {self.plugin}"

    @property
    def id(self) -> str:
        """Its id on the page."""
        return f"panel-{token(self.plugin)}-{self.name}"

    @property
    def file(self) -> str:
        """The file of a panel that is a page of its own."""
        return f"{token(self.plugin.removesuffix('.py'))}-{self.name}.html"


class Panels(msgspec.Struct, frozen=True):
    """The panels of all plugins, and warnings about those that are left out."""

    placed: tuple[Placed, ...] = ()
    left_out: tuple[str, ...] = ()

    def at(self, *places: str) -> tuple[Placed, ...]:
        """Return the panels of some places."""
        return tuple(placed for placed in self.placed if placed.panel.place in places)


def panels_of(registry: Registry | None) -> Panels:
    """Return the panels that plugins offer, plugin by plugin; what cannot be loaded is left out."""
    loaded, warnings = [], []
    for plugin in () if registry is None else registry.plugins:
        for component in [part for part in plugin.components if part.kind == "panel"]:
            name = component.name
            try:
                loaded.append(Placed(name, plugin.name, Registry.loaded(component, plugin)))
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # noqa: BLE001 - the page is worth more than a panel
                why = error_text(error)
                warnings.append(f"panel {name!r} of plugin {plugin.name} is left out: {why}")
    return Panels(tuple(loaded), tuple(warnings))


def panels(report: Report) -> Panels:
    """Return the panels of a report's plugins, loaded once."""
    if "panels" not in report.shared:
        report.shared["panels"] = panels_of(report.registry)
    shared: Panels = report.shared["panels"]
    return shared


class Filled(msgspec.Struct, frozen=True):
    """The panels of some places with their drawn blocks, and warnings about those left out."""

    panels: tuple[Shape, ...] = ()
    """Each with ``placed``, ``title`` and ``blocks``."""
    left_out: tuple[str, ...] = ()

    def at(self, *places: str) -> list[Shape]:
        """Return the panels of some places."""
        return [panel for panel in self.panels if panel.placed.panel.place in places]


def fill_panels(offered: Panels, places: Sequence[str], about: Any) -> Filled:
    """Ask the panels of some places what they show."""
    chosen = offered.at(*places)
    if not chosen:
        return Filled((), offered.left_out)
    if isinstance(about, Report):
        copied = about.copy()
    else:
        copied = copy.deepcopy(about)
    filled = []
    warnings = list(offered.left_out)
    for placed in chosen:
        try:
            filled += _fill(placed, copied)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - the page is worth more than a panel
            warnings.append(left_out(placed, error))
    return Filled(tuple(filled), tuple(warnings))


def _fill(placed: Placed, about: Any) -> list[Shape]:
    """Return a panel with its blocks; nothing where it has nothing to show."""
    made = placed.panel(about)
    if made is None:
        return []
    shapes = tuple(shape for block in made for shape in draw_block(block))  # made one by one, maybe
    if shapes:
        return [Shape(placed=placed, title=placed.panel.title, blocks=shapes)]
    return []


def left_out(placed: Placed, error: BaseException, samples: str = "") -> str:
    """Return the warning about a panel that is left out."""
    message = error_text(error)
    code = placed.panel.__code__
    # An error in what it returned has no line of its own: then the one where that was made.
    shown = f" ({Path(code.co_filename).name}:{code.co_firstlineno})"
    origin = "" if _HAS_PLACE.search(message) else shown
    return f"{placed.known_as} is left out{samples}: {message}{origin}"


def says_left_out(warning: str) -> bool:
    """Return whether a warning is about a panel; pages written again find it anew."""
    return _LEFT_OUT.match(warning) is not None


class Sheets:
    """Panels as HTML."""

    def __init__(self, env: jinja2.Environment, offered: Panels, *, rows: bool = True) -> None:
        self._env, self._rows = env, rows
        self._of_samples = offered.at("sample")
        self._samples: Counter[Placed] = Counter()
        self._first: dict[Placed, BaseException] = {}
        self.titles: dict[str, None] = {}
        """Of the panels that have shown something of a sample."""

    def rendered(self, filled: Filled) -> tuple[tuple[tuple[Shape, Markup], ...], tuple[str, ...]]:
        """Return panels with their HTML, and warnings about those left out."""
        shown = []
        warnings = list(filled.left_out)
        for panel in filled.panels:
            try:
                shown.append((panel, self._render(panel)))
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # noqa: BLE001 - the page is worth more than a panel
                warnings.append(left_out(panel.placed, error))
        return tuple(shown), tuple(warnings)

    def shows(self, rows: Iterable[Mapping[str, Any]]) -> bool:
        """Return whether any panel shows something of samples: of those rendered, else of these.

        No failure counts.
        """
        for row in () if self.titles else rows:
            for placed in self._of_samples:
                with contextlib.suppress(Exception):
                    self.titles |= dict.fromkeys(panel.title for panel in _fill(placed, row))
        return bool(self.titles)

    def of_sample(self, row: Mapping[str, Any]) -> Iterator[Markup]:
        """Yield the HTML of panels about a sample; where one fails it is missing and counted."""
        for placed in self._of_samples:
            try:
                fill = _fill(placed, row)
                shown = [(panel.title, self._render(panel)) for panel in fill]
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # noqa: BLE001 - a sample is worth more than a panel
                self._samples[placed] += 1
                self._first.setdefault(placed, error)
                continue
            for title, html in shown:
                self.titles[title] = None
                yield html

    def left_out_of_samples(self) -> tuple[str, ...]:
        """Return warnings about panels that are missing in samples."""
        warnings = []
        for placed, error in self._first.items():
            count = self._samples[placed]
            samples = f" of {count} sample{'' if count == 1 else 's'}, first"
            warnings.append(left_out(placed, error, samples))
        return tuple(warnings)

    def _render(self, panel: Shape) -> Markup:
        view = panel.placed.panel.place
        # links to samples lead to the report page
        where = None
        if self._rows:
            where = PAGE if view == "page" else ""
        frame = self._env.get_template(_FRAMES.get(view, "_panel.html"))
        # escaped
        return Markup(frame.render(filled=panel, where=where, first=view in FIRST))  # noqa: S704
