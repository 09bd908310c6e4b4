"""Docstrings of public names tell arguments, shapes, units, errors and sources, and their shapes are true."""

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from torch import Tensor

from orthobench import errors, layers
from orthobench.common import registry
from orthobench.models.make_cell import make_cell
from orthobench.parametrizations.free import Free
from orthobench.tasks.synthetic import Drawn
from scripts import python_api, reference

SIZE = r"(?:\.\.\.|\w+(?: ?(?:[-+*/]|//)? ?\w+)*)"
SHAPE = re.compile(rf"(?<![\w`])\((?=[^()]*(?:\.\.\.|[A-Z\d_]|\bn\b|heads))({SIZE}(?:,|(?:, {SIZE})+))\)")
NO_AXES = re.compile(r"\b(?:scalars?|a scalar each|of any shape|same shapes?|shape of)\b")
ARRAY = re.compile(r"\b(?:Tensors?|State|Matrices|Batch|Arrays|ndarray)\b")
SEE = re.compile(r"\b[Ss]ee `[\w.]+`")
SOURCE = re.compile(r"\b(?:19|20)\d\d\b|\bChu\b|\bours\b")
SECTION = re.compile(r"^(Args|Attributes|Returns|Raises):\n((?: {4}.*\n?|\n)+)", flags=re.M)
UNITS = {  # names of arguments, and the unit that their line names
    r"T|T_max|length|test_length|eval_lengths|lengths|delay|onset|window|(input_)?convolution|steps?|warmup": "step",
    r"reset_period|project_every|max_steps": "step",
    r"milestones|epochs?": "epoch",
    r"max_phase|\w*angle": "radian",
    r"num_workers": "process",
    r"(eval_)?batch_size|(train|val|test)_size|sequences": "sequence|window|series",
    r"epoch_batches": "length of an epoch|batch",
    r"\w*bytes": "byte",
    r"\w*(seconds|minutes|hours|timeout|max_time)": "second|minute|hour",
}
KINDS_OF_PAPERS = ("cell", "parametrization", "task", "optimizer")
OF_NO_PAPER = ("parametrization=free", "task=series", "task=text", "Layer", "Recurrent")


def shaped(text: str) -> bool:
    """Return True if a text gives a shape, such as (B, T, I), or says that there is none to give."""
    return bool(SHAPE.search(text) or NO_AXES.search(text) or SEE.search(text))


def lines(section: str) -> dict[str, str]:
    """What a section of a docstring says of each name."""
    parts = (part.strip().partition(": ") for part in re.split(r"\n(?= {4}\S)", "\n" + section))
    return {name.lstrip("*"): " ".join(text.split()) for name, _, text in parts if text}


def raised(function: Callable[..., Any]) -> Iterator[str]:
    """Errors that the body of a function raises, by name; `refuse_` or `check_` where it calls such a function."""
    for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(function)))):
        error = getattr(node, "exc", None)
        name = getattr(getattr(error, "func", error), "id", "")
        if name[:1].isupper():
            yield name
        called = getattr(node, "func", None)
        if check := re.match(r"_?(refuse|check)_", getattr(called, "attr", getattr(called, "id", ""))):
            yield f"{check[1]}_"


