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
from typing import Any, ClassVar, NamedTuple, get_type_hints

import pluggy

from gradestack._version import __version__
from gradestack.errors import LOCAL, ConfigError, PluginError, error_text, suggest
from gradestack.hooks import FUNCTIONS, KINDS, NAME, Component, Kind
from gradestack.installed import installed_entry_points

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


_NAME = re.compile(r"[a-z][a-z0-9_]*(-[a-z0-9_]+)*")
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
        return f"{self.name} ({self.release})" if self.release != LOCAL else self.name


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


class Registry:
    """Everything discovered at one time. Build one with ``discover``; there is no global one."""

    def __init__(self, plugins: Sequence[Plugin], unknown: Sequence[str] = ()) -> None:
        self.plugins, self.unknown = tuple(plugins), list(unknown)
        offered: dict[tuple[Kind, str], list[tuple[Component, Plugin]]] = {}
        for plugin in sorted(
            self.plugins, key=lambda each: each.distribution != BUILT_IN
        ):  # ours first
            for component in plugin.components:
                offered.setdefault((component.kind, component.name), []).append((component, plugin))
        self._offers: dict[tuple[Kind, str], list[Offer]] = {}
        for (kind, name), pairs in sorted(offered.items()):
            owners, alone = " and ".join(str(plugin) for _, plugin in pairs), len(pairs) == 1
            names = [qualified(*pair) for pair in pairs]
            conflict = (
                None
                if alone
                else f"{kind} {name!r} is offered by {owners}; write {' or '.join(names)}"
            )
            if alone or pairs[0][1].distribution == BUILT_IN:
                names[0] = name
            self._offers[kind, name] = [
                Offer(*pair, own, conflict) for pair, own in zip(pairs, names, strict=True)
            ]

    @property
    def conflicts(self) -> list[str]:
        """What several distributions offer under one name."""
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
        return [name for each, name in self._offers if each == kind]

    def components(self) -> list[tuple[Component, Plugin]]:
        """Return every component with its plugin, sorted by kind and name."""
        return [offer[:2] for offers in self._offers.values() for offer in offers]

    def sound(self, kind: Kind) -> dict[str, Any]:
        """Return what components of a kind stand for, by name.

        One that is broken matters only to those who name it.
        """
        found = {}
        for each, name in self._offers:
            if each == kind:
                with contextlib.suppress(PluginError):
                    found[name] = self.loaded(*self.find(kind, name)[:2])
        return found

    def offers(self, kind: Kind, name: str) -> list[Offer]:
        """Return what is called ``NAME``, ours first, or the one called ``DISTRIBUTION:NAME``."""
        if found := self._offers.get((kind, name)):
            return found
        distribution, _, own = name.rpartition(":")
        offers = self._offers.get((kind, own), ()) if distribution else ()
        return [each for each in offers if normal(each.plugin.distribution) == normal(distribution)]

    def find(self, kind: Kind, name: str) -> Offer:
        """Return a component, by ``NAME`` or ``DISTRIBUTION:NAME``, and its plugin.

        Of several of one name ours.

        Where there is none a ConfigError says so; a PluginError, where a broken plugin may have it
        or several have it.
        """
        found = self.offers(kind, name)
        if len(found) == 1 or (found and found[0].plugin.distribution == BUILT_IN):
            return found[0]
        if found:
            raise PluginError(str(found[0].conflict))
        known = self.names(kind)
        hint = suggest(name, known) or (
            f"; it is a stack: --stack {name}" if self.offers("stack", name) else ""
        )
        if self.broken and not suggest(name, known, cutoff=0.8):
            broken = [f"plugin {plugin}: {plugin.error}" for plugin in self.broken]
            raise PluginError(
                f"unknown {kind} {name!r}{hint}; it may belong to a plugin that cannot be loaded",
                *broken,
            )
        also = "" if hint else f"; there are: {', '.join(known) or 'none'}"
        raise ConfigError(f"unknown {kind} {name!r}{hint}{also}")

    def load(self, kind: Kind, name: str) -> Any:
        """Import and return a component's class (or a stack's function).

        PluginError where it is broken.
        """
        return self.loaded(*self.find(kind, name)[:2])

    @staticmethod
    def loaded(component: Component, plugin: Plugin) -> Any:
        """Return what a component of a plugin stands for, likewise."""
        cause = None
        try:
            module, _, names = component.target.partition(":")
            target = operator.attrgetter(names)(importlib.import_module(module))
            if (problem := flaw(target, component.kind)) is None:
                return target
            problem = f": {component.target} {problem}"
        # whatever keeps it from being imported
        except (Exception, SystemExit) as error:  # noqa: BLE001
            hint = suggest(error.name, dir(error.obj)) if isinstance(error, AttributeError) else ""
            problem, cause = f" cannot be loaded: {type(error).__name__}: {error}{hint}", error
        raise PluginError(
            f"{component.kind} {component.name!r} of plugin {plugin}{problem}"
        ) from cause


