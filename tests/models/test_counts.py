"""Parameter counts of the papers' tables and of their baselines, from models built as the command line builds them."""

import itertools
from types import SimpleNamespace

import pytest

import orthobench
from orthobench.errors import ConfigError
from orthobench.models.build import build_model, build_task, fit_to_budget
from orthobench.models.recurrent import Recurrent
from orthobench.study.catalogue import SHIPPED


def network(*words: str, inputs: int = 2, outputs: int = 1) -> Recurrent:
    """The model of an override list, on inputs and outputs of these widths."""
    task = SimpleNamespace(input_size=inputs, output_size=outputs, readout="last")
    return build_model(SHIPPED.settings(["recipe=none", *words]), task)  # type: ignore[arg-type]


def total(*words: str, **widths: int) -> int:
    return network(*words, **widths).parameter_counts()["total"]


SGORNN = {
    "adding": {"vprnn": 1409, "sgornn": 1411, "fastrnn": 16899, "lstm": 67201},
    "har2": {"vprnn": 2305, "sgornn": 2307, "fastrnn": 17795, "lstm": 19009},
    "ptb_word": {"vprnn": 67840, "sgornn": 67842, "fastrnn": 131330, "lstm": 525312},
}


@pytest.mark.parametrize("task", SGORNN)
@pytest.mark.parametrize("model", SGORNN["adding"])
@pytest.mark.sampled(5)
def test_sgornn_tables(model: str, task: str) -> None:
    words = [f"model={model}", f"task={task}"]
    if (model, task) == ("lstm", "adding"):
        words += ["recipe=none", "model.hidden_size=128"]  # the pair's recipe is another paper's
    exp = orthobench.build(*words)
    if task == "ptb_word":  # table 3 counts the cell alone
        assert sum(p.numel() for p in exp.model.cells.parameters()) == SGORNN[task][model]
    else:
        assert exp.parameters["total"] == SGORNN[task][model]


@pytest.mark.parametrize(
    ("model", "task", "count"),
    [
        ("vprnn", "ptb_word", 5197840),
        ("sgornn", "ptb_word", 5197842),
        ("fastrnn", "ptb_word", 5261330),
        ("lstm", "ptb_word", 5655312),
        ("scornn", "adding", 15046),
        ("scornn", "mnist", 16415),
        ("scornn", "pmnist", 16415),
        ("lstm", "copying", 22109),
        ("lstm", "adding", 15181),
        ("lstm", "mnist", 67850),
        ("urnn_restricted", "mnist", 32 * 512 + 10),
        ("urnn_full", "mnist", 116**2 + 25 * 116 + 10),
        ("rnn", "recall", 4910),  # the toy task of Chu and others
        ("urnn_exp", "recall", 3635),
    ],
)
def test_models_as_a_whole(model: str, task: str, count: int) -> None:
    assert orthobench.build(f"model={model}", f"task={task}").parameters["total"] == count


@pytest.mark.parametrize("model", ["exprnn", "sgornn_exp"])
def test_the_journal_versions_of_sgornn(model: str) -> None:
    assert total(f"model={model}", "model.hidden_size=128") == 8641 + 2 * (model == "sgornn_exp")


