"""A Python file with what a page shows put into it, as a reader does: names replaced, new ones added."""

from __future__ import annotations

import ast


def merged(original: str, shown: str) -> str:
    """``original`` with each definition of ``shown`` in the place of the one of its name, or at the end.

    A class keeps the methods and attributes that are not shown, and its docstring. New imports
    come first, new constants before all classes and functions. Comments are lost.
    """
    tree = ast.parse(original)
    first = [item for item in tree.body if _is_future(item)]
    body = [item for item in tree.body if not _is_future(item)]
    for item in ast.parse(shown).body:
        at = next((at for at, known in enumerate(body) if names(known) & names(item)), None)
        if _is_text(item) or _is_future(item):
            continue
        if isinstance(item, ast.Import | ast.ImportFrom):
            body.insert(0, item)
        elif at is None and isinstance(item, ast.Assign):
            body.insert(_before_definitions(body), item)
        elif at is None:
            body.append(item)
        else:
            body[at] = _class(body[at], item)
    return ast.unparse(ast.Module(body=[*first, *body], type_ignores=[])) + "\n"


def names(item: ast.stmt) -> set[str]:
    """What a statement defines; nothing for an import."""
    if isinstance(item, ast.ClassDef | ast.FunctionDef):
        return {item.name}
    return {ast.unparse(target) for target in item.targets} if isinstance(item, ast.Assign) else set()


def _class(known: ast.stmt, shown: ast.stmt) -> ast.stmt:
    if not (isinstance(known, ast.ClassDef) and isinstance(shown, ast.ClassDef)):
        return shown
    told = {name for item in shown.body for name in names(item)}
    kept = [item for item in known.body if not names(item) & told]
    added = [item for item in shown.body if not _is_text(item)]
    known.bases, known.body = shown.bases or known.bases, [*kept, *added]
    return known


def _before_definitions(body: list[ast.stmt]) -> int:
    """The place of the first class or function."""
    return next((at for at, item in enumerate(body) if isinstance(item, ast.ClassDef | ast.FunctionDef)), len(body))


def _is_text(item: ast.stmt) -> bool:
    return isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant)


def _is_future(item: ast.stmt) -> bool:
    return isinstance(item, ast.ImportFrom) and item.module == "__future__"
