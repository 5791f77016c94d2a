"""Panel: what a plugin shows on a page. Its function is imported when the page is made."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import attrs

from gradestack.errors import PluginError, suggest

Place = Literal["overview", "sample", "compare", "page"]
_NAME = re.compile(r"[a-z][a-z0-9_]*")


@attrs.frozen(kw_only=True)
class Panel:
    """A section of a page: a name for a function that is not imported yet.

    The function gets what its place is about, and returns :mod:`gradestack.blocks`, an iterable of
    them, or for a panel with a template the template's ``data``. None, or no block, leaves the panel out. It must not
    change what it gets, and the same input has to give the same output.
    """

    name: str
    """Lower case, digits and underscores; unique in its plugin."""
    place: Place
    """``overview``: on the report page below its first screen; the function gets the :class:`gradestack.Report`.
    ``sample``: in the drill-down of each sample; it gets the row of results.jsonl. ``compare``: on the page of a
    comparison; it gets the content of comparison.json. ``page``: a page of its own beside the report page, linked from
    there; it gets the report."""
    title: str
    """Heading."""
    target: str
    """``package.module:function``."""
    template: str = ""
    """File of a Jinja template, ``….html``, relative to the folder of the function's module; "" for blocks."""
    plugin: str = ""
    """Name of the plugin it comes from; filled in when plugins are discovered."""

    @property
    def known_as(self) -> str:
        """How messages name it."""
        return f"panel {self.name!r} of plugin {self.plugin}"

    def load(self) -> tuple[Callable[[Any], Any], Path]:
        """Import and return its function, and the folder its template lies in.

        Raises:
            PluginError: There is no such function.
        """
        name, _, attribute = self.target.partition(":")
        try:
            module = importlib.import_module(name)
            found = getattr(module, attribute)
        except (Exception, SystemExit) as error:
            raise PluginError(f"{self.target} cannot be loaded: {type(error).__name__}: {error}") from error
        if not callable(found):
            raise PluginError(f"{self.target} is not a function")
        return found, Path(str(module.__file__)).parent


def offered(plugin: str, found: Sequence[object]) -> tuple[Panel, ...]:
    """Return the panels a plugin's hook returned, each with the plugin's name."""
    seen: set[str] = set()
    for panel in found:
        if not isinstance(panel, Panel):
            raise PluginError(f"gradestack_panels returned {panel!r}, expected gradestack.Panel records")
        if problem := _problem(panel) or ("is offered twice" if panel.name in seen else ""):
            raise PluginError(f"panel {panel.name!r} {problem}")
        seen.add(panel.name)
    return tuple(attrs.evolve(panel, plugin=plugin) for panel in found if isinstance(panel, Panel))


def _problem(panel: Panel) -> str:
    texts = (panel.name, panel.title, panel.target, panel.template)
    if not all(isinstance(text, str) for text in texts) or not panel.title:
        return "needs texts for name, title and target"
    if not _NAME.fullmatch(panel.name):
        return "must be named by lower case letters, digits, underscores"
    if panel.place not in get_args(Place):
        return f"has unknown place {panel.place!r}{suggest(panel.place, get_args(Place))}"
    if ":" not in panel.target:
        return f"has target {panel.target!r}, which must look like 'package.module:function'"
    if panel.template and not panel.template.endswith(".html"):  # what escapes is told by the name
        return f"has template {panel.template!r}, whose name must end in .html"
    return ""


def gradestack_panels() -> Iterable[Panel]:
    """Return the panels this plugin offers, without importing their functions.

    Called once for every installed plugin, whether a run is of its family or not, so it must be cheap: a tuple of
    :class:`gradestack.Panel` records. Their functions are called for every page that is written; one that has nothing
    to show returns None.

    Returns:
        Panels; an empty iterable is fine.
    """
    return ()
