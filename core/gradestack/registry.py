"""Discovery: the hook, which plugins are installed, what they offer, and which of them
are broken.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import operator
import os
import re
import sys
from collections.abc import Iterable, Sequence
from types import ModuleType
from typing import Any, NamedTuple

import pluggy

from gradestack._version import __version__
from gradestack.errors import LOCAL, ConfigError, PluginError, error_text, suggest
from gradestack.hooks import FUNCTIONS, KINDS, NAME, Component, Kind
from gradestack.installed import installed_entry_points
from gradestack.patterns import compile_later

hookspec = pluggy.HookspecMarker(NAME)


@hookspec
def gradestack_components() -> Iterable[Component]:
    """Return the components this plugin offers, without importing their classes.

    Called once for every installed plugin, whether the suite uses it or not, so it must be cheap: a
    tuple of ``gradestack.Component`` records. Results of all plugins are collected; none stops the
    others.

    Returns:
        Components; an empty iterable is fine.
    """
    return ()


_NAME = compile_later(r"[a-z][a-z0-9_]*(-[a-z0-9_]+)*")
BUILT_IN = "gradestack"
"""Distribution whose plugins ``GRADESTACK_PLUGINS=""`` keeps."""


def normal(distribution: str) -> str:
    """Return a distribution's name as package indexes compare it.

    ``Acme.Graders`` is ``acme-graders``.
    """
    return re.sub(r"[-_.]+", "-", distribution).lower()


def qualified(component: Component, plugin: Plugin) -> str:
    """Return the name that says which of several components is meant: ``acme-graders:shout``."""
    return f"{normal(plugin.distribution)}:{component.name}"


class Plugin(NamedTuple):
    """One installed plugin, sound or broken."""

    name: str
    distribution: str
    version: str
    components: tuple[Component, ...] = ()
    error: str | None = None

    @property
    def release(self) -> str:
        """Distribution and version, as results name them."""
        return f"{self.distribution} {self.version}"

    def __str__(self) -> str:
        if self.release != LOCAL:
            return f"{self.name} ({self.release})"
        return self.name


class Offer(NamedTuple):
    """One component among all that were discovered."""

    component: Component
    plugin: Plugin
    name: str
    """The shortest it has: without its distribution where that says nothing."""
    conflict: str | None = None
    """What several distributions offer under the bare name, with how each is told from
    the others.
    """


def _make_offers(kind: Kind, name: str, pairs: Sequence[tuple[Component, Plugin]]) -> list[Offer]:
    """Return the components of one kind and name, each with the shortest name it has."""
    if len(pairs) == 1:
        return [Offer(*pairs[0], name)]
    names = [qualified(*pair) for pair in pairs]
    owners = " and ".join(str(plugin) for _, plugin in pairs)
    conflict = f"{kind} {name!r} is offered by {owners}; write {' or '.join(names)}"
    if pairs[0][1].distribution == BUILT_IN:
        names[0] = name
    return [Offer(*pair, shortest, conflict) for pair, shortest in zip(pairs, names, strict=True)]


class Registry:
    """Everything discovered at one time. Build one with ``discover``; there is no global one."""

    def __init__(self, plugins: Sequence[Plugin], unknown: Sequence[str] = ()) -> None:
        self.plugins = tuple(plugins)
        self.unknown = list(unknown)
        offered: dict[tuple[Kind, str], list[tuple[Component, Plugin]]] = {}
        # ours first
        for plugin in sorted(self.plugins, key=lambda plugin: plugin.distribution != BUILT_IN):
            for component in plugin.components:
                offered.setdefault((component.kind, component.name), []).append((component, plugin))
        self._offers = {key: _make_offers(*key, pairs) for key, pairs in sorted(offered.items())}

    @property
    def conflicts(self) -> list[str]:
        """Conflicts: several distributions offer components of one name."""
        return [offers[0].conflict for offers in self._offers.values() if offers[0].conflict]

    @property
    def broken(self) -> tuple[Plugin, ...]:
        """Plugins that could not be loaded."""
        return tuple(plugin for plugin in self.plugins if plugin.error)

    def extended(self, plugin: Plugin) -> Registry:
        """Return a registry with one plugin more."""
        return Registry([*self.plugins, plugin], self.unknown)

    def names(self, kind: Kind) -> list[str]:
        """Return the sorted names of all components of a kind."""
        return [name for offered_kind, name in self._offers if offered_kind == kind]

    def components(self) -> list[tuple[Component, Plugin]]:
        """Return every component with its plugin, sorted by kind and name."""
        return [offer[:2] for offers in self._offers.values() for offer in offers]

    def sound(self, kind: Kind) -> dict[str, Any]:
        """Return the classes or functions of a kind's components, by name.

        One that is broken matters only to those who name it.
        """
        sound = {}
        for name in self.names(kind):
            with contextlib.suppress(PluginError):
                sound[name] = self.load(kind, name)
        return sound

    def offers(self, kind: Kind, name: str) -> list[Offer]:
        """Return the components called ``NAME``, ours first, or the one called
        ``DISTRIBUTION:NAME``.
        """
        offers = self._offers.get((kind, name))
        if offers:
            return offers
        distribution, _, bare_name = name.rpartition(":")
        return [
            offer
            for offer in self._offers.get((kind, bare_name), ())
            if distribution and normal(offer.plugin.distribution) == normal(distribution)
        ]

    def find(self, kind: Kind, name: str) -> Offer:
        """Return a component, by ``NAME`` or ``DISTRIBUTION:NAME``, and its plugin.

        Of several of one name ours.

        Where there is none a ConfigError says so; a PluginError, where a broken plugin may have it
        or several have it.
        """
        offers = self.offers(kind, name)
        if offers and (len(offers) == 1 or offers[0].plugin.distribution == BUILT_IN):
            return offers[0]
        if offers:
            raise PluginError(str(offers[0].conflict))
        raise self._unknown(kind, name)

    def _unknown(self, kind: Kind, name: str) -> ConfigError | PluginError:
        """Return the error of a name that no component has."""
        known = self.names(kind)
        hint = suggest(name, known)
        if not hint and self.offers("stack", name):
            hint = f"; it is a stack: --stack {name}"
        problem = f"unknown {kind} {name!r}{hint}"
        if self.broken and not suggest(name, known, cutoff=0.8):
            broken = [f"plugin {plugin}: {plugin.error}" for plugin in self.broken]
            what = "it may belong to a plugin that cannot be loaded"
            return PluginError(f"{problem}; {what}", *broken)
        if hint:
            return ConfigError(problem)
        return ConfigError(f"{problem}; there are: {', '.join(known) or 'none'}")

    def load(self, kind: Kind, name: str) -> Any:
        """Import and return a component's class (or a stack's function).

        PluginError where it is broken.
        """
        return self.loaded(*self.find(kind, name)[:2])

    @staticmethod
    def loaded(component: Component, plugin: Plugin) -> Any:
        """Import and return the class or function of a plugin's component, likewise."""
        cause = None
        try:
            target = _import_target(component.target)
            problem = flaw(target, component.kind)
            if problem is None:
                return target
            problem = f": {component.target} {problem}"
        # whatever keeps it from being imported
        except (Exception, SystemExit) as error:  # noqa: BLE001
            hint = ""
            if isinstance(error, AttributeError):
                known = dir(error.obj)
                hint = suggest(error.name, known)
            problem = f" cannot be loaded: {type(error).__name__}: {error}{hint}"
            cause = error
        what = f"{component.kind} {component.name!r} of plugin {plugin}"
        raise PluginError(f"{what}{problem}") from cause


