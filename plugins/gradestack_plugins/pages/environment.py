"""The Jinja environment of the pages, and themes: colours and fonts as values of CSS variables."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from importlib.util import cache_from_source
from itertools import chain
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import attrs
import jinja2
from jinja2.bccache import Bucket
from jinja2.sandbox import ImmutableSandboxedEnvironment
from markupsafe import Markup, escape
from typing_extensions import override

import gradestack_templates
from gradestack import ConfigError, GradestackError, compile_later, error_text, suggest
from gradestack.jsonio import read_text
from gradestack_plugins.pages.draw import ends_text, place_on
from gradestack_plugins.pages.index import shade
from gradestack_plugins.pages.text import capital, clean, number, percent, token

_BUFFERED = 500
_BEGINNING = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{}">
"""
"""What every page begins with: nothing that a browser acts on stands before its policy."""


class _Folder(jinja2.FileSystemLoader):
    """The templates that lie in a folder; what a link in it leads to outside is none of them."""

    @override
    def get_source(self, environment: jinja2.Environment, template: str) -> Any:
        folder = Path(self.searchpath[0])
        parts = jinja2.loaders.split_template_path(template)
        path = folder.joinpath(*parts)
        if not path.is_file() or not _within(path, folder):
            raise jinja2.TemplateNotFound(template)
        text = read_text(path)
        return text, str(path), lambda: True


def _within(path: Path, folder: Path) -> bool:
    return path.resolve().is_relative_to(folder.resolve())


_OURS = Path(gradestack_templates.__file__).parent


class _Compiled(jinja2.FileSystemBytecodeCache):
    """Our templates compiled, which takes longer than to make most pages.

    Kept in memory, and where Python keeps its modules.
    """

    def __init__(self, directory: str, pattern: str) -> None:
        super().__init__(directory, pattern)
        self._codes: dict[tuple[str, str], CodeType] = {}

    @override
    def get_cache_key(self, name: str, filename: str | None = None) -> str:
        ours = filename is not None and Path(filename).parent == _OURS
        return super().get_cache_key(name, filename) if ours else ""

    @override
    def load_bytecode(self, bucket: Bucket) -> None:
        bucket.code = self._codes.get((bucket.key, bucket.checksum))
        if bucket.code is None:
            super().load_bytecode(bucket)

    @override
    def dump_bytecode(self, bucket: Bucket) -> None:
        if bucket.key and bucket.code is not None:
            self._codes[bucket.key, bucket.checksum] = bucket.code
        if bucket.key and not sys.dont_write_bytecode:
            with contextlib.suppress(OSError):
                directory_path = Path(self.directory)
                directory_path.mkdir(parents=True, exist_ok=True)
                super().dump_bytecode(bucket)


_FOLDER = str(Path(cache_from_source(str(_OURS / "__init__.py"))).parent)
_COMPILED = _Compiled(_FOLDER, f"{jinja2.__version__}-%s.jinja")
_SANDBOXED = _Compiled(_FOLDER, f"{jinja2.__version__}-%s.sandbox.jinja")


def _finalize(value: Any) -> Any:
    """Return a value as it is put into a page.

    Texts cleaned, None refused by being visible as a figure without value.
    """
    if type(value) is str:
        return clean(value)
    return number(value) if value is None else value


class _Sandbox(ImmutableSandboxedEnvironment):
    """For templates that a suite brings along.

    They see what they are given, and reach nothing else of Python.
    """

    def is_safe_callable(self, target: Any) -> bool:
        """Return whether a template may call something.

        Of plain values and of what pages are made of only.
        """
        owner = getattr(target, "__self__", None)
        if owner is not None:
            module = type(owner).__module__
        else:
            module = getattr(target, "__module__", "")
        known = str(module).partition(".")[0] in {
            "builtins",
            "jinja2",
            "markupsafe",
            "gradestack_plugins",
        }
        return known and super().is_safe_callable(target)


