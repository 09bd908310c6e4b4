"""The settings in config.yaml make the same run again in any process, whichever files of conf/ they are from."""

from pathlib import Path

import pytest
import yaml

from orthobench.config.files import GROUPS
from orthobench.config.recorded import content_of, settings_of
from orthobench.config.settings import Settings
from orthobench.errors import ConfigError
from orthobench.models.build import fit_to_budget
from orthobench.study.catalogue import SHIPPED, Catalogue
from orthobench.study.tables.table import FULL

PARTNERS = {"model": ("task=copying", "task=mnist_flat"), "task": ("model=scornn", "model=mlp")}
FILES = [f"{group}={name}" for group in GROUPS if group != "experiment" for name in SHIPPED.options(group)]


def same(made: Settings) -> bool:
    """Check that what is written of a run's settings is read as the same."""
    read = settings_of(yaml.safe_load(yaml.safe_dump(content_of(made))), made.run["runs_root"])
    return (read.digest, content_of(read), read.cap, read.foreign) == (
        made.digest,
        content_of(made),
        made.cap,
        made.foreign,
    )


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
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "mine.yaml").write_text("cell: elman\nhidden_size: 4\n")
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
