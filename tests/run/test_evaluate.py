"""Trained weights at other lengths, several batches at once: the task's own measure there, and nothing else touched."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import orthobench
from orthobench.ensemble.running import run_members
from orthobench.errors import ConfigError
from orthobench.models.build import build_model, build_optimizer, build_schedule, build_task
from orthobench.run import memory
from orthobench.run.evaluate import evaluate
from orthobench.run.learner import Learner
from orthobench.run.run import Run
from orthobench.study.catalogue import SHIPPED, Catalogue
from orthobench.study.records.records import line
from orthobench.tasks.duration import duration
from tests.run.finished import SMALL, finished

HARMED = ("model=rnn", "task=adding", "T=6", "optimizer.lr=100")  # best after the first step of two
COPYING = ("model=scornn", "task=copying", "T=5")
CUED = ("model=gru", "task=cued_copying", "task.delay=[2,4]")
VARIED = {
    "adding": "T=6", "denoise": "T=14", "parenthesis": "T=20", "recall": "T=5",
    "cued_recall": "task.pairs=[1,2]", "parity": "task.length=[3,6]", "cycle": "task.length=[3,6]",
    "modular_arithmetic": "task.length=[3,5]", "group_word": "task.length=[3,6]",
}  # fmt: skip
OTHER = {"denoise": 20, "parenthesis": 30, "cued_recall": 20}


@pytest.mark.parametrize("words", [COPYING, HARMED, CUED, (*CUED, "trainer.precision=64")])
def test_as_trained_it_is_the_test_of_the_record(words: tuple[str, ...], tmp_path: Path) -> None:
    folder, record = finished(tmp_path, *words)
    for which, name in (("best", "best_val"), ("last", "last")):
        (found,) = evaluate(orthobench.load(folder, which=which))  # type: ignore[arg-type]
        assert found["metrics"] == {key: v for key, v in record["metrics"][name].items() if key.startswith("test/")}
        assert found["baseline"] == record["baseline"]


@pytest.mark.parametrize("task", VARIED)
@pytest.mark.sampled(4)
def test_every_task_whose_length_can_vary(task: str, tmp_path: Path) -> None:
    length = OTHER.get(task, 9)
    folder, _ = finished(tmp_path, "model=rnn", f"task={task}", VARIED[task])
    run = orthobench.load(folder)
    (found,) = evaluate(run, [length])
    twin, measured = run.task.at_length(length), []  # type: ignore[attr-defined]
    with torch.no_grad():
        x, target, *mask = twin.batch("test", 0, 0)  # all 30 are one batch
        measured = twin.summarise({k: float(v) for k, v in twin.measure(run.model(x)[0], target, *mask).items()})
    assert found["metrics"] == pytest.approx({f"test/{name}": value for name, value in measured.items()}, rel=1e-5)
    assert (found["baseline"], found["examples"]) == (twin.baseline, 30)


def test_a_file_beside_the_record_is_found_the_second_time_and_a_damaged_one_made_again(tmp_path: Path) -> None:
    folder, _ = finished(tmp_path, *COPYING)
    before = (folder / "record.json").read_bytes()
    first = evaluate(orthobench.load(folder), [5, 9])
    files = sorted((folder / "evaluations").iterdir())
    again = evaluate(orthobench.load(folder), [9, 5, 11])
    assert [one["found"] for one in first + again] == [False, False, True, True, False]
    assert {**again[0], "found": False} == first[1]
    assert len(files) == 2
    for file in files:
        file.write_text(file.read_text().replace('"schema": 3', '"schema": 4'))
    anew = evaluate(orthobench.load(folder), [5, 9])
    assert [(one["found"], one["metrics"]) for one in anew] == [(False, one["metrics"]) for one in first]
    assert (folder / "record.json").read_bytes() == before
    assert orthobench.build(*SMALL, *COPYING, f"runs_root={tmp_path}").run()["status"] == "done"


@pytest.mark.parametrize("words", [COPYING, CUED])
def test_without_the_marker(words: tuple[str, ...], tmp_path: Path) -> None:
    (found,) = evaluate(orthobench.load(finished(tmp_path, *words)[0]), marker=False)
    assert set(found["metrics"]) == {"test/loss", "test/emitted"}
    assert found["baseline"] == {}


@pytest.mark.parametrize(
    ("words", "lengths", "task", "message"),
    [
        (COPYING, None, {"digits": 4}, "task.digits does not apply to task="),
        (CUED, [0], {}, "there is no test at length 0"),
        (("model=rnn", "task=kth_largest", "T=12"), [15], {}, "its T is also the width of the model"),
        (("model=rnn", "task=group_word"), None, {"group": "s5"}, "input size would be 120, and the model has 6"),
    ],
)
def test_what_the_model_cannot_be_tested_on(
    words: Any, lengths: Any, task: dict[str, Any], message: str, tmp_path: Path
) -> None:
    run = orthobench.load(finished(tmp_path, *words)[0])
    with pytest.raises(ConfigError, match=message):
        evaluate(run, lengths, **task)


@pytest.mark.data
@pytest.mark.parametrize(
    ("task", "message"), [("mnist_flat", "an image is read at once"), ("mnist", "input size would be 2, and the model")]
)
def test_a_length_that_is_fixed(task: str, message: str, tmp_path: Path) -> None:
    model = "mlp" if task == "mnist_flat" else "rnn"
    words = [word for word in SMALL if "task." not in word] + [f"task={task}", f"model={model}"]
    limits = ("trainer.limit_val_batches=1", "trainer.limit_test_batches=1", "trainer.max_steps=1")
    exp = orthobench.build(*words, *limits, f"runs_root={tmp_path}")
    exp.run()
    with pytest.raises(ConfigError, match=message):
        evaluate(orthobench.load(exp.settings.folder), [392])


EMITTED = "test/emitted"  # the control of cued copying


@pytest.mark.parametrize("words", [COPYING, HARMED, CUED])
def test_a_run_with_eval_lengths_records_its_curve(words: tuple[str, ...], tmp_path: Path) -> None:
    folder, record = finished(tmp_path, *words, "task.eval_lengths=[3,7]")
    found = evaluate(orthobench.load(folder), [3, 7])
    expected = {
        str(length): one["metrics"] | {f"baseline/{name}": value for name, value in one["baseline"].items()}
        for length, one in zip((3, 7), found, strict=True)
    }
    controls = {
        n: {key: scores.pop(key) for key in set(scores) - set(expected[n])} for n, scores in record["lengths"].items()
    }
    assert record["lengths"] == expected
    if words == CUED:
        unasked = evaluate(orthobench.load(folder), [3, 7], marker=False)
        assert controls == {n: {EMITTED: one["metrics"][EMITTED]} for n, one in zip("37", unasked, strict=True)}
    else:
        assert controls == {"3": {}, "7": {}}
    values = line(record, "full", "row", {}, 10).values
    assert values["length/7:test/loss"] == expected["7"]["test/loss"]
    assert values["length/3:baseline/loss"] == expected["3"]["baseline/loss"]


def test_members_of_an_ensemble_record_theirs(tmp_path: Path) -> None:
    words = (*SMALL, *CUED, "task.eval_lengths=[3,7]")
    runs = [
        Run.fitted(SHIPPED.settings((*words, f"seed={seed}", f"runs_root={tmp_path / 'together'}"))) for seed in (1, 2)
    ]
    assert run_members(runs) == [0, 0]
    for seed, run in zip((1, 2), runs, strict=True):
        _, alone = finished(tmp_path / "alone", *CUED, "task.eval_lengths=[3,7]", f"seed={seed}")
        together = json.loads((run.settings.folder / "record.json").read_text())
        assert together["lengths"] == alone["lengths"]


def test_other_batches_have_the_same_sequences(tmp_path: Path) -> None:
    folder, record = finished(tmp_path, "model=gru", "task=adding", "T=6", "task.eval_batch_size=8")
    run = orthobench.load(folder)
    for size in (30, 7, 1):
        (found,) = evaluate(run, eval_batch_size=size)
        assert found["metrics"]["test/loss"] == pytest.approx(record["metrics"]["best_val"]["test/loss"], rel=1e-5)


@pytest.mark.parametrize(
    ("words", "given", "message"),
    [
        (("task=adding", "T=6"), {"eval_lengths": [4, 8]}, r"eval_lengths=.* does not apply.*: use T=\[4,8\] "),
        (("task=adding", "T=6"), {"train_size": 10}, r"train_size=10 does not apply .*changes nothing in a test"),
        (("task=adding", "T=6"), {"val_size": 10}, r"val_size=10 does not apply .*changes nothing in a test"),
        (("task=series", "task.path=$FILE"), {"test_share": 0.9}, r"test_share=0.9 .*what the model was trained on"),
        (("task=series", "task.path=$FILE"), {"val_share": 0.5}, r"val_share=0.5 .*what the model was trained on"),
    ],
)
def test_what_would_change_nothing_or_test_on_training_data_is_refused(
    words: tuple[str, ...], given: dict[str, Any], message: str, tmp_path: Path
) -> None:
    for name, start in (("my", 0), ("other", 100)):
        x = np.arange(start, start + 120).reshape(40, 3, 1) / 10
        np.savez(tmp_path / f"{name}.npz", x=x, y=np.arange(40) % 2)
    words = tuple(word.replace("$FILE", str(tmp_path / "my.npz")) for word in words)
    kept = [word for word in SMALL if "_size" not in word or word.startswith("model")]
    exp = orthobench.build(*(kept if "task=series" in words else SMALL), "model=gru", *words, f"runs_root={tmp_path}")
    exp.run()
    run = orthobench.load(exp.settings.folder)
    with pytest.raises(ConfigError, match=message):
        evaluate(run, **given)
    if "test_share" in given:  # of which the model has seen nothing
        (found,) = evaluate(run, path=str(tmp_path / "other.npz"), **given)
        assert found["examples"] == 36


def test_tokens_are_counted_that_are_predicted(tmp_path: Path) -> None:
    (tmp_path / "my.txt").write_text("abcde fghij " * 100)
    words = ("task=text", f"task.path={tmp_path / 'my.txt'}", "T=10", "task.batch_size=4", "task.eval_batch_size=3")
    exp = orthobench.build(*SMALL[:5], "model=gru", *words, f"runs_root={tmp_path}")
    exp.run()
    (found,) = evaluate(orthobench.load(exp.settings.folder))
    predicted = sum(
        target.numel() for i in range(exp.task.batches("test")) for _, target in [exp.task.batch("test", 0, i)]
    )
    assert (found["examples"], found["unit"]) == (predicted, "tokens")


WORDS = ("recipe=none", "model.hidden_size=8", "task.val_size=50", "task.eval_batch_size=10", "trainer.max_steps=1")


def evaluated(monkeypatch: pytest.MonkeyPatch, at_once: int, *words: str) -> tuple[dict[str, float], list[int]]:
    """The metrics of the validation split, and how many sequences each call of the network had."""
    monkeypatch.setattr(memory, "AT_ONCE", at_once)
    settings = Catalogue().settings([*WORDS, *words])
    task = build_task(settings)
    model = build_model(settings, task).double().eval()
    sizes: list[int] = []
    model.register_forward_pre_hook(lambda module, given: sizes.append(len(given[0])))
    given = duration(settings.trainer, task.batches("train"))
    learner = Learner(model, task, build_optimizer(settings, model), build_schedule(settings), given)
    learner.on_validation_epoch_start()
    with torch.inference_mode():
        for index in range(task.batches("val")):
            batch: Any = tuple(map(_double, task.batch("val", 0, index)))
            learner.validation_step(batch, index)
        learner.on_validation_epoch_end()
    return learner.results, sizes


def _double(part: Tensor) -> Tensor:
    return part.double() if part.is_floating_point() else part


@pytest.mark.parametrize("task", ["task=copying T=20", "task=adding T=20", "task=parity", "task=denoise T=30"])
def test_the_numbers_are_those_of_the_batches(task: str, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("model=scornn", *task.split())
    alone, each = evaluated(monkeypatch, 1, *words)
    together, all_ = evaluated(monkeypatch, memory.GIB, *words)
    assert together == pytest.approx(alone, rel=1e-12)
    assert set(each) == {10}
    assert sum(all_) == sum(each) == 50
    assert len(all_) < len(each)


def test_as_many_as_memory_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("model=scornn", "task=copying", "T=20")
    settings = Catalogue().settings([*WORDS, *words])
    task = build_task(settings)
    model, x = build_model(settings, task), task.batch("val", 0, 0)[0]
    monkeypatch.setattr(memory, "AT_ONCE", memory.GIB // 4)
    each = memory.AT_ONCE / memory.rows_at_once(model, task, x)
    _, sizes = evaluated(monkeypatch, int(25 * each), *words)
    assert sizes == [20, 20, 10]
    longer = Catalogue().settings([*WORDS, "model=scornn", "task=copying", "T=80"])
    x = build_task(longer).batch("val", 0, 0)[0]
    assert memory.rows_at_once(model, task, x) < 25 / 2
