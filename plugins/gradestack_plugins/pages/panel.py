"""Panels: what plugins show on pages.

Each is asked for what it shows; one that cannot costs only itself.
"""

from __future__ import annotations

import contextlib
import copy
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
import msgspec
from markupsafe import Markup

from gradestack import Registry, Report, error_text
from gradestack_plugins.pages.blocks import Panel
from gradestack_plugins.pages.draw import Shape, drawn
from gradestack_plugins.pages.text import token

PAGE = "report.html"
_LEFT_OUT = re.compile(r"panel '[a-z0-9_-]*' of plugin \S+ is left out")
_HAS_PLACE = re.compile(r"\(\S+\.py:\d+\)$")
_FRAMES = {"sample": "_panel_of_sample.html", "page": "_panel_of_page.html"}
"""Place -> what stands around a panel there."""


class Placed(msgspec.Struct, frozen=True):
    """A panel with its name, and the name of the plugin it comes from."""

    name: str
    plugin: str
    panel: Panel

    @property
    def known_as(self) -> str:
        """How messages name it."""
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
    """The panels there are, and what is said of those that are left out."""

    placed: tuple[Placed, ...] = ()
    left_out: tuple[str, ...] = ()

    def at(self, *places: str) -> tuple[Placed, ...]:
        """Return the panels of some places."""
        return tuple(each for each in self.placed if each.panel.place in places)


def panels_of(registry: Registry | None) -> Panels:
    """Return the panels that plugins offer, plugin by plugin.

    One that cannot be used is left out.
    """
    found, told = [], []
    for plugin in () if registry is None else registry.plugins:
        for component in [each for each in plugin.components if each.kind == "panel"]:
            name = component.name
            try:
                found.append(Placed(name, plugin.name, Registry.loaded(component, plugin)))
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # noqa: BLE001 - the page is worth more than a panel
                told.append(
                    f"panel {name!r} of plugin {plugin.name} is left out: {error_text(error)}"
                )
    return Panels(tuple(found), tuple(told))


def panels(report: Report) -> Panels:
    """Return the panels of a report's plugins, loaded once."""
    if "panels" not in report.shared:
        report.shared["panels"] = panels_of(report.registry)
    found: Panels = report.shared["panels"]
    return found


class Asked(msgspec.Struct, frozen=True):
    """The panels of some places with their blocks, and what is said of those left out."""

    filled: tuple[Shape, ...] = ()
    left_out: tuple[str, ...] = ()


def asked(found: Panels, places: Sequence[str], about: Any) -> Asked:
    """Ask the panels of some places what they show."""
    chosen = found.at(*places)
    if not chosen:
        return Asked((), found.left_out)
    own = about.apart() if isinstance(about, Report) else copy.deepcopy(about)
    filled, told = [], list(found.left_out)
    for placed in chosen:
        try:
            filled += _fill(placed, own)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - the page is worth more than a panel
            told.append(left_out(placed, error))
    return Asked(tuple(filled), tuple(told))


def _fill(placed: Placed, about: Any) -> list[Shape]:
    """Return what a panel shows; nothing where it has nothing to show."""
    made = placed.panel(about)
    if made is None:
        return []
    shown = tuple(each for block in made for each in drawn(block))  # they may be made one by one
    return [Shape(placed=placed, title=placed.panel.title, blocks=shown)] if shown else []


def left_out(placed: Placed, error: BaseException, samples: str = "") -> str:
    """Return what is said of a panel that is left out."""
    said, code = error_text(error), placed.panel.__code__
    # An error in what it returned has no line of its own: then the one where that was made.
    shown = f"{Path(code.co_filename).name}:{code.co_firstlineno}"
    place = "" if _HAS_PLACE.search(said) else shown
    return f"{placed.known_as} is left out{samples}: {said}{f' ({place})' if place else ''}"


def says_left_out(warning: str) -> bool:
    """Return whether a warning is of a panel; pages written again find it anew."""
    return _LEFT_OUT.match(warning) is not None


class Sheets:
    """Panels as HTML."""

    def __init__(self, env: jinja2.Environment, found: Panels, *, rows: bool = True) -> None:
        self._env, self._rows = env, rows
        self._of_samples = found.at("sample")
        self._samples: Counter[Placed] = Counter()
        self._first: dict[Placed, BaseException] = {}
        self.titles: dict[str, None] = {}
        """Of the panels that have shown something of a sample."""

    def rendered(self, found: Asked) -> tuple[tuple[tuple[Shape, Markup], ...], tuple[str, ...]]:
        """Return panels with their HTML, and what is said of those left out."""
        shown, told = [], list(found.left_out)
        for filled in found.filled:
            try:
                shown.append((filled, self._render(filled)))
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # noqa: BLE001 - the page is worth more than a panel
                told.append(left_out(filled.placed, error))
        return tuple(shown), tuple(told)

    def shows(self, rows: Iterable[Mapping[str, Any]]) -> bool:
        """Return whether any panel shows something of samples: of those rendered, else of these.

        No failure counts.
        """
        for row in () if self.titles else rows:
            for placed in self._of_samples:
                with contextlib.suppress(Exception):
                    self.titles |= dict.fromkeys(each.title for each in _fill(placed, row))
        return bool(self.titles)

    def of_sample(self, row: Mapping[str, Any]) -> Iterator[Markup]:
        """Yield what panels show of a sample; where one fails it is missing and counted."""
        for placed in self._of_samples:
            try:
                found = [(filled.title, self._render(filled)) for filled in _fill(placed, row)]
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # noqa: BLE001 - a sample is worth more than a panel
                self._samples[placed] += 1
                self._first.setdefault(placed, error)
            else:
                for title, html in found:
                    self.titles[title] = None
                    yield html

    def left_out_of_samples(self) -> tuple[str, ...]:
        """Return what is said of panels that are missing in samples."""
        return tuple(
            left_out(
                placed,
                error,
                f" of {(n := self._samples[placed])} sample{'' if n == 1 else 's'}, first",
            )
            for placed, error in self._first.items()
        )

    def _render(self, filled: Shape) -> Markup:
        place = filled.placed.panel.place
        # links to samples lead to the report page
        where = (PAGE if place == "page" else "") if self._rows else None
        frame = self._env.get_template(_FRAMES.get(place, "_panel.html"))
        # escaped
        return Markup(frame.render(filled=filled, where=where))  # noqa: S704
