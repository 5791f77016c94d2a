"""Rules of the house.

Who may import whom, how big modules get, and that metadata and documentation tell the truth.
"""

import ast
import inspect
import re
import subprocess
import sys
import tomllib
from functools import cache
from graphlib import TopologicalSorter
from importlib.metadata import distribution
from pathlib import Path

import pytest

from gradestack import registry as hookspecs
from tests.core.house_measures import measure_house, public_api
from tests.core.outcomes import data

ROOT = Path(__file__).parents[2]
KERNEL, FAMILIES = ROOT / "core/gradestack", ROOT / "plugins/gradestack_plugins"
MODULES = sorted(
    [*KERNEL.rglob("*.py"), *FAMILIES.rglob("*.py"), *(ROOT / "templates").rglob("*.py")]
)
SHARED = {
    "gradestack_plugins.command_options",
    "gradestack_plugins.readers.bodies",
    "gradestack_plugins.readers.chat",
    "gradestack_plugins.readers.declared",
    "gradestack_plugins.readers.joined",
    "gradestack_plugins.readers.joined_lines",
    "gradestack_plugins.readers.jsonl",
    "gradestack_plugins.readers.rows",
    "gradestack_plugins.readers.runs",
    "gradestack_plugins.readers.spans",
    "gradestack_plugins.readers.whole",
    "gradestack_plugins.readers.own_rows",
    "gradestack_plugins.readers.recorded",
    "gradestack_plugins.readers.tables",
    "gradestack_plugins.judges",
    "gradestack_plugins.statistics",
    "gradestack_plugins.pages",
    "gradestack_plugins.tables",
}
"""What a family may use of another package.

Options of commands, chat-shape parsing, rows of a shared data set, lines joined to a data set, the
jsonl form, files of whole runs, what judges share, statistics, tables, and what shows a run.
"""

LAYERS = [
    "_version",
    "patterns",
    "output",
    "errors",
    "regular_files",
    "hooks",
    "model",
    "table",
    "exact_sums",
    "intervals",
    "grades",
    "api",
    "aggregator",
    "exporter",
    "installed",
    "registry",
    "interpreter",
    "watching",
    "grading",
    "metrics",
    "jsonio",
    "declared",
    "copies",
    "records",
    "rows",
    "gates",
    "report",
    "suites",
    "comparison",
    "rundir",
    "outcome",
    "runner",
    "streaming",
    "python_api",
    "python_compare",
    "python_add",
    "testing",
    "cli",
]
"""Files and folders of the house, top down.

Each imports only its own folder and what stands above it.
"""
NO_ROOMS = {"__init__", "__init__.pyi", "__pycache__", "py.typed"}
PUBLIC = {"gradestack", "gradestack.testing", "gradestack.jsonio"}
"""Where anything outside the house may import from."""


def room(path):
    """Return the file or folder of the house a module belongs to."""
    relative_path = path.relative_to(KERNEL)
    first_part = relative_path.parts[0]
    return first_part.removesuffix(".py")


@cache
def tree_of(path):
    text = path.read_text(encoding="utf-8")
    return ast.parse(text)


def imported_modules(path):
    """Return the kernel modules a file imports, at run time or for types, as dotted names below
    gradestack.
    """
    collected = set()
    tree = tree_of(path)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = []
            for alias in node.names:
                names.append(f"{node.module}.{alias.name}")
        else:
            continue
        collected |= {
            name.removeprefix("gradestack.") for name in names if name.startswith("gradestack.")
        }
    return collected


def files_outside():
    """List the files that import gradestack as its users do.

    Plugins, examples, the third-party package, typing tests.
    """
    places = [
        FAMILIES,
        *(ROOT / name for name in ("templates", "examples", "tests/third_party", "typing_tests")),
    ]
    return [path for folder in places for path in sorted(folder.rglob("*.py"))]


def imports(path, *, top_only=False):
    """Return the full names of what a file imports, at its top or anywhere."""
    if top_only:
        nodes = tree_of(path).body
    else:
        tree = tree_of(path)
        nodes = ast.walk(tree)
    collected = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            collected |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            collected |= {f"{node.module}.{alias.name}" for alias in node.names}
    return collected


def roots(names):
    return {name.partition(".")[0] for name in names}


def shown(path):
    return path.relative_to(ROOT).as_posix()


def test_there_are_modules_to_look_at():
    """So that the rules below are about something."""
    assert len(MODULES) > 60
    path = KERNEL / "registry.py"
    assert "gradestack.errors.PluginError" in imports(path)


