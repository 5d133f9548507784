"""Counts imports inside functions: ``python -m tests.helpers.function_imports`` prints each and their number.

``tsadbench/cli`` is left out: it imports late so that ``tsadbench --help`` answers at once.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
CLI = ROOT / "tsadbench" / "cli"


def function_imports(folder: Path = ROOT / "tsadbench") -> list[str]:
    """Return ``file:line: module`` for every import statement inside a function."""
    files = [file for file in sorted(folder.rglob("*.py")) if not file.is_relative_to(CLI)]
    return [
        f"{file.relative_to(folder.parent)}:{node.lineno}: {ast.unparse(node)}"
        for file in files
        for node in _late_imports(ast.parse(file.read_text(encoding="utf-8")))
    ]


def _late_imports(tree: ast.AST) -> Iterator[ast.stmt]:
    """Yield each import inside a function."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for inner in ast.walk(node):
                if isinstance(inner, ast.Import | ast.ImportFrom):
                    yield inner
        else:
            yield from _late_imports(node)


if __name__ == "__main__":
    statements = function_imports()
    print("\n".join(statements))
    print(f"{len(statements)} imports inside functions, the command line aside")
