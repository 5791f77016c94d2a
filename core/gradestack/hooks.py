"""Hook specifications: how a plugin tells the kernel what it has."""

from __future__ import annotations

from collections.abc import Iterable

import pluggy

from gradestack.api import Component

NAME = "gradestack"
"""Entry-point group, pluggy project name and hook prefix."""

hookspec = pluggy.HookspecMarker(NAME)
hookimpl = pluggy.HookimplMarker(NAME)
"""Decorator for hook implementations in plugins."""


@hookspec
def gradestack_components() -> Iterable[Component]:
    """Return the components this plugin offers, without importing their classes.

    Called once for every installed plugin, whether the suite uses it or not, so it must be cheap: a tuple of
    :class:`gradestack.api.Component` records. Results of all plugins are collected; none stops the others.

    Returns:
        Components; an empty iterable is fine.
    """
    return ()


class Hooks:
    """The hook specifications as one object, for :func:`pluggy.PluginManager.add_hookspecs`."""

    gradestack_components = staticmethod(gradestack_components)
