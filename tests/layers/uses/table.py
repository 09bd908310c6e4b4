"""The table of layers and uses: what happens, and docs/reference/layer-uses.md, which shows it.

`python -m tests.layers.uses.table` writes the page from what happens, in some twenty minutes; given names of uses, it
renews their columns alone, and adds those that the page does not have.
"""

import sys
import traceback
import warnings
from collections.abc import Callable

from tests.conftest import REPO
from tests.layers.uses import copies, derivatives, exporters, masks, processes, weights
from tests.layers.uses.common import KINDS, NotApplicable, NotTheMean, Surrogate

PAGE = REPO / "docs" / "reference" / "layer-uses.md"
RIGHT, NO_PART, LAST, SOFT = "+", "-", "a", "s"
REFUSALS = {  # a part of the sentence that is raised
    "b": "second derivatives (create_graph=True) are not available here: use engine=reference",
    "c": "cannot be exported as it is with dynamo=True",
    "d": "Stiefel sets theta to zero after every step",
    "e": "layers are exported by torch.export.export(..., strict=False)",
}
NOTES = {
    RIGHT: "The answer is right.",
    NO_PART: "The layer has no recurrent map.",
    LAST: "Parameters are averaged, but the recurrent matrix is the last one: use `use_buffers=True`.",
    SOFT: "The gradient is that of a softmax in the place of a choice: no derivative equals it.",
    "b": 'Refused: make the layer with `engine="reference"`.',
    "c": "Refused: export `orthobench.layers.frozen(model)`, or use `dynamo=False`.",
    "d": "Refused: prune the cell's `U` or a bias, or choose another matrix.",
    "e": "Refused: use `strict=False`, the default.",
}

TEXT = """# What works with the layers

The layers are used with other code of PyTorch: exporters, hooks, averages, transforms, several processes. This page
says what works. Each cell of the table is a test, and `python -m tests.layers.uses.table` writes the page.

| sign | meaning |
|---|---|
{notes}

| | use |
|---|---|
{uses}

Layers by uses:

| layer | {numbers} |
|---|{line}
{rows}

How to read some of the uses:

- *Exports.* While anything traces or exports, a layer takes `engine=reference`. ONNX has no complex numbers: there
  `h_n` of a complex layer is the pair [Re h, Im h]. `torch.jit.trace` and `dynamo=False` fix the number of steps.
- *Hooks and parametrizations* act on `layer.cells[0]` and its parts, as in
  `prune.l1_unstructured(layer.cells[0], "U", 0.5)`.
- *Averages.* A mean of orthogonal matrices is not orthogonal. The layer checks what was averaged or loaded, and takes
  the nearest orthogonal or unitary matrix.
- *torch.compile* works without `fullgraph=True`, because compiled loops are left as they are.
"""

USES: dict[str, Callable[[str], None]] = {
    "onnx, dynamo=False": exporters.onnx_traced,
    "onnx, dynamo=True": exporters.onnx_dynamo,
    "onnx of layers.frozen": exporters.onnx_frozen,
    "torch.export": exporters.export,
    "torch.export, strict": exporters.export_strict,
    "jit.trace": exporters.jit_trace,
    "make_fx": exporters.make_fx,
    "FlopCounterMode": exporters.counted,
    "torch.compile": exporters.compiled,
    "prune of U": weights.prune_input,
    "prune of the recurrent map": weights.prune_recurrent,
    "weight_norm (hook)": weights.weight_norm_hook,
    "spectral_norm (hook)": weights.spectral_norm_hook,
    "parametrizations.weight_norm": weights.weight_norm_parametrized,
    "parametrizations.spectral_norm": weights.spectral_norm_parametrized,
    "forward hook of a cell": weights.hooks_of_a_cell,
    "AveragedModel": copies.averaged,
    "AveragedModel, use_buffers": copies.averaged_buffers,
    "mean of state_dicts": copies.mean_of_state_dicts,
    "copy.deepcopy": copies.deep_copy,
    "pickle": copies.pickled,
    ".double() and back": copies.double_and_back,
    "meta, to_empty": copies.meta,
    "one cell in two layers": copies.one_cell_in_two_layers,
    "functional_call": derivatives.functional_call,
    "func.grad": derivatives.func_grad,
    "vmap of func.grad": derivatives.func_per_sample,
    "vmap of stacked layers": derivatives.func_stacked,
    "vmap of func.grad of stacked layers": derivatives.func_stacked_grad,
    "func.jvp": derivatives.func_jvp,
    "second derivative": derivatives.second_derivative,
    "second derivative, engine=reference": derivatives.second_derivative_reference,
    "checkpoint": derivatives.checkpointed,
    "DistributedDataParallel": processes.data_parallel,
    "the same, two processes": processes.data_parallel_two,
    "threads after a step": processes.threads,
    "lengths=": masks.with_lengths,
    "reset=": masks.with_reset,
    "PackedSequence": masks.with_packs,
}

SLOW = ("torch.export", "torch.compile", "onnx, dynamo=True", "onnx of layers.frozen", "the same, two processes")


def outcome(kind: str, use: str) -> str:
    """The sign of what happens, a key of `NOTES`; or where it is a fault what was raised."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            USES[use](kind)
        except NotApplicable:
            return NO_PART
        except NotTheMean:
            return LAST
        except Surrogate:
            return SOFT
        except Exception as error:
            return refusal(error) or "".join(traceback.format_exception(error))
    return RIGHT


def refusal(error: BaseException) -> str | None:
    """The sign of an error that is, or comes from, one of the sentences of the package."""
    seen: BaseException | None = error
    while seen is not None:
        found = next((sign for sign, part in REFUSALS.items() if part in str(seen)), None)
        if found is not None:
            return found
        seen = seen.__cause__ or seen.__context__
    return None


def page(cells: dict[tuple[str, str], str]) -> str:
    """The page of a table whose cells are signs by (kind, use)."""
    numbers = range(1, len(USES) + 1)
    uses = "\n".join(f"| {number} | {use} |" for number, use in zip(numbers, USES, strict=True))
    notes = "\n".join(f"| {sign} | {text} |" for sign, text in NOTES.items())
    rows = "\n".join(f"| {kind} | {' | '.join(cells[kind, use] for use in USES)} |" for kind in KINDS)
    return TEXT.format(
        uses=uses,
        notes=notes,
        rows=rows,
        numbers=" | ".join(map(str, numbers)),
        line="---|" * len(USES),
    )


def shown() -> dict[tuple[str, str], str]:
    """The cells of the page as it is, whose uses may be others than those of now."""
    found: dict[tuple[str, str], str] = {}
    uses: list[str] = []
    for line in PAGE.read_text(encoding="utf-8").splitlines() if PAGE.exists() else ():
        first, *rest = [part.strip() for part in line.strip("|").split("|")]
        if first.isdecimal():
            uses += rest
        elif first in KINDS:
            found |= {(first, use): sign for use, sign in zip(uses, rest, strict=True)}
    return found


def main() -> None:
    cells = shown() if len(sys.argv) > 1 else {}
    for use in USES:
        for kind in KINDS:
            if use in sys.argv[1:] or (kind, use) not in cells:
                cells[kind, use] = outcome(kind, use)
                if cells[kind, use] not in NOTES:
                    print(f"{use}, {kind}: {cells[kind, use]}", file=sys.stderr)
        print(f"{use}: {''.join(cells[kind, use][:1] for kind in KINDS)}", flush=True)
    PAGE.write_text(page(cells), encoding="utf-8")


if __name__ == "__main__":
    main()
