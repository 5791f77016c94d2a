"""From references in a configuration to components, every problem collected with its place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar, get_args

import attrs

from gradestack.api import Profile
from gradestack.copies.addresses import protocol_of, shown_address
from gradestack.errors import ConfigError, GradestackError, PluginError
from gradestack.grading.plan import Stage
from gradestack.hooks import Kind
from gradestack.registry import Registry
from gradestack.suites.code import InFile, code_of_component, file_plugin, from_file
from gradestack.suites.document import Document, show_place
from gradestack.suites.paths import is_remote, local_path_of
from gradestack.suites.strict import Place, Problems, structure

T = TypeVar("T")


def profile_of(component: Any, inherited: Profile) -> Profile:
    """Return the profile a component is given, which may be another than the suite's."""
    own: Any = getattr(component, "profile", None)
    return own if own in get_args(Profile) else inherited


class Resolver:
    """Resolves component references, collecting problems instead of stopping at the first."""

    def __init__(
        self,
        document: Document,
        registry: Registry,
        base: Path | None,
        *,
        allow_code: bool = False,
        allow_remote: bool = False,
    ) -> None:
        self.document, self.registry, self.base = document, registry, base
        self.allow_code, self.allow_remote = allow_code, allow_remote
        self.problems: dict[str, Place] = {}
        self.broken: list[str] = []
        self.warnings: list[str] = []
        self.notes: list[str] = []  # what was decided by the data
        self.asked = ""  # options for the stack or graders that were asked for, on a command line
        self.profile: Profile = "documented"
        self.code: dict[Path, None] = {}
        """Files of the user's own that are in use, in the order they were met."""
        self.stacks: dict[str, Mapping[str, Any]] = {}
        """Stacks that were laid under the suite, as they were made for its inputs."""
        self._local: dict[tuple[Kind, str], tuple[Path, Mapping[str, str]]] = {}
        self._cause: Exception | None = None

    def add_problem(self, place: Place, message: str | Exception) -> None:
        """Record one problem."""
        said = message.line if isinstance(message, GradestackError) else message
        self.problems[f"{self.document.where(place)}: {said}"] = place
        if isinstance(message, Exception):
            self._cause = self._cause or message

    def warn(self, place: Place, text: str) -> None:
        """Add a warning of something that is not wrong."""
        self.warnings.append(f"{self.document.where(place)}: {text}")

    @contextmanager
    def refusals(self, place: Place) -> Iterator[None]:
        """Record a ConfigError raised inside as a problem, and go on behind."""
        try:
            yield
        except ConfigError as error:
            self.add_problem(place, error)

    def has_problem(self, place: Place) -> bool:
        """Return whether there is a problem of this place, or of one below it."""
        return any(each[: len(place)] == place for each in self.problems.values())

    def finish(self) -> None:
        """Raise what was collected."""
        if self.problems:
            count = len(self.problems)
            what = f"{self.document.origin}: {count} problem{'s' if count > 1 else ''} in the configuration"
            raise ConfigError(what, *self.problems, *self.broken) from self._cause
        if self.broken:
            raise PluginError(f"{self.document.origin}: a plugin it uses is broken", *self.broken)

    def portable_warnings(self) -> list[str]:
        """Return the warnings for summary.json, which must not depend on where the suite lies."""
        return [text.replace(self.document.origin, Path(self.document.origin).name, 1) for text in self.warnings]

    def structure(self, data: Any, kind: type[T], place: Place) -> T | None:
        """Return the data as an instance of a class, or None with its problems recorded."""
        try:
            return structure(data, kind, self.base)
        except Problems as problems:
            for below, message in problems.found:
                self.add_problem((*place, *below), message)
        return None

    def sections(self, kind: type[T]) -> T:
        """Return the document as a class, leaving out sections with problems, so that the others are checked too."""
        data = dict(self.document.data)
        while True:
            try:
                return structure(data, kind, self.base)
            except Problems as problems:
                bad = [place for place, _ in problems.found if place]
                for place, message in problems.found:
                    self.add_problem(place, message)
            entries = {place[:2] for place in bad if place[0] in ("graders", "metrics") and len(place) > 1}
            for section, entry in entries:
                data[str(section)] = {key: each for key, each in data[str(section)].items() if str(key) != entry}
            whole = {place[0] for place in bad if place[:2] not in entries}
            if not entries and not whole & set(data):
                self.finish()
            data = {key: value for key, value in data.items() if key not in whole}

    def load_plugins(self) -> None:
        """Add what the files under ``plugins`` offer; where that fails nothing else can be told."""
        written = self.document.data.get("plugins")
        for number, file in enumerate(written if isinstance(written, list) else []):
            place = ("plugins", number)
            if isinstance(file, str) and self._allowed(f"{file} is Python code", place):
                with self.refusals(place):
                    self.registry = self.registry.extended(file_plugin(self._path(file)))
        if self.problems:
            self.finish()

    def _path(self, file: str) -> Path:
        try:
            path = local_path_of(file, self.base)
        except ValueError as error:
            raise ConfigError(str(error)) from error
        self.code[path.resolve()] = None
        return path

    def _allowed(self, why: str, place: Place) -> bool:
        if not self.allow_code:
            self.add_problem(place, f"{why}; pass --allow-code if you trust this suite")
        return self.allow_code

    def may_read(self, text: str, place: Place) -> bool:
        """Return whether an input may be opened; an address that only the suite names is a problem, and is recorded."""
        if not is_remote(text, self.base):
            return True
        protocol_of(text)
        allowed = self.allow_remote or self.document.is_set(place)
        if not allowed:
            why = f"{shown_address(text)} is a remote file; pass --allow-remote if you trust this suite"
            self.add_problem(place, why)
        return allowed

    def registered(self, kind: Kind, name: str, place: Place) -> str | None:
        """Return a component's name in the registry, where ``FILE.py:NAME`` is put first; None with a problem."""
        reference = InFile.parse(name) or InFile.parse(f"{name}:")
        if reference is None:
            return name
        unnamed = "" if reference.name else f", and no {kind} of it is named ({reference.file}:NAME)"
        if not self._allowed(f"{name} is Python code{unnamed}", place):
            return None
        shown = reference.shown
        try:
            path = self._path(reference.file)
            if (kind, shown) not in self._local:
                plugin, options = from_file(reference, kind, path, self.registry)
                self.registry = self.registry.extended(plugin)
                self._local[kind, shown] = path.resolve(), options
        except ConfigError as error:
            self.add_problem(place, error)
            return None
        if (known := self._local[kind, shown][0]) != path.resolve():
            self.add_problem(place, f"{shown} is the name of another file's, too ({known}); rename one of the files")
            return None
        return shown

    def _trusted(self, target: Any, options: Mapping[str, Any], place: Place) -> bool:
        """Return whether options that can have code run are set on the command line, or allowed; say so if not."""
        wary = () if self.allow_code else getattr(target, "trusted_options", ())
        places = [(*place, option) for option in sorted(wary) if options.get(option) is not None]
        refused = [at for at in places if not self.document.is_set(at)]
        for at in refused:
            remedy = f"name it on the command line, --set {show_place(at)}=..., or pass --allow-code"
            self.add_problem(at, f"what is named here can run code on this machine; {remedy} if you trust this suite")
        return not refused

    def stage(
        self, kind: Kind, key: str, reference: str | Mapping[str, Any], place: Place, reserved: tuple[str, ...] = ()
    ) -> Stage | None:
        """Return one component from ``"name"`` or ``{kind: name, option: value, ...}``; None with a problem."""
        options = {"kind": reference} if isinstance(reference, str) else dict(reference)
        name, target = options.pop("kind", None), None
        if not isinstance(name, str):
            problem = "kind is missing" if name is None else f"kind must be text, got {name!r}"
            self.add_problem(place, f"{problem}; there are: {', '.join(self.registry.names(kind))}")
            return None
        at = place if isinstance(reference, str) else (*place, "kind")
        if (name := self.registered(kind, name, at)) is None:
            return None
        if conflict := self.registry.conflict(kind, name):  # where it is none of ours, loading it refuses it
            self.warn(at, f"{conflict}: the first is used")
        name = self.registry.spelled(kind, name)
        with self.refusals(at):
            try:
                target = self.registry.load(kind, name)
            except PluginError as error:
                self.broken.append(f"{self.document.where(place)}: {error.line}")
        code = getattr(target, "runs_code", False)
        if target is None or (code and not self._allowed(f"{name} imports Python code the suite names", place)):
            return None
        if not self._trusted(target, options, place):
            return None
        options = {option: value for option, value in options.items() if option not in reserved}
        path, function = self._local.get((kind, name), (None, {}))
        if function and options:
            self.add_problem((*place, next(iter(options))), "unknown key; a function has no options")
            return None
        if "profile" not in options and any(field.name == "profile" for field in attrs.fields(target)):
            options["profile"] = self.profile
        component: Any = self.structure({**options, **function}, target, place)
        if component is None:
            return None
        if code and isinstance(file := getattr(component, "file", None), Path):
            path = file.resolve()
            self.code[path] = None
        # a text that the component completes, such as a preset with its version, is kept as that
        own = {option: getattr(component, option, None) for option, written in options.items() if type(written) is str}
        return Stage(
            kind=kind,
            key=key,
            name=name,
            component=component,
            options={**options, **{option: each for option, each in own.items() if type(each) is str}},
            version=component.version,
            distribution=self.registry.find(kind, name)[1].release,
            profile=profile_of(component, self.profile),
            code=code_of_component(component, path),
        )