def problems(one: Any, of_paper: bool = False, method: bool = False) -> Iterator[str]:
    """Look at the docstring of a function, method, property or class.

    Every argument has a line in `Args` (the sentence of a method may name it instead); an array and what is returned
    as one have a shape; an argument in steps, bytes or the like names its unit; an error that the body raises is in
    `Raises`; a class of a paper names its year; a function speaks of None. `see X` stands for what X says.
    """
    one = getattr(one, "__func__", getattr(one, "fget", getattr(one, "func", one)))
    text = inspect.cleandoc(one.__doc__ or "")
    parts, start, is_class = dict(SECTION.findall(text)), SECTION.split(text)[0], inspect.isclass(one)
    body = one.__dict__.get("__init__") if is_class else one
    signature = inspect.signature(body) if body else None
    told = python_api.meanings(one.__mro__) if is_class else lines(parts.get("Args", ""))
    told = {name.lstrip("*"): said for name, said in told.items()}
    named = method and SEE.search(text)
    for name, argument in (signature.parameters if signature else {}).items():
        if name in ("self", "cls"):
            continue
        if name not in told and not named and not (method and re.search(rf"\b{name}\b", start)):
            yield f"{name}: no line in Args"
        said = told.get(name, text)
        if ARRAY.search(str(argument.annotation)) and not shaped(said) and not named:
            yield f"{name}: no shape"
        unit = next((unit for names, unit in UNITS.items() if re.fullmatch(names, name)), "")
        if not re.search(unit, said) and not SEE.search(said) and not named:
            yield f"{name}: no unit, {unit}"
    returned = "" if is_class or signature is None else str(signature.return_annotation)
    if ARRAY.search(returned) and not shaped(parts.get("Returns", start)):
        yield "no shape of what is returned"
    body = one.__dict__.get("__post_init__", body) if is_class else body
    if body and body.__code__.co_filename != "<string>":  # as that of a dataclass is
        known = {error.rpartition(".")[2] for error in lines(parts.get("Raises", ""))}
        yield from (
            f"no Raises, {error}" for error in raised(body) if error not in known and (error[-1] != "_" or not known)
        )
    if not is_class and re.search(r"\b[Nn]ull\b", text):
        yield "null is for YAML and JSON, and None for Python"
    if of_paper and not SOURCE.search(text):
        yield "no source"


def documented() -> Iterator[tuple[str, Any, bool]]:
    """What the pages of the Python API and of the configuration show: name, object, and whether it is of a paper."""
    for full, one in (pair for found in python_api.public().values() for pair in found.items()):
        name, is_layer = full.rpartition(".")[2], layers.Layer in getattr(one, "__mro__", ())
        yield name, one, is_layer and name not in OF_NO_PAPER
        if inspect.isclass(one) and (one is layers.Layer or not is_layer):
            yield from ((f"{name}.{key}", member, False) for key, member in python_api.members(one).items())
    for name, cls in python_api.configured().items():
        yield name, cls, name.partition("=")[0] in KINDS_OF_PAPERS and name not in OF_NO_PAPER


def test_public_docstrings_are_whole() -> None:
    seen = list(documented())
    assert len(seen) > 200
    found = [f"{name}: {told}" for name, one, paper in seen for told in problems(one, paper, "." in name)]
    assert found == []


def test_pages_import_public_names_alone() -> None:
    page = (reference.PAGES / "python.md").read_text(encoding="utf-8")
    known = [one for found in python_api.public().values() for one in found.values()]
    known += [*python_api.configured().values(), *vars(errors).values()]
    found = []
    for path in (reference.HOME / "README.md", *(reference.HOME / "docs").rglob("*.md")):
        for module, names in re.findall(
            r"from (orthobench\.[\w.]+) import ([\w, ]+)", path.read_text(encoding="utf-8")
        ):
            for name in names.split(", "):
                one = getattr(import_module(module), name.strip())
                found += [] if one in known or f"`{name.strip()}`" in page else [f"{path.name}: {module}.{name}"]
    assert found == []


