"""Every (model, task) pair that one of the five papers ran has a recipe with that paper's sizes.

`SIZES` repeats the papers' tables (our reading's section 3.7): the hidden size of each recipe, or of each layer.
"""

import pytest

import orthobench
from orthobench.study.catalogue import SHIPPED

SIZES = {
    "sgornn": {
        "adding": {"vprnn": 128, "sgornn": 128, "fastrnn": 128, "lstm": None},  # the LSTM's recipe is scoRNN's
        "har2": {"vprnn": 128, "sgornn": 128, "fastrnn": 128, "lstm": 64},
        "ptb_word": {"vprnn": 256, "sgornn": 256, "fastrnn": 256, "lstm": 256},
    },
    "scornn": {
        "copying": {"scornn": 190, "lstm": 68, "urnn_restricted": 470, "urnn_full": 128},
        "adding": {"scornn": 170, "lstm": 60, "urnn_restricted": 950, "urnn_full": 120},
        "mnist": {"scornn": 170, "lstm": 128, "urnn_restricted": 512, "urnn_full": 116},
        "pmnist": {"scornn": 170, "lstm": 128, "urnn_restricted": 512, "urnn_full": 116},
        "timit": {"scornn": 224, "lstm": 84, "urnn_restricted": 158, "urnn_full": 128},
    },
    "ncgru": {
        "parenthesis": {"ncgru": 56, "scornn": 110, "lstm": 42, "gru": 50, "goru": 64},
        "denoise": {"ncgru": 118, "scornn": 200, "lstm": 90, "gru": 100, "goru": 128},
        "adding": {"ncgru": 80, "scornn": None, "lstm": None, "gru": 70, "goru": 128},  # 190 and 68; scoRNN's win
        "copying": {"ncgru": 96, "scornn": 190, "lstm": 68, "gru": 78, "goru": 100},
        "ptb_char": {"ncgru": 1000, "scornn": 2000, "lstm": 880, "gru": 950},
        "ptb_word": {"ncgru": 1150, "scornn": None, "lstm": None, "gru": None},  # sizes are lost
    },
    "spectral_rnn": {
        "adding": {"spectral_rnn": 128, "ornn": 128, "irnn": 128, "rnn": 128, "lstm": None},
        "copying": {"spectral_rnn": 128, "ornn": 128, "irnn": 128, "rnn": 128, "lstm": None},
        "mnist": {"spectral_rnn": 128, "ornn": 256, "rnn": 128, "irnn": 128, "lstm": 128, "urnn_restricted": 512,
                  "urnn_full": 116},
        "pmnist": {"spectral_rnn": 128, "ornn": 256, "rnn": 128, "irnn": 128, "lstm": 128},
        "mnist_flat": {"mlp": 128, "resnet": 128, "spectral_mlp": 128, "spectral_resnet": 128},
        "ptb_word": {"spectral_rnn": 512, "rnn": None, "lstm": None},  # the RNN's is Chu's, the LSTM's SGORNN's
        "ucr": {"spectral_rnn": 32, "ornn": 32, "rnn": 32, "lstm": 32},
    },
    "urnn_ugru": {
        "recall": {"urnn_exp": 50, "rnn": 50},
        "kth_largest": {"urnn_exp": 50, "rnn": 50},
        "ptb_word": {"urnn_exp": 200, "rnn": 200, "ugru": 200, "gru": 200},
    },
}  # fmt: skip
PAIRS = [
    pytest.param(model, task, size, id=f"{paper}: {model} on {task}")
    for paper, tasks in SIZES.items()
    for task, models in tasks.items()
    for model, size in models.items()
]


@pytest.mark.sampled(12)
@pytest.mark.parametrize(("model", "task", "size"), PAIRS)
def test_every_pair_of_the_papers_has_its_recipe(model: str, task: str, size: int | None) -> None:
    assert f"{model}/{task}" in SHIPPED.options("recipe")
    if size is not None:
        assert orthobench.build(f"model={model}", f"task={task}").settings.model["hidden_size"] == size


@pytest.mark.parametrize("task", ["copying", "adding", "mnist", "pmnist", "timit"])
def test_the_full_urnn_takes_plain_gradient_steps_on_the_group(task: str) -> None:
    exp = orthobench.build("model=urnn_full", f"task={task}")
    optimizer, images = exp.settings.optimizer, task in ("mnist", "pmnist")
    assert (optimizer["recurrent"], optimizer["lr_recurrent"]) == ("sgd", 1e-6 if images else 1e-3)
    assert (optimizer["name"], optimizer["start"], optimizer["eps"]) == ("rmsprop_tf", 1e-3, 1e-30)
    assert exp.settings.model["rms_gradient"] is images


@pytest.mark.parametrize("task", ["adding", "copying", "mnist", "pmnist"])
def test_the_irnn_of_spectral_rnns_paper(task: str) -> None:
    model = orthobench.build("model=irnn", f"task={task}").settings.model
    found = [model[key] for key in ("recurrent_init", "activation", "input_init")]
    assert found == ["orthogonal", "leaky_relu", "normal 0.1"]


def test_the_irnn_of_the_urnn_papers_code() -> None:
    words = ["optimizer=rmsprop", "trainer.gradient_clip_val=1", "trainer.gradient_clip_algorithm=value"]
    exp = orthobench.build("model=irnn", "task=copying", "recipe=none", *words)
    model, W = exp.settings.model, exp.model.cells[0].recurrent["h"]()
    assert (model["activation"], model["input_init"], model["output_init"]) == ("relu", "glorot", "glorot")
    assert W.trace() == W.sum() == 128
    assert exp.settings.trainer["gradient_clip_val"] == 1


@pytest.mark.parametrize(
    ("task", "sizes"),
    [("adding", (15046, 15181, 15201, 15481)), ("copying", (21764, 22109, 22569, 21641)),
     ("timit", (83121, 82869, 83237, 82945))],
)  # fmt: skip
def test_scornns_models_are_of_one_size(task: str, sizes: tuple[int, ...]) -> None:
    models = ("scornn", "lstm", "urnn_restricted", "urnn_full")
    assert tuple(orthobench.build(f"model={m}", f"task={task}").parameters["total"] for m in models) == sizes