def _import_target(target: str) -> Any:
    """Return the module, or what stands in it, that ``package.module:NAME`` means."""
    module_name, _, name = target.partition(":")
    module = importlib.import_module(module_name)
    if name:
        return operator.attrgetter(name)(module)
    return module


def flaw(target: Any, kind: Kind) -> str | None:
    """Find why an object cannot be a component of a kind; None if it can.

    It has to be a class of the kind's contract or, for a stack, a function.

    A class without options need not be an attrs class: it is made one here.
    """
    if kind == "panel":
        is_panel = callable(target) and getattr(target, "contract", None) == kind
        return None if is_panel else "is no function under @blocks.panel(TITLE)"
    if kind in FUNCTIONS:
        noun = "function"
        if kind == "command":
            noun = "click command"
        if callable(target):
            return None
        return f"is not a {noun}"
    import attrs  # noqa: PLC0415 - nothing of it is needed to list what is installed

    from gradestack.api import Contract  # noqa: PLC0415

    is_class = isinstance(target, type) and issubclass(target, Contract)
    if not is_class or getattr(target, "contract", None) != kind:
        return f"is not a class derived from gradestack.{kind.capitalize()}"
    lacking = _missing_methods(target)
    if lacking is not None or attrs.has(target):
        return lacking
    if target.__init__ is not object.__init__:
        return "has an __init__ of its own; write its options as fields under @attrs.frozen instead"
    constants = ("ClassVar", "typing.ClassVar")
    hints = target.__annotations__.values()
    if not all(str(hint).startswith(constants) for hint in hints):
        return "is no attrs class; is @attrs.frozen missing?"
    attrs.frozen(slots=False)(target)  # in place, so that it can be pickled by its name
    return None


def _missing_methods(target: type) -> str | None:
    methods = []
    for name in sorted(getattr(target, "__abstractmethods__", ())):
        parameters = inspect.signature(getattr(target, name)).parameters
        methods.append(f"{name}({', '.join(parameters)})")
    if methods:
        return f"has no method {', '.join(methods)}"
    return None


