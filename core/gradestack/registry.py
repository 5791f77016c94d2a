"""Discovery: the hook, which plugins are installed, what they offer, and which of them are broken."""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import os
import re
import sys
import zlib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import pluggy

from gradestack.errors import ConfigError, PluginError, suggest
from gradestack.hooks import KINDS, NAME, Component, Kind

hookspec = pluggy.HookspecMarker(NAME)


@hookspec
def gradestack_components() -> Iterable[Component]:
    """Return the components this plugin offers, without importing their classes.

    Called once for every installed plugin, whether the suite uses it or not, so it must be cheap: a tuple of
    :class:`gradestack.Component` records. Results of all plugins are collected; none stops the others.

    Returns:
        Components; an empty iterable is fine.
    """
    return ()


class Hooks:
    """The hook specifications as one object, for :func:`pluggy.PluginManager.add_hookspecs`."""

    gradestack_components = staticmethod(gradestack_components)


_NAME = re.compile(r"[a-z][a-z0-9_]*(-[a-z0-9_]+)*")
_DISTRIBUTIONS, _FIELDS = (".dist-info", "egg-info"), 4
BUILT_IN = "gradestack"
"""Distribution whose plugins ``GRADESTACK_PLUGINS=""`` keeps."""


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
        return f"{self.name} ({self.release})"


class Registry:
    """Everything discovered at one time. Build one with :func:`discover`; there is no global one."""

    def __init__(self, plugins: Sequence[Plugin]) -> None:
        self.plugins = tuple(plugins)
        self.conflicts: list[str] = []
        self.unknown: list[str] = []
        """Names the limit names and nothing installed has."""
        self._owners: dict[tuple[Kind, str], tuple[Component, Plugin]] = {}
        for plugin in self.plugins:
            for component in plugin.components:
                place = (component.kind, component.name)
                if place in self._owners:
                    other = self._owners[place][1]
                    self.conflicts.append(f"{component.kind} {component.name!r} comes from both {other} and {plugin}")
                else:
                    self._owners[place] = (component, plugin)

    @property
    def broken(self) -> tuple[Plugin, ...]:
        """Plugins that could not be loaded."""
        return tuple(plugin for plugin in self.plugins if plugin.error)

    def extended(self, plugin: Plugin) -> Registry:
        """Return a registry with one plugin more."""
        found = Registry([*self.plugins, plugin])
        found.conflicts[:0] = [each for each in self.conflicts if each not in found.conflicts]
        found.unknown = self.unknown
        return found

    def names(self, kind: Kind) -> list[str]:
        """Return the sorted names of all components of a kind."""
        return sorted(name for each, name in self._owners if each == kind)

    def components(self) -> list[tuple[Component, Plugin]]:
        """Return every component with its plugin, sorted by kind and name."""
        return [self._owners[place] for place in sorted(self._owners)]

    def require_sound(self) -> None:
        """Refuse to work while two distributions claim one name.

        Raises:
            PluginError: Naming both distributions.
        """
        if self.conflicts:
            raise PluginError(
                "plugins are in conflict; uninstall one of each pair, or name those to load in GRADESTACK_PLUGINS",
                *self.conflicts,
            )

    def find(self, kind: Kind, name: str) -> tuple[Component, Plugin]:
        """Return a component and the plugin it comes from.

        Raises:
            ConfigError: No such component.
            PluginError: No such component, and a plugin that may have it is broken.
        """
        found = self._owners.get((kind, name))
        if found:
            return found
        known = self.names(kind)
        hint = suggest(name, known)
        close = bool(suggest(name, known, cutoff=0.8))
        if self.broken and not close:
            broken = [f"plugin {plugin}: {plugin.error}" for plugin in self.broken]
            raise PluginError(
                f"unknown {kind} {name!r}{hint}; it may belong to a plugin that cannot be loaded", *broken
            )
        also = "" if hint else f"; there are: {', '.join(known) or 'none'}"
        raise ConfigError(f"unknown {kind} {name!r}{hint}{also}")

    def load(self, kind: Kind, name: str) -> Any:
        """Import and return a component's class (or a stack's function).

        Raises:
            ConfigError: No such component.
            PluginError: It cannot be imported or is not of its kind.
        """
        component, plugin = self.find(kind, name)
        try:
            target = _imported(component.target)
        except (Exception, SystemExit) as error:
            raise PluginError(
                f"{kind} {name!r} of plugin {plugin} cannot be loaded: {type(error).__name__}: {error}"
            ) from error
        if problem := flaw(target, kind):
            raise PluginError(f"{kind} {name!r} of plugin {plugin}: {component.target} {problem}")
        return target

    def version(self, kind: Kind, name: str) -> str:
        """Return the version a component declares for itself."""
        return str(getattr(self.load(kind, name), "version", "1"))


