"""Panels made of functions, and reports that show them."""

import attrs

from gradestack_plugins.pages.blocks import Panel
from gradestack_plugins.pages.panel import Panels, Placed


def panel_of(function, place="overview", *, name="p", title="P", template="", plugin="mine", module=__name__):
    """Return a panel that shows what a function returns."""
    members = {"place": place, "title": title, "template": template, "__module__": module}
    made = type("Shown", (Panel,), members | {"show": lambda _, about: function(about)})
    return Placed(name, plugin, made())


def with_panels(report, *placed):
    """Return a report whose pages show these panels."""
    return attrs.evolve(report, shared={"panels": Panels(placed)})
