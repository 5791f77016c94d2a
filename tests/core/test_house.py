"""Rules of the house: who may import whom, how big modules get, and that metadata and documentation tell the truth."""

import ast
import inspect
import statistics
import subprocess
import sys
import tomllib
from importlib.metadata import distribution
from pathlib import Path

import pytest

from gradestack.hooks import Hooks

ROOT = Path(__file__).parents[2]
KERNEL, FAMILIES = ROOT / "core/gradestack", ROOT / "plugins/gradestack_plugins"
MODULES = sorted([*KERNEL.rglob("*.py"), *FAMILIES.rglob("*.py"), *(ROOT / "templates").rglob("*.py")])
SHARED = {"gradestack_plugins.readers.chat", "gradestack_plugins.statistics"}
"""What a family may use of another package: chat-shape parsing and statistics."""


def imports(path, *, top_only=False):
    """Return the full names of what a file imports, at its top or anywhere."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = tree.body if top_only else ast.walk(tree)
    found = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def roots(names):
    return {name.partition(".")[0] for name in names}


def shown(path):
    return path.relative_to(ROOT).as_posix()


def test_there_are_modules_to_look_at():
    """So that the rules below are about something."""
    assert len(MODULES) > 60
    assert "gradestack.errors.PluginError" in imports(KERNEL / "registry.py")


@pytest.mark.parametrize("path", sorted(KERNEL.rglob("*.py")), ids=shown)
def test_the_kernel_knows_no_plugin(path):
    """It imports no plugin and no templates, and every library only where it belongs."""
    names = roots(imports(path))
    assert names & {"gradestack_plugins", "gradestack_templates", "jinja2", "numpy", "networkx"} == set()
    allowed = {
        "click": {"cli.py"},
        "cattrs": {"structure.py"},
        "yaml": {"yamlsource.py", "cli.py"},
        "pluggy": {"hooks.py", "registry.py"},
        "rich": {"meter.py"},
    }
    for library, where in allowed.items():
        assert library not in names or path.name in where, f"{path.name} imports {library}"


def test_the_command_line_imports_little_at_its_top():
    """Everything but click, errors and the version is imported when a command runs."""
    tree = ast.parse((KERNEL / "cli.py").read_text(encoding="utf-8"))
    tree.body = [node for node in tree.body if not isinstance(node, ast.If)]  # typing only
    top = {node.module or "" for node in tree.body if isinstance(node, ast.ImportFrom)}
    top |= {alias.name for node in tree.body if isinstance(node, ast.Import) for alias in node.names}
    assert top <= {
        "__future__",
        "sys",
        "collections.abc",
        "typing",
        "click",
        "gradestack._version",
        "gradestack.errors",
    }


@pytest.mark.parametrize("path", sorted(FAMILIES.rglob("*.py")), ids=shown)
def test_a_family_knows_no_other_family(path):
    """It imports the kernel, itself, and what is shared."""
    own = ".".join(path.relative_to(FAMILIES.parent).parts[:2]).removesuffix(".py")
    for name in imports(path):
        if not name.startswith("gradestack_plugins"):
            continue
        shared = any(name == each or name.startswith(f"{each}.") for each in SHARED)
        assert name.startswith(f"{own}.") or name == own or shared, f"{shown(path)} imports {name}"


def test_plugin_modules_are_light():
    """Finding all plugins imports their packages and no class of theirs, nor a library they work with."""
    code = (
        "import sys\nfrom gradestack.registry import discover\n"
        "assert discover(limit='').names('grader')\nprint(*sys.modules)"
    )
    modules = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    packages = {f"gradestack_plugins.{path.parent.name}" for path in FAMILIES.glob("*/__init__.py")}
    assert {name for name in modules if name.startswith("gradestack_plugins.")} <= packages
    assert (
        roots(modules) & {"cattrs", "yaml", "jinja2", "click", "rich", "numpy", "networkx", "gradestack_templates"}
        == set()
    )


def test_nothing_imports_the_three_roots_by_their_folder_names():
    """From the repository they would be importable by accident."""
    files = [
        *MODULES,
        *(ROOT / "tests").rglob("*.py"),
        *(ROOT / "examples").rglob("*.py"),
        *(ROOT / "benchmarks").rglob("*.py"),
    ]
    for path in files:
        assert roots(imports(path)) & {"core", "plugins", "templates"} == set(), shown(path)


@pytest.mark.parametrize(
    ("root", "package"),
    [("core", "gradestack"), ("plugins", "gradestack_plugins"), ("templates", "gradestack_templates")],
)
def test_each_root_holds_one_package(root, package):
    """Anything else would be importable by its bare name in an editable install."""
    found = [path.name for path in (ROOT / root).iterdir() if path.name != "__pycache__"]
    assert found == [package]
    assert (ROOT / root / package / "__init__.py").is_file()


@pytest.mark.parametrize("package", [KERNEL, FAMILIES], ids=["kernel", "plugins"])
def test_code_packages_are_typed(package):
    """py.typed is shipped."""
    assert (package / "py.typed").is_file()


def test_modules_stay_small():
    """No module over 400 lines, half of the kernel's at most 150: what does not fit belongs in a plugin."""
    sizes = {shown(path): len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES}
    assert {name: size for name, size in sizes.items() if size > 400} == {}
    kernel = [size for name, size in sizes.items() if name.startswith("core/") and size > 1]
    assert statistics.median(kernel) <= 150


def test_installed_entry_points_are_those_of_the_project():
    """A new line in pyproject.toml needs a new install; this tells."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    installed = {
        each.name: each.value for each in distribution("gradestack").entry_points if each.group == "gradestack"
    }
    assert installed == project["entry-points"]["gradestack"]
    scripts = {
        each.name: each.value for each in distribution("gradestack").entry_points if each.group == "console_scripts"
    }
    assert scripts == project["scripts"]


def test_every_plugin_package_is_an_entry_point():
    """No family is forgotten in pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = set(project["entry-points"]["gradestack"].values())
    hooked = {
        f"gradestack_plugins.{path.parent.name}"
        for path in FAMILIES.glob("*/__init__.py")
        if "gradestack.hooks.hookimpl" in imports(path)
    }
    assert hooked == named


def test_every_hook_is_documented_with_its_signature():
    """docs/plugins.md has a heading per hook, with the exact arguments."""
    text = (ROOT / "docs/plugins.md").read_text(encoding="utf-8")
    headings = [line for line in text.splitlines() if line.startswith("#")]
    for name, hook in vars(Hooks).items():
        if not name.startswith("gradestack_"):
            continue
        function = hook.__func__
        signature = f"{name}({', '.join(inspect.signature(function).parameters)})"
        assert any(signature in heading for heading in headings), signature
        for word in ("Returns:", "Called"):
            assert word in function.__doc__


def test_tests_state_what_they_test():
    """Every test function in this folder and below has a sentence."""
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                assert ast.get_docstring(node), f"{shown(path)}:{node.lineno}: {node.name} has no docstring"
