"""conf/, file by file: every model on every task builds and takes one training step, or says why it does not."""

from functools import cache
from pathlib import Path

import pytest
import torch
import yaml

import orthobench
from orthobench.config.check import check
from orthobench.config.compose import Composed
from orthobench.config.files import conf_dir
from orthobench.config.settings import Settings
from orthobench.errors import ConfigError, DataError
from orthobench.models.build import build_optimizer, build_schedule
from orthobench.run.learner import Learner
from orthobench.run.run import Run
from orthobench.study.catalogue import SHIPPED

MODELS, TASKS = SHIPPED.options("model"), SHIPPED.options("task")
RECIPES = [name for name in SHIPPED.options("recipe") if name != "none"]
REAL = {path.stem for path in Path(__file__).parents[1].glob("orthobench/tasks/real/*.py")}
TINY = {"batch_size": 2, "val_size": 4, "test_size": 4, "eval_batch_size": 4}


def words(model: str, task: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The words of a model, and those of a task at its smallest."""
    from orthobench.common.registry import find
    from orthobench.common.schema import fields

    known = fields(find("task", task, "task"))
    length = ["T=28"] if task in ("mnist", "pmnist", "noisy_mnist") else ["T=12"] if "T" in known else []
    sizes = [f"task.{key}={value}" for key, value in TINY.items() if key in known]
    return (f"model={model}", "model.hidden_size=8"), (f"task={task}", *length, *sizes)


def tiny(model: str, task: str, *further: str) -> Run:
    """A run of a pair at its smallest."""
    of_model, of_task = words(model, task)
    return orthobench.build(*of_model, *of_task, "recipe=none", *further)


@cache
def with_another(*own: str) -> Composed:
    return SHIPPED.compose([*own, "recipe=none"])


def joined(model: str, task: str) -> Settings:
    """The settings of a pair from what Hydra composes of its model and of its task, each with another partner.

    Without a recipe neither file reads which the other is, as the pairs that are composed whole show.
    """
    ours, theirs = (with_another(*own) for own in words(model, task))
    values, choices = theirs.values | {"model": ours.values["model"]}, theirs.choices | {"model": model}
    return check(Composed(values, choices, ours.typed | theirs.typed, ours.new | theirs.new))


def one_step(exp: Run) -> None:
    """One training step, as the trainer takes it."""
    optimizer = build_optimizer(exp.settings, exp.model)
    learner = Learner(exp.model, exp.task, optimizer, build_schedule(exp.settings), exp.duration)
    before = {name: value.clone() for name, value in exp.model.named_parameters()}
    loss = learner.training_step(exp.task.batch("train", 0, 0), 0)
    assert torch.isfinite(loss)
    loss.backward()
    optimizer.step()
    learner.after_step()
    after = dict(exp.model.named_parameters())
    assert any(not torch.equal(before[name], after[name]) for name in before)
    assert all(torch.isfinite(value).all() for value in after.values())


def refusal(model: str, task: str, whole: bool) -> ConfigError | DataError | None:
    """Why a pair does not train; None when it does."""
    try:
        exp = tiny(model, task) if whole else Run.fitted(joined(model, task))
        assert not whole or exp.settings.identity == joined(model, task).identity
        one_step(exp)
    except (ConfigError, DataError) as error:
        return error
    return None


COMPOSED = [  # every model with two tasks, and every task with two models
    (model, task)
    for model in MODELS
    for task in TASKS
    if task in ("copying", "mnist_flat") or model in ("scornn", "lstm")
]
OTHERS = [(model, task) for model in MODELS for task in TASKS if (model, task) not in COMPOSED]


@pytest.mark.parametrize(
    ("model", "task", "whole"),
    [
        *(pytest.param(*pair, True) for pair in COMPOSED),
        *(pytest.param(*pair, False, marks=pytest.mark.slow) for pair in OTHERS),
    ],
)
@pytest.mark.sampled(50)
def test_every_pair_trains_or_says_why(model: str, task: str, whole: bool) -> None:
    error = refusal(model, task, whole)
    if isinstance(error, DataError):
        assert task in REAL
        assert "prepare" in str(error)
        pytest.skip(f"no data for {task} here: {error}")
    if error is not None:
        assert len(str(error)) > 20
        assert model in str(error) or task in str(error)


@pytest.mark.sampled(12)
@pytest.mark.parametrize("recipe", RECIPES)
def test_every_recipe_composes_and_names_its_sources(recipe: str) -> None:
    model, task = recipe.split("/")
    exp = orthobench.build(f"model={model}", f"task={task}")
    assert exp.parameters["total"] > 0
    assert exp.duration.steps
    text = (conf_dir() / "recipe" / f"{recipe}.yaml").read_text()
    assert text.startswith("# @package _global_\n# ")
    settings = [line for line in text.split("\ndeviations:")[0].splitlines()[2:] if line.strip()]
    unsourced = [line for line in settings if "#" not in line and not line.rstrip().endswith(":")]
    assert not unsourced, f"say where these values are from: {unsourced}"


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_sets_nothing_but_the_experiment(recipe: str) -> None:
    content = yaml.safe_load((conf_dir() / "recipe" / f"{recipe}.yaml").read_text())
    assert set(content) <= {"T", "model", "task", "optimizer", "schedule", "trainer", "variant", "deviations"}


@pytest.mark.parametrize("group", ["model", "task", "experiment"])
def test_every_file_has_a_description(group: str) -> None:
    for name in SHIPPED.options(group):
        if name != "none":
            description = SHIPPED.about(group, name)[0].description
            assert 10 < len(description) < 120, name
            assert not description.endswith(".")


@pytest.mark.parametrize("group", ["optimizer", "schedule", "logger", "trainer"])
def test_every_file_says_what_it_is(group: str) -> None:
    for path in sorted((conf_dir() / group).glob("*.yaml")):
        first = path.read_text().splitlines()[0]
        assert first.startswith("# "), path
        assert len(first) < 120, path


def test_config_yaml_is_short() -> None:
    assert len((conf_dir() / "config.yaml").read_text().splitlines()) <= 43


@pytest.mark.parametrize("optimizer", SHIPPED.options("optimizer"))
def test_every_optimizer_file_sets_every_key(optimizer: str) -> None:
    if optimizer == "default":
        pytest.skip("default is the empty file that leaves the recipe's values")
    content = yaml.safe_load((conf_dir() / "optimizer" / f"{optimizer}.yaml").read_text())
    assert content["name"] == optimizer
    exp = orthobench.build(f"optimizer={optimizer}", "T=5")
    assert exp.settings.optimizer["name"] == optimizer
    assert exp.settings.optimizer["lr"] == 1e-3
    assert exp.settings.optimizer["lr_recurrent"] == 1e-3, "the recipe's own rate must not leak through"
    one_step(tiny("scornn", "copying", f"optimizer={optimizer}"))


@pytest.mark.parametrize("schedule", SHIPPED.options("schedule"))
def test_every_schedule_trains(schedule: str) -> None:
    one_step(tiny("scornn", "copying", f"schedule={schedule}"))


def test_the_papers_settings_come_from_the_recipe() -> None:
    exp = orthobench.build("model=scornn", "task=copying", "T=2000")
    model, optimizer = exp.settings.model, exp.settings.optimizer
    assert (model["hidden_size"], model["rho"]) == (190, 95)
    assert (optimizer["name"], optimizer["lr"], optimizer["lr_recurrent"]) == ("rmsprop_tf", 1e-3, 1e-4)
    assert optimizer["recurrent"] == "rmsprop_tf"
    assert (exp.settings.task["batch_size"], exp.duration.steps, exp.task.T) == (20, 10000, 2000)
    assert exp.parameters == {"total": 21764, "recurrent": 17955}


def test_the_command_line_beats_the_recipe() -> None:
    words = ("T=20", "model.hidden_size=10", "optimizer.lr=0.5", "trainer.max_steps=3", "task.batch_size=7")
    exp = orthobench.build(*words)
    assert exp.settings.model["hidden_size"] == 10
    assert exp.settings.model["rho"] == 5, "a share follows the hidden size"
    assert exp.settings.optimizer["lr"] == 0.5
    assert (exp.duration.steps, exp.task.batch_size) == (3, 7)
    plain = orthobench.build("recipe=none").settings
    assert (plain.optimizer["name"], plain.task["train_size"]) == ("adam", None), "those of the model and of config"