def test_the_kernel_knows_no_plugin():
    """It imports no plugin and no templates, and every library only where it belongs."""
    nowhere = ("gradestack_plugins", "gradestack_templates", "jinja2", "numpy", "networkx")
    sets_by_library = {library: set() for library in nowhere}
    allowed = {
        "click": {"cli"},
        "yaml": {"suites", "cli", "testing"},
        "pluggy": {"hooks", "registry"},
        "rich": {"cli"},
    } | sets_by_library
    misplaced = {}
    paths = KERNEL.rglob("*.py")
    for path in sorted(paths):
        names = imports(path)
        for library in roots(names) & allowed.keys():
            if room(path) not in allowed[library]:
                misplaced[shown(path)] = library
    assert misplaced == {}


def test_every_file_has_its_place():
    """Whatever stands in the house is in the list of layers, and the other way round."""
    paths = KERNEL.iterdir()
    names = {path.name.removesuffix(".py") for path in paths}
    rooms = names - NO_ROOMS
    assert rooms == set(LAYERS)


def test_each_file_imports_only_what_stands_above_it():
    """Its own folder, and the layers above; the import root alone looks down."""
    forbidden_imports = {}
    paths = KERNEL.rglob("*.py")
    for path in sorted(paths):
        init_path = KERNEL / "__init__.py"
        if path == init_path:
            continue
        here = LAYERS.index(room(path))
        below = set()
        for name in imported_modules(path):
            index = LAYERS.index(name.partition(".")[0])
            if index > here:
                below.add(name)
        if below:
            forbidden_imports[shown(path)] = sorted(
                {name.rpartition(".")[0] or name for name in below}
            )
    assert forbidden_imports == {}


def test_no_two_modules_import_each_other():
    modules = {}
    paths = KERNEL.rglob("*.py")
    for path in sorted(paths):
        relative_path = path.relative_to(KERNEL)
        parts = relative_path.with_suffix("").parts
        modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    edges = {}
    for name, path in modules.items():
        named = set()
        for imported_module in imported_modules(path):
            named.add(
                imported_module
                if imported_module in modules
                else imported_module.rpartition(".")[0]
            )
        edges[name] = (named & set(modules)) - {name, ""} if name else set()
    TopologicalSorter(edges).prepare()  # raises CycleError, naming them


def test_the_outside_imports_the_public_paths_only():
    """Plugins, ours too, come through the same door as yours."""
    forbidden_imports = {}
    for path in files_outside():
        names = set()
        tree = tree_of(path)
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                names.add(node.module)
        nodes = ast.walk(tree_of(path))
        names |= {
            alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names
        }
        private = {name for name in names if name.partition(".")[0] == "gradestack"} - PUBLIC
        if private:
            forbidden_imports[shown(path)] = sorted(private)
    assert forbidden_imports == {}


def test_the_documentation_imports_the_public_paths_only():
    """Code that readers copy from the documentation keeps working."""
    statement = re.compile(r"^\s*(?:from|import) (gradestack(?:\.\w+)*)\b", re.MULTILINE)
    private = {}
    paths = ROOT.glob("*.md")
    docs_folder = ROOT / "docs"
    for page in sorted([*paths, *docs_folder.glob("*.md")]):
        text = page.read_text(encoding="utf-8")
        matches = statement.findall(text)
        names = set(matches)
        if names - PUBLIC:
            private[shown(page)] = names - PUBLIC
    assert private == {}


@pytest.mark.slow
def test_no_folder_does_more_or_says_it_denser():
    """Work, density, long lines and the largest file stay below the ceilings of ``house.yaml``."""
    ceilings = data(__file__, "house.yaml")
    measured = measure_house()
    keys = measured.keys()
    assert keys == ceilings.keys()
    over = {}
    for folder, figures in measured.items():
        for name, value in figures.items():
            if value > ceilings[folder][name]:
                ceiling = ceilings[folder]
                over[f"{folder}: {name}"] = (value, ceiling[name])
    assert over == {}


def test_the_public_api_is_the_recorded_one():
    """A change of names or signatures is seen in the diff of ``public_api.txt``."""
    file_path = Path(__file__)
    public_api_path = file_path.parent / "public_api.txt"
    recorded = public_api_path.read_text(encoding="utf-8")
    assert public_api() == recorded, "run python -m tests.core.house_measures"


def test_the_command_line_imports_little_at_its_top():
    """All but click, errors, the version, the collector and how lines are printed is imported when
    a command runs.
    """
    commands_path = KERNEL / "cli/commands.py"
    text = commands_path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    tree.body = [node for node in tree.body if not isinstance(node, ast.If)]  # typing only
    top = set()
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            top.add(node.module or "")
    top |= {
        alias.name for node in tree.body if isinstance(node, ast.Import) for alias in node.names
    }
    assert top <= {
        "__future__",
        "gc",
        "sys",
        "collections.abc",
        "typing",
        "click",
        "gradestack._version",
        "gradestack.errors",
        "gradestack.interpreter",
        "gradestack.output",
    }


