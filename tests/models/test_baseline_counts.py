"""Parameter counts of the complex, gated and feed-forward baselines in the papers' tables."""

import pytest

import orthobench
from tests.models.test_counts import total

WIDTHS = {"copying": (10, 9), "adding": (2, 1), "mnist": (1, 10), "timit": (129, 129)}
SCORNN = [  # section 6.1 of our reading: tables 1 to 3 and figures 1 and 2
    ("copying", "scornn", 190, 21764),
    ("adding", "scornn", 170, 15046),
    ("mnist", "scornn", 170, 16415),
    ("mnist", "scornn", 360, 68950),
    ("mnist", "scornn", 512, 136970),
    ("timit", "scornn", 224, 83121),
    ("timit", "scornn", 322, 135208),
    ("timit", "scornn", 425, 200304),
    ("copying", "urnn_restricted", 470, 22569),
    ("copying", "urnn_full", 128, 21641),
    ("copying", "lstm", 68, 22109),
    ("adding", "urnn_restricted", 950, 15201),
    ("adding", "urnn_full", 120, 15481),
    ("adding", "lstm", 60, 15181),
    ("mnist", "urnn_restricted", 512, 16394),
    ("mnist", "urnn_restricted", 2170, 69450),
    ("mnist", "urnn_full", 116, 16366),
    ("mnist", "urnn_full", 360, 138610),
    ("mnist", "urnn_full", 512, 274954),
    ("mnist", "lstm", 128, 67850),
    ("mnist", "lstm", 256, 266762),
    ("mnist", "lstm", 512, 1057802),
    ("timit", "urnn_restricted", 158, 83237),
    ("timit", "urnn_restricted", 256, 134785),
    ("timit", "urnn_restricted", 378, 198957),
    ("timit", "urnn_full", 128, 82945),
    ("timit", "urnn_full", 192, 136641),
    ("timit", "urnn_full", 256, 198529),
    ("timit", "lstm", 84, 82869),
    ("timit", "lstm", 120, 135609),
    ("timit", "lstm", 158, 202527),
]
GORU = {"parenthesis": (7, 18, 64, 11024), "denoise": (10, 10, 128, 38536), "adding": (2, 1, 128, 34303),
        "copying": (10, 9, 100, 24407)}  # fmt: skip


@pytest.mark.sampled(8)
@pytest.mark.parametrize(("task", "model", "size", "count"), SCORNN)
def test_scornn_tables(task: str, model: str, size: int, count: int) -> None:
    inputs, outputs = WIDTHS[task]
    extra = ["model.unitary_init=identity"] if model == "urnn_full" else []  # quicker to draw, and no other count
    assert total(f"model={model}", f"model.hidden_size={size}", *extra, inputs=inputs, outputs=outputs) == count


@pytest.mark.parametrize("task", GORU)
def test_ncgru_goru_column(task: str) -> None:
    inputs, outputs, size, count = GORU[task]
    assert total("model=goru", f"model.hidden_size={size}", inputs=inputs, outputs=outputs) == count


@pytest.mark.parametrize(
    ("words", "recurrent"),
    [
        (["model.style=tunable", "model.capacity=4", "model.complex=false"], 2 * 64 + 2 * 63),
        (["model.style=tunable", "model.capacity=4"], 2 * (2 * 64 + 2 * 63) + 128),
        (["model.style=tunable", "model.capacity=max"], 128 * 127 + 128),  # n^2: every unitary matrix
        (["model.style=fft"], 2 * 7 * 64 + 128),
        (["model.style=fft", "model.complex=false"], 7 * 64),
    ],
)
def test_eunn_angles(words: list[str], recurrent: int) -> None:
    exp = orthobench.build("model=eunn", "task=copying", "recipe=none", "model.hidden_size=128", *words)
    assert exp.parameters["recurrent"] == recurrent
    assert exp.parameters["total"] == recurrent + 2 * 10 * 128 + 128 + 9 * 128 + 9


def test_the_dense_peephole_of_the_urnn_code() -> None:
    plain, with_peephole = (
        total("model=lstm", "model.hidden_size=40", *words) for words in ([], ["model.peephole=true"])
    )
    assert with_peephole == plain + 40 * 40


@pytest.mark.parametrize(
    ("model", "depth", "size"), [("mlp", 1, 128), ("mlp", 100, 128), ("resnet", 70, 128), ("mlp", 40, 32)]
)
def test_feed_forward_baselines(model: str, depth: int, size: int) -> None:
    words = [f"model={model}", f"model.layers={depth}", f"model.hidden_size={size}", "task=mnist_flat"]
    count = orthobench.build(*words).parameters
    assert count == {"recurrent": depth * size**2, "total": 785 * size + depth * (size**2 + size) + 10 * size + 10}


@pytest.mark.parametrize("model", ["spectral_mlp", "spectral_resnet"])
@pytest.mark.parametrize("depth", [1, 30, 100])
def test_spectral_feed_forward(model: str, depth: int) -> None:
    each = 2 * (128 * 16 - 16 * 15 // 2) + 128
    count = orthobench.build(f"model={model}", f"model.layers={depth}", "task=mnist_flat").parameters
    assert count == {"recurrent": depth * each, "total": 785 * 128 + depth * (each + 128) + 1290}