def environment(templates: Path | None = None) -> jinja2.Environment:
    """Return an environment that escapes in every ``.html`` template and shows hidden characters in
    all.

    Markdown templates are not escaped by Jinja; they pass every text through the filters of
    ``gradestack_plugins.pages.markdown``. Ours are also to be had as ``gradestack/NAME``.
    """
    ours = jinja2.PackageLoader("gradestack_templates", "")
    if templates is None:
        own_loaders = []
    else:
        own_loaders = [_Folder(templates)]
    prefix_loader = jinja2.PrefixLoader({"gradestack": ours})
    choice_loader = jinja2.ChoiceLoader([*own_loaders, prefix_loader, ours])
    bytecode_cache = _COMPILED if templates is None else _SANDBOXED
    env = (jinja2.Environment if templates is None else _Sandbox)(
        loader=choice_loader,
        autoescape=lambda name: name is not None and name.endswith(".html"),
        undefined=jinja2.StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        auto_reload=False,
        bytecode_cache=bytecode_cache,
    )
    env.filters.update(capital=capital, num=number, shade=shade, token=token)
    env.filters.update(percent=percent, place=place_on, bounds=ends_text)
    return env


@contextlib.contextmanager
def naming(templates: Path | None) -> Iterator[None]:
    """Turn an error in a template of a suite's own into one that names its file and line."""
    try:
        yield
    except Exception as error:
        ours = isinstance(error, (GradestackError, OSError)) and not isinstance(
            error, jinja2.TemplateNotFound
        )
        if templates is None or ours:
            origin = None
        else:
            origin = _template_line(error)
        if templates is None or origin is None or not _within(origin[0], templates):
            raise
        file, line = origin
        path = file.resolve()
        relative_path = path.relative_to(templates.resolve().parent)
        where = relative_path.as_posix()
        raise ConfigError(f"templates: {where}:{line}: {error_text(error)}") from error


def _template_line(error: BaseException) -> tuple[Path, int] | None:
    """Return file and line of the innermost template among what was called that is not ours."""
    import traceback  # noqa: PLC0415 - only where something is wrong

    walk_tb = traceback.walk_tb(error.__traceback__)
    frames = [(frame.f_code.co_filename, _line(frame, line)) for frame, line in walk_tb]
    if isinstance(error, jinja2.TemplateSyntaxError):
        frames = [(error.filename or "", error.lineno)]
    theirs = [(Path(name), line) for name, line in frames if name.endswith((".html", ".md"))]
    return next(
        (frame_place for frame_place in reversed(theirs) if frame_place[0].parent != _OURS), None
    )


def _line(frame: FrameType, line: int) -> int:
    """Return the line of a template.

    Of a macro called from Python, Jinja leaves that of the code made of it.
    """
    template = frame.f_globals.get("__jinja_template__")
    return line if template is None else template.get_corresponding_lineno(line)


def asset(env: jinja2.Environment, name: str) -> Markup:
    """Return a style sheet or script as it stands in the package, to be put inline.

    Never one that a suite brings.
    """
    assert env.loader is not None  # noqa: S101 - the environment above has one
    text = env.loader.get_source(env, f"gradestack/{name}")[0]
    return Markup(text)  # noqa: S704 - our own file, not data


def own_style(templates: Path | None) -> str:
    """Return ``style.css`` of a folder of templates, "" where it has none."""
    if templates is None or not (file := templates / "style.css").is_file():
        return ""
    if not _within(file, templates):
        raise ValueError(f"{file} is a link that leads out of its folder")
    text = read_text(file)
    if "<" in text:
        raise ValueError(f"{file} must hold no <: it is part of a page")
    return text