def flaw(target: Any, kind: Kind) -> str | None:
    """Return why something is not what a component of a kind names.

    A class of its contract, or a stack's function.

    A class without options need not be an attrs class: it is made one here.
    """
    if kind == "panel":
        is_panel = callable(target) and getattr(target, "contract", None) == kind
        return None if is_panel else "is no function under @blocks.panel(TITLE)"
    if kind in FUNCTIONS:
        what = "click command" if kind == "command" else "function"
        return None if callable(target) else f"is not a {what}"
    import attrs  # noqa: PLC0415 - nothing of it is needed to list what is installed

    from gradestack.api import Contract, misdeclared  # noqa: PLC0415

    if not (
        isinstance(target, type)
        and issubclass(target, Contract)
        and getattr(target, "contract", None) == kind
    ):
        return f"is not a class derived from gradestack.{kind.capitalize()}"
    if wrong := misdeclared(target):
        return wrong
    if lacking := sorted(getattr(target, "__abstractmethods__", ())):
        methods = (
            f"{each}({', '.join(inspect.signature(getattr(target, each)).parameters)})"
            for each in lacking
        )
        return f"has no method {', '.join(methods)}"
    if attrs.has(target):
        own = [each.name for each in attrs.fields(target) if not each.inherited]
        return (
            _taken(target, taken)
            if (taken := [n for n in own if hasattr(target.__mro__[1], n)])
            else None
        )
    if target.__init__ is not object.__init__:
        return "has an __init__ of its own; write its options as fields under @attrs.frozen instead"
    if not all(
        str(each).startswith(("ClassVar", "typing.ClassVar"))
        for each in target.__annotations__.values()
    ):
        return "is no attrs class; is @attrs.frozen missing?"
    attrs.frozen(slots=False)(target)  # in place, so that it can be pickled by its name
    return None


def _taken(target: type, names: Sequence[str]) -> str | None:
    """Return which of some options has the name, and not the type, of something else that the
    contract has.
    """
    own, theirs = (get_type_hints(each) for each in target.__mro__[:2])
    for name in names:
        if name in theirs and theirs[name] not in (own[name], ClassVar[own[name]]):
            return f"has an option by the name of the contract's {name!r}; name it otherwise"
    return None


def _problem(component: object) -> str | None:
    if not isinstance(component, Component):
        return (
            f"gradestack_components returned {component!r}, expected gradestack.Component records"
        )
    if component.kind not in KINDS:
        return (
            f"component {component.name!r} has unknown kind "
            f"{component.kind!r}{suggest(component.kind, KINDS)}"
        )
    if not isinstance(component.name, str) or not _NAME.fullmatch(component.name):
        return f"component name {component.name!r} must be lower case letters, digits, underscores"
    if ":" not in component.target:
        return (
            f"component {component.name!r}: target {component.target!r} must look like "
            "'package.module:Name'"
        )
    return None


def _components(
    manager: pluggy.PluginManager, name: str
) -> tuple[tuple[Component, ...], str | None]:
    """Return what a plugin offers, and what is wrong with the rest of it."""
    hooks: list[Any] = [
        each
        for each in manager.hook.gradestack_components.get_hookimpls()
        if each.plugin_name == name
    ]
    if not hooks:
        raise PluginError("it implements no gradestack_components hook (is @hookimpl missing?)")
    lists = (
        [given] if isinstance(given := hook.function(), Component) else given for hook in hooks
    )
    found = [(component, _problem(component)) for given in lists for component in given]
    problems = [problem for _, problem in found if problem]
    return tuple(component for component, problem in found if not problem), "; ".join(
        problems
    ) or None


def _hooks_of(place: str) -> Any:
    """Return the hooks of the module that is named, without the rest, which pluggy takes long to
    look through.
    """
    module, _, names = place.partition(":")
    plugin: Any = importlib.import_module(module)
    plugin = operator.attrgetter(names)(plugin) if names else plugin
    vars(alone := ModuleType(NAME)).clear()
    vars(alone).update(
        {name: each for name, each in vars(plugin).items() if hasattr(each, f"{NAME}_impl")}
    )
    return alone if isinstance(plugin, ModuleType) else plugin


def _load(
    manager: pluggy.PluginManager,
    name: str,
    distribution: str,
    version: str,
    plugin: object,
    requires: str = "",
) -> Plugin:
    loaded, key = Plugin(name, distribution, version), f"{distribution}:{name}"
    if lacking := unmet(requires):
        return loaded._replace(error=f"needs gradestack {lacking}, this is {__version__}")
    try:
        manager.register(_hooks_of(plugin) if isinstance(plugin, str) else plugin, key)
        manager.check_pending()
        components, problem = _components(manager, key)
        return loaded._replace(components=components, error=problem)
    # one that fails in any way must not take the others with it
    except (Exception, SystemExit) as error:  # noqa: BLE001
        if manager.has_plugin(key):
            manager.unregister(name=key)
        message = str(error) if isinstance(error, PluginError) else error_text(error)
        if isinstance(error, pluggy.PluginValidationError):
            unknown_hook = str(error).partition(" in plugin")[0]
            message = f"{unknown_hook} (did you mean 'gradestack_components'?)"
        return loaded._replace(error=message)


def unmet(requires: str, version: str = __version__) -> str:
    """Return which clauses of ``>=0.2,<1`` a version does not meet, joined.

    What cannot be read is met.
    """
    if not requires:
        return ""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet  # noqa: PLC0415 - few say so

    found = []
    for clause in filter(None, map(str.strip, requires.split(","))):
        with contextlib.suppress(InvalidSpecifier):
            found += [clause] * (not SpecifierSet(clause).contains(version, prereleases=True))
    return ",".join(found)


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
    named = None if limit is None else {name.strip() for name in limit.split(",") if name.strip()}
    installed = installed_entry_points()
    wanted = [
        entry
        for entry in installed
        if named is None
        or entry.distribution == BUILT_IN
        or named & {entry.name, entry.distribution}
    ]
    plugins = [_load(manager, *entry) for entry in wanted]
    plugins += [_load(manager, name, "local", "0", plugin) for name, plugin in extra]
    known = {name for entry in installed for name in (entry.name, entry.distribution)}
    return Registry(plugins, sorted((named or set()) - known))