def _problem(component: object) -> str | None:
    """Find what is wrong with something that a hook returned as a component."""
    if not isinstance(component, Component):
        what = "expected gradestack.Component records"
        return f"gradestack_components returned {component!r}, {what}"
    kind = component.kind
    name = component.name
    target = component.target
    if kind not in KINDS:
        return f"component {name!r} has unknown kind {kind!r}{suggest(kind, KINDS)}"
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        return f"component name {name!r} must be lower case letters, digits, underscores"
    if ":" not in target:
        return f"component {name!r}: target {target!r} must look like 'package.module:Name'"
    return None


def _components(
    manager: pluggy.PluginManager, name: str
) -> tuple[tuple[Component, ...], str | None]:
    """Return the sound components of a plugin, and the problems of the others as one text."""
    hooks = manager.hook.gradestack_components.get_hookimpls()
    own_hooks: list[Any] = [hook for hook in hooks if hook.plugin_name == name]
    if not own_hooks:
        raise PluginError("it implements no gradestack_components hook (is @hookimpl missing?)")
    components: list[Component] = []
    problems: list[str] = []
    for hook in own_hooks:
        returned = hook.function()
        for component in [returned] if isinstance(returned, Component) else returned:
            problem = _problem(component)
            if problem is None:
                components.append(component)
            else:
                problems.append(problem)
    return tuple(components), "; ".join(problems) or None


def _hooks_of(target: str) -> Any:
    """Copy the hooks of a module into an empty one, in which pluggy finds them faster."""
    plugin = _import_target(target)
    if not isinstance(plugin, ModuleType):
        return plugin
    hooks = ModuleType(NAME)
    vars(hooks).clear()
    for name, member in vars(plugin).items():
        if hasattr(member, f"{NAME}_impl"):
            setattr(hooks, name, member)
    return hooks


def _load(
    manager: pluggy.PluginManager,
    name: str,
    distribution: str,
    version: str,
    plugin: object,
    requires: str = "",
) -> Plugin:
    """Register a plugin and collect its components; its errors end up in the Plugin's ``error``."""
    entry = Plugin(name, distribution, version)
    key = f"{distribution}:{name}"
    lacking = unmet(requires)
    if lacking:
        return entry._replace(error=f"needs gradestack {lacking}, this is {__version__}")
    try:
        manager.register(_hooks_of(plugin) if isinstance(plugin, str) else plugin, key)
        manager.check_pending()
        components, problem = _components(manager, key)
        return entry._replace(components=components, error=problem)
    # one that fails in any way must not take the others with it
    except (Exception, SystemExit) as error:  # noqa: BLE001
        if manager.has_plugin(key):
            manager.unregister(name=key)
        message = str(error) if isinstance(error, PluginError) else error_text(error)
        if isinstance(error, pluggy.PluginValidationError):
            unknown_hook = str(error).partition(" in plugin")[0]
            message = f"{unknown_hook} (did you mean 'gradestack_components'?)"
        return entry._replace(error=message)


def unmet(requires: str, version: str = __version__) -> str:
    """Return the clauses of a requirement (``>=0.2,<1``) that a version does not meet, joined.

    A clause that cannot be parsed counts as met.
    """
    if not requires:
        return ""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet  # noqa: PLC0415 - few say so

    clauses = []
    for clause in filter(None, map(str.strip, requires.split(","))):
        with contextlib.suppress(InvalidSpecifier):
            if not SpecifierSet(clause).contains(version, prereleases=True):
                clauses.append(clause)
    return ",".join(clauses)


def discover(extra: Iterable[tuple[str, object]] = (), *, limit: str | None = None) -> Registry:
    """Find all installed plugins (entry-point group ``gradestack``) and return what they offer.

    A broken plugin is recorded, not raised: it matters only to those who use it.

    Args:
        extra: Further (name, plugin object) pairs, registered as if installed; for notebooks and
            tests.
        limit: Names of the plugins or distributions to load, comma-separated, besides the built-in
            ones; "" loads only the built-in ones. Default: the environment variable
            ``GRADESTACK_PLUGINS``, and without it all.
    """
    manager = pluggy.PluginManager(NAME)
    manager.add_hookspecs(sys.modules[__name__])
    limit = os.environ.get("GRADESTACK_PLUGINS") if limit is None else limit
    named = {name.strip() for name in (limit or "").split(",") if name.strip()}
    unknown, plugins = set(named), []
    for entry in installed_entry_points():
        names = {entry.name, entry.distribution}
        unknown -= names
        if limit is None or entry.distribution == BUILT_IN or named & names:
            plugins.append(_load(manager, *entry))
    plugins += [_load(manager, name, "local", "0", plugin) for name, plugin in extra]
    return Registry(plugins, sorted(unknown))