def policy(styles: Iterable[str], scripts: Iterable[str], *, loading: bool = False) -> str:
    """Return a content security policy that allows these inline texts and nothing else, no network
    least of all.
    """

    def hashes(texts: Iterable[str]) -> str:
        digests = []
        for text in texts:
            encoded = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
            digests.append(encoded)
        return " ".join(f"'sha256-{digest}'" for digest in digests)

    more = " 'strict-dynamic'" if loading else ""
    return (
        f"default-src 'none'; style-src {hashes(styles)}; script-src {hashes(scripts)}{more}; "
        "img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def write_stream(template: jinja2.Template, path: Path, context: dict[str, Any]) -> None:
    """Render a template into a file piece by piece; a failure leaves none."""
    stream = template.stream(context)
    stream.enable_buffering(_BUFFERED)
    begun = next(stream, "")
    beginning = _BEGINNING.format(escape(context["policy"]))
    if not begun.lstrip().startswith(beginning):
        raise ConfigError(
            f"templates: {path.name} must extend gradestack/{path.name} and put nothing before that"
        )
    write_texts(path, chain((begun,), stream))


def write_texts(path: Path, texts: Iterable[str]) -> None:
    """Write texts into a file; a failure leaves none."""
    try:
        with path.open("w", encoding="utf-8", errors="replace", newline="\n") as file:
            file.writelines(texts)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def check_limits(options: Any) -> None:
    """Refuse negative limits among a reporter's options."""
    fields = attrs.asdict(options, recurse=False)
    for name, value in fields.items():
        if isinstance(value, int) and value < 0:
            raise ValueError(f"{name} must not be negative, got {value}")


def check_folder(templates: Path | None) -> None:
    """Refuse a folder of templates that is none."""
    if templates is not None and not templates.is_dir():
        raise ValueError(f"templates: {templates} is no directory")


COLOURS = (
    *(
        "bg",
        "panel",
        "ink",
        "soft",
        "line",
        "faint",
        "accent",
        "good",
        "good-bg",
        "bad",
        "bad-bg",
        "bad-line",
    ),
    *("warn", "warn-bg", "low", "high", "absent", "mark", "mark-ink"),
)
"""Variables that are colours."""
FONTS = ("sans", "mono")
"""Variables that are lists of fonts."""
SCHEMES = ("light", "dark")

_NUMBER = r"[-+]?[0-9.]{1,12}(?:%|deg)?"
_COLOUR = compile_later(
    rf"#(?:[0-9a-fA-F]{{3,4}}|[0-9a-fA-F]{{6}}|[0-9a-fA-F]{{8}})|[a-z]{{3,30}}"
    rf"|(?:rgb|rgba|hsl|hsla|hwb|lab|lch|oklab|oklch)\({_NUMBER}(?:[ ,/]{{1,3}}{_NUMBER}){{2,3}}\)"
)
_A_COLOUR = "a colour such as '#0b5cad' or 'rgb(11 92 173)'"
_FONT = r"""\s*(?:[A-Za-z][\w -]{0,60}|"[\w -]{1,60}"|'[\w -]{1,60}')\s*"""
_FONTS = compile_later(rf"(?=.{{0,400}}$){_FONT}(?:,{_FONT})*", re.ASCII)


def theme_css(theme: Path | Mapping[str, Any] | None) -> str:
    """Return the style sheet of a theme, to stand behind the page's own; "" for none."""
    if isinstance(theme, Path):
        values = _read(theme)
    else:
        values = theme or {}
    both = {key: value for key, value in values.items() if key not in SCHEMES}
    for scheme in SCHEMES:
        if not isinstance(values.get(scheme, {}), Mapping):
            # told with its place
            raise ValueError(f"theme: {scheme} must be a mapping of variables")
    light, dark = (_declared({**both, **values.get(scheme, {})}) for scheme in SCHEMES)
    if not light and not dark:
        return ""
    return (
        f"\n:root {{ {light} }}\n"
        '@media screen and (prefers-color-scheme: dark) { :root:not([data-theme="light"]) { '
        f"{dark} }} }}\n"
        f'@media screen {{ :root[data-theme="dark"] {{ {dark} }} }}\n'
    )


def _read(path: Path) -> Mapping[str, Any]:
    from gradestack import yaml_data  # noqa: PLC0415 - pages without a theme need no YAML

    try:
        values = yaml_data(read_text(path))
    except OSError as error:
        raise ValueError(f"theme: {path.name} cannot be read: {error.strerror}") from error
    except Exception as error:  # whose words may quote the file
        mark = getattr(error, "problem_mark", None)
        if mark is None:
            line = ""
        else:
            line = f" (line {mark.line + 1})"
        raise ValueError(f"theme: {path.name} is not valid YAML{line}") from error
    if not isinstance(values, Mapping):
        # the same
        raise ValueError(f"theme: {path.name} must hold a mapping of variables")
    return values


def _declared(values: Mapping[str, Any]) -> str:
    known = (*COLOURS, *FONTS)
    for name, value in values.items():
        if name not in known:
            near = suggest(str(name), known)
            raise ValueError(f"theme: an unknown variable{near}; there are: {', '.join(known)}")
        form, wanted = (_FONTS, "a list of font names") if name in FONTS else (_COLOUR, _A_COLOUR)
        if not isinstance(value, str) or not form.fullmatch(value):
            raise ValueError(f"theme: {name} must be {wanted}")
    return " ".join(f"--{name}: {value};" for name, value in values.items())
