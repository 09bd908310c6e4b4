"""The settings in config.yaml make the same run again in any process, and so do the words that say them."""

import json
from pathlib import Path

import pytest
import yaml

import orthobench
from orthobench.config.files import GROUPS
from orthobench.config.overrides import recipe, words
from orthobench.config.recorded import by_key, content_of, settings, settings_of, task_overrides
from orthobench.config.settings import Settings
from orthobench.errors import ConfigError
from orthobench.models.build import fit_to_budget
from orthobench.study.catalogue import SHIPPED, Catalogue
from orthobench.study.tables.table import FULL
from tests.conftest import write

RUN_IDS = json.loads((Path(__file__).parents[1] / "made_before" / "run_ids.json").read_text())


@pytest.mark.sampled(10)
@pytest.mark.parametrize("words", RUN_IDS)
def test_settings_are_those_that_were_written(words: str) -> None:
    text = yaml.safe_dump(orthobench.build(*words.split()).settings.as_dict())
    assert settings(yaml.safe_load(text)).run_id == RUN_IDS[words]


def test_other_settings_of_the_task() -> None:
    before = orthobench.build("model=gru", "task=cued_copying", "seed=3").settings
    after = settings(before.as_dict(), "elsewhere", delay=[20, 20], marker=False)
    assert after.task == before.task | {"delay": [20, 20], "marker": False}
    assert (after.model, after.run["seed"], after.run["data_root"]) == (before.model, 3, "elsewhere")


@pytest.mark.parametrize("content", [None, "text", {}, {"model": {"name": "gru"}}])
def test_what_is_no_configuration(content: object) -> None:
    with pytest.raises(ConfigError, match="not the configuration of a run"):
        settings(content)


def test_overrides_of_a_finished_run() -> None:
    words = ["T=400,800", "task.delay=[20,20]", "task.marker=false", "task.group='s5'"]
    assert task_overrides(words) == ({"delay": [20, 20], "marker": False, "group": "s5"}, [400, 800])
    assert task_overrides([]) == ({}, None)
    assert task_overrides(["T=1e3,400,1000,400"]) == ({}, [1000, 400]), "numbers as a run takes them, each once"


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("seed=3", "seed=3 does not apply to a run that is finished"),
        ("model=gru", "model=gru does not apply"),
        ("model.hidden_size=8", "does not apply"),
        ("optimizer.lr=1", "does not apply"),
        ("task=adding", "task=adding does not apply"),
        ("task.marker=true,false", "does not apply"),
        ("T=0", "T=0 is not a length"),
        ("T=1.5", "T=1.5 is not a length"),
        ("T=inf", "T=inf is not a length"),
        ("T=null", "T=None is not a length"),
        ("T=[4", "not an override of the form"),
    ],
)
def test_other_overrides_are_refused(word: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message.replace("[", r"\[")):
        task_overrides([word])


PARTNERS = {"model": ("task=copying", "task=mnist_flat"), "task": ("model=scornn", "model=mlp")}
FILES = [f"{group}={name}" for group in GROUPS if group != "experiment" for name in SHIPPED.options(group)]


def same(made: Settings) -> bool:
    """Check that what is written of a run's settings is read as the same."""
    read = settings_of(yaml.safe_load(yaml.safe_dump(content_of(made))), made.run["runs_root"])
    seen = [(one.digest, content_of(one), one.cap, one.foreign) for one in (read, made)]
    return seen[0] == seen[1]


def composed(word: str) -> Settings:
    """The settings of a run that a file is a part of, with the first partner that suits it."""
    group, _, name = word.partition("=")
    pair = name.split("/")
    words = [word, f"model={pair[0]}", f"task={pair[-1]}"] if group == "recipe" and name != "none" else [word]
    first, *others = PARTNERS.get(group, ("seed=1",))
    try:
        return SHIPPED.settings([*words, first])
    except ConfigError:
        return SHIPPED.settings([*words, *others])


@pytest.mark.sampled(40)
@pytest.mark.parametrize("word", FILES)
def test_every_file(word: str) -> None:
    assert same(composed(word))


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", SHIPPED.options("experiment"))
def test_every_table(name: str) -> None:
    """A row of it, with the hidden size that its budget of parameters allows."""
    table = SHIPPED.table(name)
    row = list(table.trained(None))[-1]
    assert same(fit_to_budget(SHIPPED.settings(list(table.runs(FULL, [1], [row])[0].overrides))))


@pytest.mark.parametrize(
    "words",
    [
        ["model=scornn", "params=4000", "model.rho=max"],
        ["model=gru", "task=adding", "stopping.patience=3", "trainer.max_time='00:00:10:00'", "timeout=2.5"],
        ["model=ncgru", "task=denoise", "T=30"],  # whose variants differ where none is asked for
        ["model=ncgru", "task=denoise", "T=30", "variant=code"],
        ["model=vprnn", "task=adding", "runs_root='a b'", "trainer.max_steps=100000", "seed=18446744073709551615"],
        ["model=lstm", "task=cycle", "trainer.limit_val_batches=1.0", "engine=reference", "logger=wandb"],
    ],
    ids=" ".join,
)
def test_words_that_leave_traces(words: list[str]) -> None:
    assert same(fit_to_budget(SHIPPED.settings(words)))


