"""Write every error message of the package into one file, to be read from end to end.

python scripts/messages.py             say if tests/messages.txt is not up to date; exit code 1 if so
python scripts/messages.py --write     write it

A line is the class, then the message with `{...}` for each value that is known only when it is raised.
"""

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from orthobench import errors

HOME = Path(__file__).resolve().parents[1]
FILE = HOME / "tests" / "messages.txt"
CLASSES = {
    name for name, one in vars(errors).items() if inspect.isclass(one) and issubclass(one, errors.OrthobenchError)
}
SENTENCES = 2  # that a message has at most


def template(node: ast.expr) -> str:
    """Text of an expression with `{NAME}` for what is not constant."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(template(part) for part in node.values)
    if isinstance(node, ast.FormattedValue):
        inner = node.value
        return template(inner) if isinstance(inner, ast.JoinedStr) else "{" + ast.unparse(inner) + "}"
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return template(node.left) + template(node.right)
    return "{" + ast.unparse(node) + "}"


def raised(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Class and message of every error of ours that a module makes."""
    for node in ast.walk(tree):
        name = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
        if name in CLASSES and isinstance(node, ast.Call) and node.args:
            yield name, " ".join(template(node.args[0]).split())


def messages() -> list[str]:
    """Lines of the file, sorted by the message."""
    found = set()
    for path in sorted((HOME / "orthobench").rglob("*.py")):
        found |= set(raised(ast.parse(path.read_text(encoding="utf-8"))))
    return [f"{name}: {text}" for name, text in sorted(found, key=lambda one: (one[1].lower(), one))]


def sentences(text: str) -> int:
    """Number of sentences of a message."""
    return len(re.findall(r"[.!?](?= [A-Z`{]|$)", re.sub(r"\{[^}]*\}|`[^`]*`", "X", text))) or 1


def main(words: list[str]) -> int:
    """Check or write the file; return 1 if it is not up to date and is not written."""
    text = "".join(f"{line}\n" for line in messages())
    fresh = FILE.is_file() and FILE.read_text(encoding="utf-8") == text
    if not fresh and "--write" in words:
        FILE.write_text(text, encoding="utf-8")
    if not fresh:
        print(f"{'wrote' if '--write' in words else 'not up to date:'} {FILE}")
    return int(not fresh and "--write" not in words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
