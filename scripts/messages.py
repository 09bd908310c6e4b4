"""Write every error message of the package into one file, to be read from end to end.

python scripts/messages.py             say if tests/messages.txt is not up to date; exit code 1 if so
python scripts/messages.py --write     write it

A line is the class, then the message with `{...}` for each value that is known only when it is raised.
"""

import ast
import inspect
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from orthobench import errors
from orthobench.report.renewing import renew

HOME = Path(__file__).resolve().parents[1]
FILE = HOME / "tests" / "messages.txt"
CLASSES = {
    name for name, one in vars(errors).items() if inspect.isclass(one) and issubclass(one, errors.OrthobenchError)
}
SENTENCES = 2  # that a message has at most
MEAN = 16  # words of a sentence, on average
VERBS = """
add ask call change choose compute convert correct declare delete divide download draw drop export
fetch fill give install keep leave let list look lower make move name number pack put record
redefine remove rename replace restore return run save say see send set share split sweep swap take
test train treat try undo unpack update use write
"""  # with which a fix begins
FIX = re.compile(
    rf"(?:^|[:;,.(] |\b(?:and|else|or|so|then) )(?:{'|'.join(VERBS.split())})\b"
    r"|\bmust\b|\bneed(?:s|ed)?\b|\ballowed\b|\bsuch as\b|\bsame command\b|`[^`]*orthobench |did_you_mean\(",
    re.IGNORECASE,
)


def template(node: ast.expr, known: Mapping[str, str]) -> str:
    """Text of an expression with `{NAME}` for what is not constant; `known` has the names of texts."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(template(part, known) for part in node.values)
    if isinstance(node, ast.FormattedValue):
        return template(node.value, known)
    if isinstance(node, ast.BinOp) and is_text(node):
        return template(node.left, known) + template(node.right, known)
    return known.get(text := ast.unparse(node), "{" + text + "}")


def is_text(node: ast.expr) -> bool:
    """Return True if an expression is a text, or texts with a plus between."""
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Add) and (is_text(node.left) or is_text(node.right))
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def raised(tree: ast.AST, known: Mapping[str, str] = MappingProxyType({})) -> Iterator[tuple[str, str]]:
    """Class and message of every error of ours that a module or function makes."""
    inside = list(_walk(tree))
    texts: dict[str, list[str]] = {}
    for node in inside:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            texts.setdefault(node.targets[0].id, []).append(template(node.value, known) if is_text(node.value) else "")
    known = {**known, **{name: found[0] for name, found in texts.items() if len(found) == 1 and " " in found[0]}}
    for node in inside:
        name = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
        if name in CLASSES and isinstance(node, ast.Call) and node.args:
            yield name, " ".join(template(node.args[0], known).split())
        if isinstance(node, ast.FunctionDef) and node is not tree:
            yield from raised(node, known)


def _walk(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a module or function, without those inside of its functions."""
    for node in ast.iter_child_nodes(tree):
        yield node
        if not isinstance(node, ast.FunctionDef):
            yield from _walk(node)


def messages() -> list[str]:
    """Lines of the file, sorted by the message."""
    found = set()
    for path in sorted((HOME / "orthobench").rglob("*.py")):
        found |= set(raised(ast.parse(path.read_text(encoding="utf-8"))))
    return [f"{name}: {text}" for name, text in sorted(found, key=lambda one: (one[1].lower(), one))]


def sentences(text: str) -> int:
    """Number of sentences of a message."""
    return len(re.findall(r"[.!?](?= [A-Z`{]|$)", _plain(text))) or 1


def words(text: str) -> int:
    """Number of words of a message; a value or a command counts as one."""
    return len(_plain(text).split())


def _plain(text: str) -> str:
    return re.sub(r"\{[^}]*\}|`[^`]*`", "X", text)


def names_a_fix(text: str) -> bool:
    """Return True if a message has a verb in the imperative, a command, or a word such as *must*."""
    constant = re.sub(r"\{(?!did_you_mean)[^}]*\}", "X", text)
    return FIX.search(constant) is not None


def main(words: list[str]) -> int:
    """Check or write the file; return 1 if it is not up to date and is not written."""
    text = "".join(f"{line}\n" for line in messages())
    return renew({FILE: text}, words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