class _Wrong:
    """Docstrings that must be refused, each for one thing."""

    def untold(self, size: int) -> None:
        """Make it larger."""

    def shapeless(self, x: Tensor) -> None:
        """Look at x."""

    def call(self, x: Tensor) -> None:
        """Look at what `run(x, T)` takes, x."""

    def returned(self, x: Tensor) -> Tensor:
        """Make something.

        Args:
            x: inputs (B, T, I).
        """
        return x

    def silent(self) -> None:
        """Refuse everything."""
        raise ValueError

    def other(self) -> None:
        """Refuse everything.

        Raises:
            KeyError: always.
        """
        raise ValueError

    def checked(self) -> None:
        """Refuse everything."""
        self._refuse_all()

    def seconds(self, timeout: float) -> None:
        """Wait for at most `timeout`."""

    def steps(self, window: int) -> None:
        """Wait.

        Args:
            window: how far back is seen.
        """

    def foreign(self) -> int | None:
        """Size of it; null where there is none."""

    def old(self) -> None:
        """Cell of a paper."""

    def _refuse_all(self) -> None: ...


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("untold", "size: no line in Args"),
        ("shapeless", "x: no shape"),
        ("call", "x: no shape"),
        ("returned", "no shape of what is returned"),
        ("silent", "no Raises, ValueError"),
        ("other", "no Raises, ValueError"),
        ("checked", "no Raises, refuse_"),
        ("seconds", "timeout: no unit, second|minute|hour"),
        ("steps", "window: no unit, step"),
        ("foreign", "null is for YAML and JSON, and None for Python"),
        ("old", "no source"),
    ],
)
def test_a_wrong_docstring_is_refused(name: str, told: str) -> None:
    assert list(problems(getattr(_Wrong, name), of_paper=name == "old", method=True)) == [told]


@pytest.mark.parametrize(
    "text", ["(B, T, I)", "(N,)", "(..., d)", "(heads, d_k, d_v)", "(K - 1, 2 heads d_k)", "a scalar"]
)
def test_a_shape_is_known(text: str) -> None:
    assert shaped(f"inputs {text}, of any kind")


@pytest.mark.parametrize("text", ["f(B, T)", "(Chang et al. 2019)", "(a, b)", "(eq. 4, without A)", "(x, target)"])
def test_other_brackets_are_no_shape(text: str) -> None:
    assert not shaped(f"inputs {text}, of any kind")


def agree(text: str, actual: list[tuple[int, ...]], known: dict[str, int]) -> None:
    """See that the shapes in a text are the actual ones; a name that is not known has one value throughout."""
    names, found = dict(known), [shape.split(",") for shape in SHAPE.findall(text)]
    assert [len([size for size in shape if size.strip()]) for shape in found] == list(map(len, actual)), text
    for shape, sizes in zip(found, actual, strict=True):
        for size, value in zip(shape, sizes, strict=False):
            size = re.sub(r"(\w) (?=\w)", r"\1 * ", size.strip())
            if size.isidentifier():
                names.setdefault(size, value)
            assert eval(size, {}, names) == value, f"{size} is {value}: {text}"


@pytest.mark.parametrize("name", registry.names("cell"))
def test_the_state_has_the_shapes_that_the_docstring_gives(name: str) -> None:
    cls = registry.find("cell", name, "cell")
    given = {"T_max": 20} if "chrono" in name else {}
    cell: Any = make_cell(given, cls, Free, np.random.default_rng(1), 3, 8)
    (told,) = re.findall(r"The state is ([^.]+)\.", " ".join(str(cls.__doc__).split()))
    known = {"N": 8, "I": 3} | {
        key: getattr(cell, key) for key in ("heads", "window", "pairs", "rank") if hasattr(cell, key)
    }
    widths = {"d": "width", "d_k": "key_width", "d_v": "value_width", "K": "convolution"}
    known |= {short: getattr(cell, key) for short, key in widths.items() if hasattr(cell, key)}
    agree(told, list(cell.state_shapes()), known)


@pytest.mark.parametrize("name", registry.names("task"))
def test_a_batch_has_the_shapes_that_the_docstring_gives(name: str) -> None:
    cls: Any = registry.find("task", name, "task")
    (told,) = re.findall(r"A batch is (.+?)\.(?: |$)", " ".join(str(cls.__doc__).split()))
    if issubclass(cls, Drawn):
        task = cls()
        agree(told, [tuple(part.shape) for part in task.sample(3, 0)], {"B": 3} | ({"T": task.T} if task.T else {}))
    else:
        assert len(SHAPE.findall(told)) >= 2