def test_a_family_knows_no_other_family():
    """It imports the kernel, itself, and what is shared."""
    strangers = {}
    for path in FAMILIES.rglob("*.py"):
        relative_path = path.relative_to(FAMILIES.parent)
        parts = relative_path.parts[:2]
        family = ".".join(parts).removesuffix(".py")
        packages = (family, *SHARED)
        for name in imports(path):
            within = any(f"{name}.".startswith(f"{package}.") for package in packages)
            if name.startswith("gradestack_plugins") and not within:
                strangers[shown(path)] = name
    assert strangers == {}


def test_plugin_modules_are_light():
    """Finding all plugins imports their packages and no class of theirs, nor a library they work
    with.
    """
    code = (
        "import sys\nfrom gradestack.registry import discover\n"
        "assert discover(limit='').names('grader')\nprint(*sys.modules)"
    )
    stdout = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    modules = stdout.split()
    paths = FAMILIES.glob("*/__init__.py")
    packages = {f"gradestack_plugins.{path.parent.name}" for path in paths}
    names = {name for name in modules if name.startswith("gradestack_plugins.")}
    assert names <= packages
    assert (
        roots(modules)
        & {
            "attr",
            "msgspec",
            "yaml",
            "jinja2",
            "click",
            "rich",
            "numpy",
            "networkx",
            "gradestack_templates",
        }
        == set()
    )


COMPILED_AT_ONCE = {
    "core/gradestack/jsonio/records.py",
    "core/gradestack/jsonio/values.py",
    "plugins/gradestack_plugins/deepfabric/replies.py",
}
"""Files whose patterns are asked for every record."""


def test_patterns_are_compiled_when_they_are_first_used():
    """A module compiles none while it is imported: most runs need few of those they import."""
    compiled = set()
    for path in MODULES:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for statement in tree.body:
            if isinstance(statement, ast.Assign | ast.AnnAssign):
                calls = [node for node in ast.walk(statement) if isinstance(node, ast.Call)]
                if any(ast.unparse(call.func) == "re.compile" for call in calls):
                    compiled.add(shown(path))
    assert compiled == COMPILED_AT_ONCE


def test_each_root_holds_one_package():
    """Anything else would be importable by its bare name in an editable install."""
    roots_and_packages = {
        "core": "gradestack",
        "plugins": "gradestack_plugins",
        "templates": "gradestack_templates",
    }
    for root, package in roots_and_packages.items():
        names = []
        for path in (ROOT / root).iterdir():
            if path.name != "__pycache__":
                names.append(path.name)
        assert names == [package]
        assert (ROOT / root / package / "__init__.py").is_file()
    assert all((package / "py.typed").is_file() for package in (KERNEL, FAMILIES))


def test_installed_entry_points_are_those_of_the_project():
    """A new line in pyproject.toml needs a new install; this tells."""
    pyproject_path = ROOT / "pyproject.toml"
    text = pyproject_path.read_text(encoding="utf-8")
    document = tomllib.loads(text)
    project = document["project"]
    installed = {}
    for entry_point in distribution("gradestack").entry_points:
        if entry_point.group == "gradestack":
            installed[entry_point.name] = entry_point.value
    expected = project["entry-points"]["gradestack"]
    assert installed == expected
    entry_points = distribution("gradestack").entry_points
    scripts = {
        entry_point.name: entry_point.value
        for entry_point in entry_points
        if entry_point.group == "console_scripts"
    }
    assert scripts == project["scripts"]


def test_every_plugin_package_is_an_entry_point():
    pyproject_path = ROOT / "pyproject.toml"
    text = pyproject_path.read_text(encoding="utf-8")
    document = tomllib.loads(text)
    project = document["project"]
    named = set(project["entry-points"]["gradestack"].values())
    hooked = set()
    for path in FAMILIES.glob("*/__init__.py"):
        if "gradestack.hookimpl" in imports(path):
            hooked.add(f"gradestack_plugins.{path.parent.name}")
    assert hooked == named


def test_every_hook_is_documented_with_its_signature():
    """docs/plugins.md has a heading per hook, with the exact arguments."""
    plugins_path = ROOT / "docs/plugins.md"
    text = plugins_path.read_text(encoding="utf-8")
    lines = text.splitlines()
    headings = [line for line in lines if line.startswith("#")]
    for name, hook in vars(hookspecs).items():
        if not name.startswith("gradestack_"):
            continue
        signature = f"{name}({', '.join(inspect.signature(hook).parameters)})"
        assert any(signature in heading for heading in headings), signature
        for word in ("Returns:", "Called"):
            assert word in hook.__doc__
