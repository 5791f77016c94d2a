"""Measures of the house: how much is done (work), how densely it is said, and the public names.

``python -m tests.core.house_measures`` writes today's figures to ``house.yaml``, as ceilings that
are raised for a feature alone, and the public names to ``public_api.txt``.
"""

import ast
import inspect
from collections import Counter
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
PACKAGES = ("core/gradestack", "plugins/gradestack_plugins")
PUBLIC_MODULES = ("gradestack", "gradestack.testing", "gradestack.jsonio")
LINE_LENGTH, DENSE = 100, 25
FREE_NODES = (
    ast.expr_context,
    ast.Name,
    ast.Assign,
    ast.AnnAssign,
    ast.Expr,
    ast.Return,
    ast.Pass,
    ast.Module,
    ast.alias,
    ast.Import,
    ast.ImportFrom,
    ast.Tuple,
    ast.arguments,
)
"""Nodes that cost nothing: names and the splitting of a statement into named steps are free."""
LITERALS = (ast.Constant, ast.expr_context, ast.Dict, ast.List, ast.Tuple, ast.Set, ast.Name)
UNCOUNTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)


def expression_nodes(statement):
    """Count the expression nodes of one statement; a literal of constants counts as one."""
    count = 0
    waiting = list(ast.iter_child_nodes(statement))
    while waiting:
        node = waiting.pop()
        if isinstance(
            node, (ast.stmt, ast.expr_context, ast.arguments, ast.excepthandler, ast.match_case)
        ):
            continue
        count += 1
        is_collection = isinstance(node, (ast.Dict, ast.List, ast.Set, ast.Tuple))
        if is_collection and all(isinstance(inner, LITERALS) for inner in ast.walk(node)):
            continue
        waiting += ast.iter_child_nodes(node)
    return count


def is_counted(node):
    """Return whether a node is a statement whose density counts."""
    if not isinstance(node, ast.stmt) or isinstance(node, UNCOUNTED):
        return False
    return not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))


class Measures:
    """Totals over Python files.

    Attributes:
        work: AST nodes without the free ones.
        sizes: Expression nodes of each statement.
        largest: Lines of the largest file.
        long_lines: Lines over 100 characters.
    """

    def __init__(self):
        self.work = 0
        self.sizes = []
        self.largest = 0
        self.long_lines = 0

    def add_file(self, text):
        """Add a file's text to the totals."""
        lines = text.splitlines()
        self.largest = max(self.largest, len(lines))
        self.long_lines += sum(len(line) > LINE_LENGTH for line in lines)
        for node in ast.walk(ast.parse(text)):
            self.work += not isinstance(node, FREE_NODES)
            if is_counted(node):
                self.sizes.append(expression_nodes(node))

    def figures(self):
        """Return the totals as plain numbers."""
        sizes = sorted(self.sizes) or [0]
        dense = sum(size > DENSE for size in sizes)
        per_mille_over_25 = round(1000 * dense / len(sizes))
        number = int(0.9 * len(sizes))
        nine_tenths = sizes[number]
        half_of_the_statements = sizes[len(sizes) // 2]
        return {
            "work": self.work,
            "half of the statements": half_of_the_statements,
            "nine tenths": nine_tenths,
            "per mille over 25": per_mille_over_25,
            "long lines": self.long_lines,
            "largest file": self.largest,
        }


def folders():
    """Return each folder that has a ceiling, with its Python files."""
    by_folder = {}
    for package in PACKAGES:
        root = ROOT / package
        paths = root.glob("*.py")
        by_folder[package] = sorted(paths)
        for child in sorted(root.iterdir()):
            if child.is_dir():
                files = sorted(child.rglob("*.py"))
            else:
                files = []
            if files:
                by_folder[f"{package}/{child.name}"] = files
    for tree in ("core", "plugins", "tests"):
        by_folder[tree] = sorted((ROOT / tree).rglob("*.py"))
    return by_folder


def yaml_nodes(text):
    """Count the nodes of every document of a YAML text."""

    def count(node):
        if isinstance(node, yaml.MappingNode):
            total = sum(count(key) + count(value) for key, value in node.value)
            return 1 + total
        if isinstance(node, yaml.SequenceNode):
            return 1 + sum(map(count, node.value))
        return 1

    try:
        documents = yaml.compose_all(text)
        return sum(count(document) for document in documents if document is not None)
    except yaml.YAMLError:
        return len(text.splitlines())


def measure_house():
    """Measure every folder once."""
    texts = {}
    measured = {}
    for folder, files in folders().items():
        measures = Measures()
        for path in files:
            if path not in texts:
                texts[path] = path.read_text(encoding="utf-8")
            measures.add_file(texts[path])
        figures = measures.figures()
        is_tree = "/" not in folder
        measured[folder] = figures if is_tree else {"work": figures["work"]}
    templates = ROOT / "templates/gradestack_templates"
    paths = templates.rglob("*")
    scripts = [path for path in paths if path.suffix in {".j2", ".js", ".css"}]
    total = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in scripts)
    lines = Counter({"lines": total})
    tests_folder = ROOT / "tests"
    cases = tests_folder.rglob("*.y*ml")
    measured["templates"] = dict(lines)
    nodes = sum(yaml_nodes(path.read_text(encoding="utf-8")) for path in cases)
    measured["tests, YAML"] = {"nodes": nodes}
    return measured


def public_api():
    """List the public names with their signatures, one a line."""
    lines = []
    for module_name in PUBLIC_MODULES:
        module = __import__(module_name, fromlist=["__all__"])
        for name in public_names(module):
            value = getattr(module, name)
            lines.append(f"{module_name}.{name}{signature_of(value)}")
            if inspect.isclass(value):
                lines += [f"  .{line}" for line in public_methods(value)]
    return "\n".join(lines) + "\n"


def public_names(module):
    """List the names a module offers: its ``__all__``, or what it defines without underscore."""
    if hasattr(module, "__all__"):
        return sorted(module.__all__)
    values = vars(module).items()
    return sorted(
        name
        for name, value in values
        if not name.startswith("_") and getattr(value, "__module__", "") == module.__name__
    )


def public_methods(kind):
    """List the public methods a class defines itself, with their signatures."""
    attributes = vars(kind).items()
    for name, member in sorted(attributes):
        if isinstance(member, (classmethod, staticmethod)):
            function = member.__func__
        else:
            function = member
        if not name.startswith("_") and inspect.isfunction(function):
            yield f"{name}{signature_of(function)}"


def signature_of(value):
    """Return the names and kinds of a callable's parameters, or its type's name."""
    if not callable(value):
        return f": {type(value).__name__}"
    try:
        parameters = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return "(…)"
    words = []
    keyword_only = False
    for parameter in parameters:
        if parameter.kind is parameter.VAR_POSITIONAL:
            keyword_only = True
        elif parameter.kind is parameter.KEYWORD_ONLY and not keyword_only:
            words.append("*")
            keyword_only = True
        prefix = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}
        optional = "=…"
        if parameter.default is parameter.empty:
            optional = ""
        words.append(f"{prefix.get(parameter.kind, '')}{parameter.name}{optional}")
    return f"({', '.join(words)})"


if __name__ == "__main__":
    ceilings = yaml.safe_dump(measure_house(), sort_keys=False)
    (Path(__file__).parent / "house.yaml").write_text(
        "# Ceilings, raised for a feature alone: python -m tests.core.house_measures\n" + ceilings,
        encoding="utf-8",
    )
    (Path(__file__).parent / "public_api.txt").write_text(public_api(), encoding="utf-8")