def test_what_only_the_command_line_knows_is_kept(tmp_path: Path) -> None:
    """A recipe's max_epochs that typed steps have replaced, and the digest of a file of `--config-dir`."""
    write(tmp_path, {"model/mine.yaml": "cell: elman\nhidden_size: 4\n"})
    words = ["model=mine", "task=mnist", "trainer.max_steps=900", "data_root=nowhere"]
    made = Catalogue((tmp_path,)).settings([*words[:3], "trainer.max_epochs=1"])
    assert [name for name, _ in made.foreign] == ["model/mine.yaml"]
    assert same(made)
    longer = SHIPPED.settings(["model=scornn", "task=pmnist", "trainer.max_steps=1000000"])
    assert longer.cap
    assert same(longer)


@pytest.mark.parametrize("start", [None, "x", {"files": ["x"]}, {"files": {"x": 1}}, {"cap": "x"}, {"cap": -1}])
def test_what_is_wrong_with_it_is_refused(start: object) -> None:
    content = content_of(SHIPPED.settings(["model=rnn", "task=adding"]))
    with pytest.raises(ConfigError, match="start"):
        settings_of(content | {"start": start}, "runs")


def test_a_finished_run_keeps_the_variants_of_its_model_and_its_task() -> None:
    from orthobench.config import recorded

    made = SHIPPED.settings(["model=ncgru", "task=denoise", "T=30"])
    assert (made.model["variant"], made.task["variant"]) == ("paper", "code")
    assert recorded.settings(content_of(made)).digest == made.digest


ASKED = [
    "model=scornn task=copying",
    "model=scornn task=copying T=200 seed=3 trainer.max_steps=2000",
    "model=gru task=adding optimizer=sgd optimizer.lr=0.5 schedule=linear variant=code",
    "model=gru model.recurrent=scaled_cayley model.hidden_size=12 model.rho=0.25 task=adding T=20",
    "model=vprnn task=adding model.hidden_size=16 trainer.gradient_clip_val=1",
    "model=ncgru task=copying recipe=none model.orthogonal=[c,r] task.select_on_test=true",
    "model=lstm task=mnist trainer.max_steps=7 trainer.limit_val_batches=1.0",
    "model=gru task=copying stopping.patience=3 stopping.threshold=0.1 stopping.metric=loss trainer.min_steps=5",
    "model=lru_block task=cued_copying params=5000 trainer.limit_train_batches=2",
    "model=lstm task=ucr task.dataset=ECG200 trainer.max_time='00:00:10:00'",
    "model=urnn_full task=copying T=30 optimizer.lr_recurrent=2e-5 init_from=copying-urnn_full-0123456789",
]


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.sampled(5)
def test_the_words_give_the_same_run(asked: str) -> None:
    made = SHIPPED.settings(asked.split())
    found = words(json.loads(json.dumps(made.as_dict())), SHIPPED)  # as a record holds it
    assert SHIPPED.settings(found).digest == made.digest


def test_the_words_are_those_that_the_recipe_does_not_bring() -> None:
    asked = ["model=scornn", "task=copying", "T=200", "optimizer.lr=0.01", "trainer.max_steps=2000"]
    assert words(SHIPPED.settings(asked).as_dict(), SHIPPED) == asked
    assert words(SHIPPED.settings(asked[:2]).as_dict(), SHIPPED) == asked[:2]


def test_a_setting_that_this_version_does_not_have_is_told() -> None:
    values = SHIPPED.settings(["model=scornn", "task=copying"]).as_dict()
    values["model"] = values["model"] | {"warp": 9}
    with pytest.raises(ConfigError, match=r"model\.warp"):
        words(values, SHIPPED)


@pytest.mark.parametrize("asked", [ASKED[1], ASKED[2], ASKED[3], ASKED[5], ASKED[7]])
@pytest.mark.sampled(2)
def test_the_recipe_gives_the_same_run(asked: str, tmp_path: Path) -> None:
    made = SHIPPED.settings(asked.split())
    text = "# @package _global_\n" + yaml.safe_dump(recipe(made.as_dict(), SHIPPED))
    write(tmp_path, {"recipe/tuned.yaml": text})
    plain = [f"model={made.model['name']}", f"task={made.task['name']}", f"seed={made.run['seed']}", "recipe=tuned"]
    assert Catalogue((tmp_path,)).settings(plain).digest == made.digest


def test_settings_have_the_keys_of_the_command_line() -> None:
    found = by_key(SHIPPED.settings(["model=gru", "task=adding", "T=20", "seed=4"]).as_dict())
    assert (found["model"], found["task"], found["T"], found["seed"]) == ("gru", "adding", 20, 4)
    assert found["optimizer"] == "adam"
    assert "task.num_workers" not in found, "it changes no number"
    assert not {"logger", "data_root", "trainer.accelerator"} & set(found)