_NOT_OURS = {"panel": "the contract of panels"}


def flaw(target: Any, kind: Kind) -> str | None:
    """Return why something is not what a component of a kind names: a class of its contract, or a stack's function.

    A class without options need not be an attrs class: it is made one here.
    """
    if kind in ("stack", "command"):
        return None if callable(target) else f"is not a {'function' if kind == 'stack' else 'click command'}"
    import attrs  # noqa: PLC0415 - nothing of it is needed to list what is installed

    from gradestack.api import NEW_AGGREGATOR, Contract, misdeclared  # noqa: PLC0415

    if not (isinstance(target, type) and issubclass(target, Contract) and getattr(target, "contract", None) == kind):
        return "is not a class derived from " + (_NOT_OURS.get(kind) or f"gradestack.{kind.capitalize()}")
    if kind == "aggregator" and (old := _OLD_AGGREGATOR & vars(target).keys()):
        return f"is written for gradestack 0.1 ({', '.join(sorted(old))}): {NEW_AGGREGATOR}"
    if kind == "aggregator" and (wrong := misdeclared(target)):
        return wrong
    if lacking := sorted(getattr(target, "__abstractmethods__", ())):
        methods = (f"{each}({', '.join(inspect.signature(getattr(target, each)).parameters)})" for each in lacking)
        return f"has no method {', '.join(methods)}"
    if not attrs.has(target):
        if target.__init__ is not object.__init__:
            return "has an __init__ of its own; write its options as fields under @attrs.frozen instead"
        if not all(str(each).startswith(("ClassVar", "typing.ClassVar")) for each in target.__annotations__.values()):
            return "is no attrs class; is @attrs.frozen missing?"
        attrs.frozen(slots=False)(target)  # in place, so that it can be pickled by its name
    return None


_OLD_AGGREGATOR = {"start", "add", "add_many", "merge", "finish"}


def _problem(component: object) -> str | None:
    if not isinstance(component, Component):
        return f"gradestack_components returned {component!r}, expected gradestack.Component records"
    if component.kind not in KINDS:
        return f"component {component.name!r} has unknown kind {component.kind!r}{suggest(component.kind, KINDS)}"
    if not isinstance(component.name, str) or not _NAME.fullmatch(component.name):
        return f"component name {component.name!r} must be lower case letters, digits, underscores"
    if ":" not in component.target:
        return f"component {component.name!r}: target {component.target!r} must look like 'package.module:Name'"
    return None


def _components(manager: pluggy.PluginManager, name: str) -> tuple[Component, ...]:
    hooks: list[Any] = [each for each in manager.hook.gradestack_components.get_hookimpls() if each.plugin_name == name]
    if not hooks:
        raise PluginError("it implements no gradestack_components hook (is @hookimpl missing?)")
    found = tuple(component for hook in hooks for component in hook.function())
    for problem in filter(None, map(_problem, found)):
        raise PluginError(problem)
    return found


def _imported(target: str) -> Any:
    """Return what ``package.module:NAME``, or a module, stands for."""
    module, _, names = target.partition(":")
    return functools.reduce(getattr, filter(None, names.split(".")), importlib.import_module(module))


def _load(manager: pluggy.PluginManager, name: str, dist: str, version: str, plugin: object) -> Plugin:
    found = Plugin(name=name, distribution=dist, version=version)
    try:
        manager.register(_imported(plugin) if isinstance(plugin, str) else plugin, name)
        manager.check_pending()
        return found._replace(components=_components(manager, name))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - one that fails in any way must not take the others with it
        if manager.has_plugin(name):
            manager.unregister(name=name)
        said = str(error) if isinstance(error, PluginError) else f"{type(error).__name__}: {error}"
        return found._replace(error=said)


