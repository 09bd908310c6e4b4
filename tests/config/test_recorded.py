"""What a run's config.yaml holds makes the same settings again, and with other settings of the task those."""

import json
from pathlib import Path

import pytest
import yaml

import orthobench
from orthobench.config.recorded import settings, task_overrides
from orthobench.errors import ConfigError

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
        ("T=null", "T=None is not a length"),
        ("T=[4", "not an override of the form"),
    ],
)
def test_other_overrides_are_refused(word: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message.replace("[", r"\[")):
        task_overrides([word])