# Spectral-RNN, table 4: inputs per step, outputs, and the counts of RNN, LSTM, oRNN, Spectral-RNN
UCR = {
    "50words": (10, 50, 3058, 7218, 2426, 2850),
    "Adiac": (11, 38, 2694, 6950, 2062, 2486),
    "ArrowHead": (1, 3, 1219, 4515, 587, 1011),
    "Beef": (10, 6, 1606, 5766, 974, 1398),
    "BeetleFly": (16, 3, 1699, 6435, 1067, 1491),
    "CBF": (8, 4, 1476, 5444, 844, 1268),
    "Coffee": (13, 2, 1570, 6018, 938, 1362),
    "Cricket_X": (15, 13, 1997, 6637, 1365, 1789),
    "DistalPhalanxOutlineCorrect": (8, 2, 1410, 5378, 778, 1202),
    "DistalPhalanxTW": (8, 9, 1641, 5609, 1009, 1433),
    "ECG200": (8, 2, 1410, 5378, 778, 1202),
    "ECG5000": (10, 6, 1606, 5766, 974, 1398),
    "ECGFiveDays": (8, 3, 1443, 5411, 811, 1235),
    "FaceAll": (1, 15, 1615, 4911, 983, 1407),
    "FaceFour": (14, 5, 1701, 6245, 1069, 1493),
    "FacesUCR": (1, 15, 1615, 4911, 983, 1407),
    "Gun_Point": (10, 3, 1507, 5667, 875, 1299),
    "InsectWingbeatSound": (16, 12, 1996, 6732, 1364, 1788),
    "ItalyPowerDemand": (4, 3, 1315, 4899, 683, 1107),
    "Lighting2": (13, 2, 1570, 6018, 938, 1362),
    "MiddlePhalanxOutlineCorrect": (8, 2, 1410, 5378, 778, 1202),
}
TABLE4 = {
    "rnn": ["model=rnn"],
    "lstm": ["model=lstm"],
    "ornn": ["model=ornn", "model.m=16"],
    "spectral_rnn": ["model=spectral_rnn", "model.m1=16", "model.m2=16"],
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("model", TABLE4)
@pytest.mark.parametrize("dataset", UCR)
def test_spectral_rnn_table_4(dataset: str, model: str) -> None:
    inputs, outputs, *counts = UCR[dataset]
    words = [*TABLE4[model], "model.hidden_size=32", "model.trainable_h0=true"]
    assert total(*words, inputs=inputs, outputs=outputs) == counts[list(TABLE4).index(model)]


@pytest.mark.parametrize("dataset", ["50words", "DistalPhalanxTW", "ECG200"])
@pytest.mark.parametrize("model", ["ornn", "spectral_rnn"])
def test_spectral_rnn_table_4_by_its_recipe(dataset: str, model: str) -> None:
    exp = orthobench.build(f"model={model}", "task=ucr", f"task.dataset={dataset}")
    assert exp.parameters["total"] == UCR[dataset][2 + list(TABLE4).index(model)]


@pytest.mark.parametrize(
    ("words", "count"),
    [
        (["model=spectral_rnn", "model.hidden_size=128"], 5530),
        (["model=spectral_rnn", "model.hidden_size=128", "model.trainable_h0=true"], 5658),
        (["model=ornn", "model.hidden_size=256"], 11034),
        (["model=rnn", "model.hidden_size=128"], 17930),  # the paper prints 35k, of another model
        (["model=lstm", "model.hidden_size=128"], 67850),
    ],
)
def test_spectral_rnn_table_2(words: list[str], count: int) -> None:
    assert total(*words, inputs=1, outputs=10) == count


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize(
    ("model", "size", "count", "printed"),
    [("rnn", 128, 16384, 16), ("lstm", 128, 65536, 64), ("spectral_rnn", 512, 32288, 31.5)],
)
def test_spectral_rnn_table_3_counts_recurrent_matrices(
    model: str, size: int, layers: int, count: int, printed: float
) -> None:
    counts = ["model.m1=32", "model.m2=32"] if model == "spectral_rnn" else []
    words = [f"model={model}", f"model.hidden_size={size}", f"model.layers={layers}", *counts]
    assert network(*words, inputs=32, outputs=10).parameter_counts()["recurrent"] == layers * count
    assert layers * count // 1024 == int(layers * printed)  # 31 and 63 for two


# NC-GRU, section 6.2 of our reading: inputs, outputs, then LSTM, GRU, scoRNN, NC-GRU(U_c), NC-GRU(U_c, U_r)
NCGRU = {
    "parenthesis": (7, 18, (42, 9174), (50, 9618), (110, 8873), (56, 10182), (56, 8586)),
    "denoise": (10, 10, (90, 37270), (100, 34310), (200, 24110), (118, 39835), (118, 32814)),
    "adding": (2, 1, (68, 19381), (70, 15401), (190, 18716), (80, 16761), (80, 13521)),
    "copying": (10, 9, (68, 22109), (78, 21537), (190, 21764), (96, 27033), (96, 22377)),
}
COLUMNS = {
    "lstm": ["model=lstm"],
    "gru": ["model=gru"],
    "scornn": ["model=scornn"],
    "ncgru": ["model=ncgru"],
    "ncgru two": ["model=ncgru", "model.orthogonal=[c,r]"],
}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("task", NCGRU)
def test_ncgru_synthetic_tasks(task: str, column: str) -> None:
    inputs, outputs, *sizes = NCGRU[task]
    size, count = sizes[list(COLUMNS).index(column)]
    assert total(*COLUMNS[column], f"model.hidden_size={size}", inputs=inputs, outputs=outputs) == count


@pytest.mark.parametrize("task", NCGRU)
@pytest.mark.parametrize("model", ["gru", "ncgru"])
@pytest.mark.sampled(3)
def test_ncgru_synthetic_tasks_by_their_recipes(task: str, model: str) -> None:
    exp = orthobench.build(f"model={model}", f"task={task}", "variant=code")
    assert exp.parameters["total"] == NCGRU[task][2 + list(COLUMNS).index(model)][1]


# NC-GRU, stacks on Penn Treebank: embedding, hidden size, and millions in layers of (h, h, e), (h, e), (e, h, e)
PTB = {
    "char lstm": (350, 880, 12.28, 6.08, 7.06),
    "char gru": (415, 950, 11.04, 5.62, 6.65),
    "char scornn": (500, 2000, 10.15, 4.15, 4.53),
    "char ncgru": (430, 1000, 11.07, 5.57, 6.59),
    "word lstm": (400, 1150, 24.22, 13.63, 14.92),
    "word ncgru": (400, 1150, 17.76, 10.48, 11.37),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("stack", ["h,h,e", "h,e", "e,h,e"])
@pytest.mark.parametrize("row", PTB)
def test_ncgru_stacks(row: str, stack: str) -> None:
    level, model = row.split()
    e, h, *millions = PTB[row]
    sizes = [{"e": e, "h": h}[layer] for layer in stack.split(",")]
    words = [f"model={model}", f"model.embedding_size={e}", "model.tied=true", "model.double_bias=true"]
    form = [f"model.layer_sizes={sizes}".replace(" ", "")] if stack == "e,h,e" else [f"model.layers={len(sizes)}"]
    vocabulary = {"char": 50, "word": 10000}[level]
    count = total(*words, f"model.hidden_size={h}", *form, inputs=vocabulary, outputs=vocabulary)
    assert round(count / 1e6, 2) == millions[["h,h,e", "h,e", "e,h,e"].index(stack)]


def test_the_released_ncgru_script() -> None:
    words = ["model=ncgru", "model.embedding_size=435", "model.tied=true", "model.double_bias=true"]
    count = total(*words, "model.hidden_size=1000", inputs=50, outputs=50)
    assert round(count / 1e6, 2) == 1.06


WIDTHS = {"copying": (10, 9), "adding": (2, 1), "mnist": (1, 10), "timit": (129, 129)}
SCORNN = {  # section 6.1 of our reading, tables 1 to 3 and figures 1 and 2: the parameters by the size
    ("copying", "scornn"): {190: 21764},
    ("adding", "scornn"): {170: 15046},
    ("mnist", "scornn"): {170: 16415, 360: 68950, 512: 136970},
    ("timit", "scornn"): {224: 83121, 322: 135208, 425: 200304},
    ("copying", "urnn_restricted"): {470: 22569},
    ("copying", "urnn_full"): {128: 21641},
    ("copying", "lstm"): {68: 22109},
    ("adding", "urnn_restricted"): {950: 15201},
    ("adding", "urnn_full"): {120: 15481},
    ("adding", "lstm"): {60: 15181},
    ("mnist", "urnn_restricted"): {512: 16394, 2170: 69450},
    ("mnist", "urnn_full"): {116: 16366, 360: 138610, 512: 274954},
    ("mnist", "lstm"): {128: 67850, 256: 266762, 512: 1057802},
    ("timit", "urnn_restricted"): {158: 83237, 256: 134785, 378: 198957},
    ("timit", "urnn_full"): {128: 82945, 192: 136641, 256: 198529},
    ("timit", "lstm"): {84: 82869, 120: 135609, 158: 202527},
}
GORU = {"parenthesis": (7, 18, 64, 11024), "denoise": (10, 10, 128, 38536), "adding": (2, 1, 128, 34303),
        "copying": (10, 9, 100, 24407)}  # fmt: skip


@pytest.mark.sampled(8)
@pytest.mark.parametrize(("task", "model", "size"), [(*pair, size) for pair in SCORNN for size in SCORNN[pair]])
def test_scornn_tables(task: str, model: str, size: int) -> None:
    inputs, outputs = WIDTHS[task]
    extra = ["model.unitary_init=identity"] if model == "urnn_full" else []  # quicker to draw, and no other count
    count = total(f"model={model}", f"model.hidden_size={size}", *extra, inputs=inputs, outputs=outputs)
    assert count == SCORNN[task, model][size]


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


MODELS_OF_A_BUDGET = ("lstm", "scornn", "mamba2", "slstm", "lru", "eunn", "eunn model.style=fft")


@pytest.mark.parametrize(
    ("model", "budget"),
    [
        *itertools.product(MODELS_OF_A_BUDGET, (2000, 6902)),
        *(("mamba2", 697), ("mlstm model.heads=8", 1308), ("eunn model.style=fft", 183)),
    ],
)
def test_a_budget_comes_to_the_nearest_of_all_sizes(model: str, budget: int) -> None:
    """Also where every second or eighth size is allowed, and counts that are guessed fall between."""
    words = [f"model={model.split()[0]}", *model.split()[1:], "task=copying", f"params={budget}", "recipe=none"]
    asked, sizes = SHIPPED.settings(words), range(1, 1030)
    found, task = fit_to_budget(asked).model["hidden_size"], build_task(asked)

    def far(size: int) -> float:
        try:
            return abs(build_model(asked.with_hidden_size(size), task).parameter_counts()["total"] - budget)
        except ConfigError:
            return float("inf")

    near = [size for size in sizes if found / 2 - 8 <= size <= 2 * found + 8]
    assert found == min(near, key=lambda size: (far(size), size))
