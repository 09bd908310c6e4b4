"""The words, and the recipe, that give recorded settings again."""

import json
from pathlib import Path

import pytest
import yaml

from orthobench.config.overrides import recipe, words
from orthobench.config.recorded import by_key
from orthobench.errors import ConfigError
from orthobench.study.catalogue import SHIPPED, Catalogue

ASKED = [
    ["model=scornn", "task=copying"],
    ["model=scornn", "task=copying", "T=200", "seed=3", "trainer.max_steps=2000"],
    ["model=gru", "task=adding", "optimizer=sgd", "optimizer.lr=0.5", "schedule=linear", "variant=code"],
    ["model=gru", "model.recurrent=scaled_cayley", "model.hidden_size=12", "model.rho=0.25", "task=adding", "T=20"],
    ["model=vprnn", "task=adding", "model.hidden_size=16", "trainer.gradient_clip_val=1"],
    ["model=ncgru", "task=copying", "recipe=none", "model.orthogonal=[c,r]", "task.select_on_test=true"],
    ["model=lstm", "task=mnist", "trainer.max_steps=7", "trainer.limit_val_batches=1.0", "precision=64-true"][:-1],
    [
        "model=gru",
        "task=copying",
        "stopping.patience=3",
        "stopping.threshold=0.1",
        "stopping.metric=loss",
        "trainer.min_steps=5",
    ],
    ["model=lru_block", "task=cued_copying", "params=5000", "trainer.limit_train_batches=2"],
    ["model=lstm", "task=ucr", "task.dataset=ECG200", "trainer.max_time='00:00:10:00'"],
    [
        "model=urnn_full",
        "task=copying",
        "T=30",
        "optimizer.lr_recurrent=2e-5",
        "init_from=copying-urnn_full-0123456789",
    ],
]


@pytest.mark.parametrize("asked", ASKED, ids=" ".join)
@pytest.mark.sampled(5)
def test_the_words_give_the_same_run(asked: list[str]) -> None:
    made = SHIPPED.settings(asked)
    found = words(json.loads(json.dumps(made.as_dict())), SHIPPED)  # as a record holds it
    assert SHIPPED.settings(found).digest == made.digest


def test_the_words_are_those_that_the_recipe_does_not_bring() -> None:
    asked = ["model=scornn", "task=copying", "T=200", "optimizer.lr=0.01", "trainer.max_steps=2000"]
    assert words(SHIPPED.settings(asked).as_dict(), SHIPPED) == asked
    assert words(SHIPPED.settings(["model=scornn", "task=copying"]).as_dict(), SHIPPED) == [
        "model=scornn",
        "task=copying",
    ]


def test_a_setting_that_this_version_does_not_have_is_told() -> None:
    values = SHIPPED.settings(["model=scornn", "task=copying"]).as_dict()
    values["model"] = values["model"] | {"warp": 9}
    with pytest.raises(ConfigError, match=r"model\.warp"):
        words(values, SHIPPED)


@pytest.mark.parametrize("asked", [ASKED[1], ASKED[2], ASKED[3], ASKED[5], ASKED[7]], ids=" ".join)
@pytest.mark.sampled(2)
def test_the_recipe_gives_the_same_run(asked: list[str], tmp_path: Path) -> None:
    made = SHIPPED.settings(asked)
    (tmp_path / "recipe").mkdir()
    text = "# @package _global_\n" + yaml.safe_dump(recipe(made.as_dict(), SHIPPED))
    (tmp_path / "recipe" / "tuned.yaml").write_text(text)
    plain = [f"model={made.model['name']}", f"task={made.task['name']}", f"seed={made.run['seed']}", "recipe=tuned"]
    assert Catalogue((tmp_path,)).settings(plain).digest == made.digest


def test_settings_have_the_keys_of_the_command_line() -> None:
    found = by_key(SHIPPED.settings(["model=gru", "task=adding", "T=20", "seed=4"]).as_dict())
    assert (found["model"], found["task"], found["T"], found["seed"]) == ("gru", "adding", 20, 4)
    assert found["optimizer"] == "adam"
    assert "task.num_workers" not in found, "it changes no number"
    assert not {"logger", "data_root", "trainer.accelerator"} & set(found)