def _environment() -> str:
    """Return what decides which entry points there are: where they are written, and when they were."""
    found = [sys.version]
    for path in sys.path:
        try:
            with os.scandir(path or ".") as entries:
                folders = sorted(each.path for each in entries if each.name.lower().endswith(_DISTRIBUTIONS))
        except OSError:  # an archive, or not there
            folders = None
        for file in [path] if folders is None else [f"{folder}/entry_points.txt" for folder in folders]:
            try:
                stat = os.stat(file)
            except OSError:
                found.append(file)
            else:
                found.append(f"{file} {stat.st_mtime_ns} {stat.st_size}")
    return "\n".join(found)


def _entry_points() -> list[list[str]]:
    """Return name, distribution, version and target of every installed plugin, sorted.

    They are kept in the user's cache, for one state of the environment and where Python may write bytecode:
    importlib.metadata takes a quarter of the time of ``--help``, and is asked when something was installed since.
    """
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA") or os.path.expanduser("~/.cache")
    folder, state = os.path.join(base, "gradestack"), f"{_environment()}\n\n"
    kept = os.path.join(folder, f"plugins-{zlib.crc32(sys.prefix.encode()):08x}.txt")
    text: Any = {"encoding": "utf-8", "errors": "surrogateescape", "newline": "\n"}
    usable = os.path.isabs(base) and not sys.dont_write_bytecode
    with contextlib.suppress(OSError), open(kept if usable else os.devnull, **text) as file:
        if file.read(len(state)) == state:
            found = [line.split("\t") for line in file.read().split("\n")]
            if all(len(each) == _FIELDS for each in found):
                return found
    from importlib.metadata import entry_points  # noqa: PLC0415 - where something was installed since

    entries = list(entry_points(group=NAME))
    dists = {entry.dist for entry in entries}
    of: dict[Any, Any] = {each: (each.metadata["Name"], each.metadata["Version"]) for each in dists if each is not None}
    found = sorted([entry.name, *map(str, of.get(entry.dist, ("unknown", "0"))), entry.value] for entry in entries)
    if usable:
        with contextlib.suppress(OSError):
            os.makedirs(folder, exist_ok=True)
            with open(f"{kept}.{os.getpid()}", "w", **text) as file:
                file.write(state + "\n".join(map("\t".join, found)))
            os.replace(file.name, kept)
    return found


def discover(extra: Iterable[tuple[str, object]] = (), *, limit: str | None = None) -> Registry:
    """Find all installed plugins (entry-point group ``gradestack``) and return what they offer.

    A broken plugin is recorded, not raised: it matters only to those who use it.

    Args:
        extra: Further (name, plugin object) pairs, registered as if installed; for notebooks and tests.
        limit: Names of the plugins to load, comma-separated, besides the built-in ones; "" loads only the built-in
            ones. Default: the environment variable ``GRADESTACK_PLUGINS``, and without it all.
    """
    manager = pluggy.PluginManager(NAME)
    manager.add_hookspecs(Hooks)
    limit = os.environ.get("GRADESTACK_PLUGINS") if limit is None else limit
    named = None if limit is None else {name.strip() for name in limit.split(",") if name.strip()}
    installed = _entry_points()
    found: list[tuple[str, str, str, object]] = []
    conflicts, seen = list[str](), dict[str, str]()
    for name, dist, version, target in installed:
        if named is not None and dist != BUILT_IN and name not in named:
            continue
        if name in seen:
            conflicts.append(f"plugin name {name!r} is taken by both {seen[name]} and {dist} {version}")
            continue
        seen[name] = f"{dist} {version}"
        found.append((name, dist, version, target))
    found += [(name, "local", "0", plugin) for name, plugin in extra]
    registry = Registry([_load(manager, *each) for each in found])
    registry.conflicts[:0] = conflicts
    registry.unknown = sorted((named or set()) - {name for name, *_ in installed})
    return registry
