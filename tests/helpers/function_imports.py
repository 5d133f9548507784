"""Counts imports inside functions: ``python -m tests.helpers.function_imports`` prints each and their number.

Command bodies in ``tsadbench/cli`` are left out: they import late so that ``tsadbench --help`` answers at once.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
CLI = ROOT / "tsadbench" / "cli"


def function_imports(folder: Path = ROOT / "tsadbench") -> list[str]:
    """Return ``file:line: module`` for every import statement inside a function that is no command's body."""
    found = []
    for file in sorted(folder.rglob("*.py")):
        for function, node in _late_imports(ast.parse(file.read_text(encoding="utf-8"))):
            if not (file.is_relative_to(CLI) and _is_command(function)):
                found.append(f"{file.relative_to(folder.parent)}:{node.lineno}: {ast.unparse(node)}")
    return found


def _late_imports(tree: ast.AST) -> Iterator[tuple[ast.FunctionDef | ast.AsyncFunctionDef, ast.stmt]]:
    """Yield each import inside a function with the outermost function that holds it."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for inner in ast.walk(node):
                if isinstance(inner, ast.Import | ast.ImportFrom):
                    yield node, inner
        else:
            yield from _late_imports(node)


def _is_command(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a function of the command line is a command: by its decorator, or by the options it is annotated with."""
    decorators = [ast.unparse(decorator) for decorator in function.decorator_list]
    annotations = [ast.unparse(argument.annotation) for argument in function.args.args if argument.annotation]
    return any("command" in text or "callback" in text for text in decorators) or any(
        "typer.Option" in text or "typer.Argument" in text or text.endswith(("Option", "Argument"))
        for text in annotations
    )


if __name__ == "__main__":
    statements = function_imports()
    print("\n".join(statements))
    print(f"{len(statements)} imports inside functions, command bodies aside")
