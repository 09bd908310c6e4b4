"""Tasks on a file of one's own: splits, normalisation, losses after each sequence's last step, and refusals."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import orthobench
from orthobench.__main__ import main
from orthobench.errors import ConfigError, DataError
from orthobench.tasks.real.series import Series
from orthobench.tasks.real.text import Text

N = 40


def written(folder: Path, **changes: Any) -> str:
    rng = np.random.default_rng(1)
    y = rng.integers(0, 3, N)
    x = rng.normal(2.0, 3.0, size=(N, 6, 2)) + y[:, None, None]
    np.savez(folder / "my.npz", **{"x": x, "y": y, **changes})
    return str(folder / "my.npz")


def test_splits_are_apart_and_the_test_part_is_the_same_for_every_seed(tmp_path: Path) -> None:
    a, b = Series(path=written(tmp_path), seed=1), Series(path=written(tmp_path), seed=2)
    assert sorted(np.concatenate(list(a.parts.values())).tolist()) == list(range(N))
    assert [a.rows(split) for split in ("train", "val", "test")] == [26, 6, 8]
    assert a.parts["test"].tolist() == b.parts["test"].tolist()
    assert a.parts["val"].tolist() != b.parts["val"].tolist()


def test_features_are_normalised_by_the_training_part_without_its_padding(tmp_path: Path) -> None:
    lengths = np.random.default_rng(2).integers(1, 7, N)
    task = Series(path=written(tmp_path, lengths=lengths), batch_size=N)
    x, _, mask = task.batch("train", 0, 0)
    assert mask.sum(1).tolist() == [1] * task.rows("train")
    inside = torch.arange(6)[None, :] <= mask.to(torch.int8).argmax(1)[:, None]
    torch.testing.assert_close(x[inside].mean(0), torch.zeros(2), atol=1e-5, rtol=0)
    torch.testing.assert_close(x[inside].std(0, correction=0), torch.ones(2), atol=1e-5, rtol=0)
    assert not x[~inside].any()


def test_digits_that_float32_has_not_count_until_a_feature_is_normalised(tmp_path: Path) -> None:
    x = np.random.default_rng(1).normal(size=(N, 6, 1))
    expected = Series(path=written(tmp_path, x=x), batch_size=N).batch("train", 0, 0)[0]
    far = Series(path=written(tmp_path, x=x + 1.7e9), batch_size=N)
    found = far.batch("train", 0, 0)[0]
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


def test_the_loss_is_that_of_the_last_step_of_each_sequence(tmp_path: Path) -> None:
    lengths = np.random.default_rng(2).integers(1, 7, N)
    exp = orthobench.build(
        "model=gru", "task=series", f"task.path={written(tmp_path, lengths=lengths)}", "model.hidden_size=5"
    )
    assert isinstance(exp.task, Series)
    assert exp.task.T is None
    x, target, mask = exp.task.batch("test", 0, 0)
    y, _ = exp.model(x)
    chosen = exp.task.parts["test"]
    pairs = zip(x, lengths[chosen], strict=True)
    alone = torch.stack([exp.model(row[None, :length])[0][0, -1] for row, length in pairs])
    torch.testing.assert_close(exp.task.loss(y, target, mask), torch.nn.functional.cross_entropy(alone, target))
    accuracy = exp.task.measure(y, target, mask)["accuracy"]
    assert float(accuracy) == pytest.approx(float((alone.argmax(-1) == target).double().mean()))


def test_values_are_in_deviations_of_the_training_part(tmp_path: Path) -> None:
    task = Series(path=written(tmp_path, y=np.random.default_rng(3).normal(50, 7, N)), batch_size=N)
    _, target = task.batch("train", 0, 0)
    assert (task.objective, task.output_size, task.metric, task.metrics) == ("regress", 1, "rmse", ("loss", "rmse"))
    torch.testing.assert_close(target.mean(), torch.tensor(0.0), atol=1e-5, rtol=0)
    torch.testing.assert_close(target.std(correction=0), torch.tensor(1.0), atol=1e-5, rtol=0)
    test = task.targets("test")
    assert task.baseline["loss"] == pytest.approx((test**2).mean())
    y = task.stored.y
    expected = np.sqrt(((y[task.parts["test"]] - y[task.parts["train"]].mean()) ** 2).mean())
    assert task.baseline["rmse"] == pytest.approx(expected)


def test_whole_numbers_are_classes_unless_they_are_called_values(tmp_path: Path) -> None:
    path = written(tmp_path)
    assert Series(path=path).output_size == 3
    assert Series(path=path, target="value").output_size == 1
    words = Series(path=written(tmp_path, y=np.array(["dog", "cat"] * (N // 2))))
    assert words.classes == ["cat", "dog"]


@pytest.mark.parametrize(
    "words", [("1.1", "1.10", "1.2"), ("10", "9", "2"), ("null", "NA", "walk"), ("1e5", "01", "b")]
)
def test_targets_of_a_table_are_the_places_of_their_names(words: tuple[str, ...], tmp_path: Path) -> None:
    path, names = tmp_path / "my.csv", [words[n % 3] for n in range(30)]
    path.write_text("id,t,v,target\n" + "".join(f"{n},0,{n},{name}\n" for n, name in enumerate(names)))
    task = Series(path=str(path), target="class")
    for split, chosen in task.parts.items():
        assert [task.classes[k] for k in task.targets(split)] == [names[n] for n in chosen]


def test_a_part_that_writes_a_class_otherwise_than_training_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "my.csv"
    rows = [("train", "1"), ("train", "2"), ("val", "1"), ("test", "1.0")]
    path.write_text("id,t,v,target,part\n" + "".join(f"{n},0,{n},{c},{part}\n" for n, (part, c) in enumerate(rows)))
    with pytest.raises(DataError, match=r"test has the class '1\.0', which is '1' in training: write it in one way"):
        Series(path=str(path)).check()
    path.write_text(path.read_text().replace("1.0,test", "1.5,test"))  # values are no names
    assert Series(path=str(path)).objective == "regress"
    Series(path=str(path)).check()


def test_the_baseline_is_the_score_of_the_class_shares(tmp_path: Path) -> None:
    task = Series(path=written(tmp_path))
    train, test = task.targets("train"), task.targets("test")
    shares = np.bincount(train, minlength=3) / len(train)
    assert task.baseline["loss"] == pytest.approx(-np.log(shares[test]).mean())
    assert task.baseline["accuracy"] == pytest.approx((test == shares.argmax()).mean())


def test_the_files_parts_are_kept(tmp_path: Path) -> None:
    path = written(tmp_path, train=np.arange(30), test=np.arange(30, N))
    task = Series(path=path)
    assert task.parts["test"].tolist() == list(range(30, N))
    assert set(task.parts["val"].tolist()) < set(range(30))
    assert task.files() == [Path(path)]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({}, []),
        ({"train": np.arange(30), "test": np.arange(30, N)}, []),
        ({"train": np.arange(30)},
         ["train: 10 of 40 sequences are in none and not used, and what makes val and test is drawn from train"]),
        ({"train": np.arange(30), "test": np.arange(30, 36)},
         ["train, test: 4 of 40 sequences are in none and not used, and what makes val is drawn from train"]),
        ({"train": np.arange(20), "val": np.arange(20, 30), "test": np.arange(30, 39)},
         ["train, val, test: 1 of 40 sequences is in none and not used"]),
        ({"train": np.arange(30), "test": np.arange(30, N), "y": np.arange(N) // 10},
         ["no training sequence is of the class 3, which val or test have"]),
        ({"train": np.arange(15), "y": np.arange(N) // 10}, ["25 of 40"]),
        ({"train": np.arange(3), "val": np.arange(3, N - 1), "test": [N - 1], "y": np.arange(N)},
         ["of the class 3, 4, 5, 6, 7 and 32 more, which"]),
        ({"y": np.arange(N) + 0.5}, []),
    ],
)  # fmt: skip
def test_sequences_that_are_not_used_and_classes_that_are_not_trained_are_told(
    changes: dict[str, Any], told: list[str], tmp_path: Path
) -> None:
    path = written(tmp_path, **changes)
    found = Series(path=path, target="class" if 39 in changes.get("y", ()) else "auto").remarks()
    assert len(found) == len(told)
    for sentence, part in zip(found, told, strict=True):
        assert sentence.startswith(path)
        assert part in sentence


def test_a_run_says_what_is_not_used(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(here, train=np.arange(30))
    words = ["model=gru", "model.hidden_size=4", "task=series", "trainer.max_steps=1", "logger=none"]
    assert main([*words, f"task.path={path}"]) == 0
    assert f"{path} names train: 10 of 40 sequences are in none and not used" in capsys.readouterr().out


def test_a_text_is_cut_in_order_and_baselines_are_the_unigram_models(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("a b a c\n" * 50 + "d a\n" * 5)
    task = Text(path=str(path), by="words", T=5, batch_size=2, eval_batch_size=2, val_share=0.1, test_share=0.1)
    tokens = ("a b a c <eos> " * 50 + "d a <eos> " * 5).split()
    names = task.vocabulary()
    found = task.corpus()
    joined = [names[i] for part in (found.train, found.valid, found.test) for i in part]
    assert joined == ["<unk>" if token == "d" else token for token in tokens]
    assert [task.tokens[split] for split in ("train", "val", "test")] == [212, 26, 27]
    train = [names[i] for i in found.train]
    counts = {name: max(train.count(name), 1) for name in names}
    tested = [names[i] for i in found.test]
    expected = -np.mean([np.log(counts[name] / sum(counts.values())) for name in tested])
    assert task.baseline["loss"] == pytest.approx(expected)
    assert task.baseline["perplexity"] == pytest.approx(np.exp(expected))


@pytest.mark.parametrize("content", [b"\xef\xbb\xbfab ba\n", b"ab ba\r\n", b"ab ba\r"])
def test_a_mark_at_the_start_and_other_line_ends_are_no_tokens(content: bytes, tmp_path: Path) -> None:
    mark = b"\xef\xbb\xbf"
    (tmp_path / "text.txt").write_bytes(mark * content.startswith(mark) + content.removeprefix(mark) * 60)
    task = Text(path=str(tmp_path / "text.txt"), T=5, batch_size=2, eval_batch_size=2)
    assert sorted(task.vocabulary()) == sorted(("<unk>", "\n", " ", "a", "b"))


def test_text_by_characters_and_back(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("ab ba\n" * 60)
    task = Text(path=str(path), T=5, batch_size=2, eval_batch_size=2)
    assert task.input_size == 5
    names = task.vocabulary()
    assert "".join(task.piece(names[i]) for i in task.ids("ab b")) == "\nab b"
    with pytest.raises(ConfigError, match="'z' is not among the 5 tokens"):
        task.ids("z")
    assert task.metrics == ("loss", "bpc")


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["task=series"], 2, "needs task.path=FILE"),
        (["task=text"], 2, "needs task.path=FILE"),
        (["task=series", "task.path=nothing.csv"], 3, "nothing.csv is not there"),
        (["task=text", "task.path=nothing.txt"], 3, "nothing.txt cannot be read"),
        (["task=series", "task.path=my.npz", "task.val_share=1"], 2, "task.val_share=1.0 is out of range"),
        (["task=series", "task.path=my.npz", "T=9"], 2, "T=9 does not apply to task=series"),
        (["task=series", "task.path=words.npz", "task.target=value"], 3, "task.target=value needs numbers"),
        (["task=text", "task.path=short.txt"], 3, "short.txt is too short"),
        (
            ["task=text", "task.path=rare.txt", "task.by=words", "task.min_count=1000"],
            3,
            "none of the words occurs task.min_count=1000 times in training; lower it",
        ),
        (["task=text", "task.path=binary.txt"], 3, "byte 1 is 0xff"),
    ],
)
def test_refusals(words: list[str], code: int, message: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(here)
    np.savez("words.npz", x=np.zeros((3, 2)), y=np.array(["a", "b", "a"]))
    Path("short.txt").write_text("abc\n")
    Path("rare.txt").write_text("some words " * 50)
    Path("binary.txt").write_bytes(b"\xff\xfe")
    assert main(["model=gru", "logger=none", "trainer.max_steps=1", *words]) == code
    error = capsys.readouterr().err
    assert message in error
    assert len(error.splitlines()) == 1


def test_whole_numbers_are_values_where_the_file_says_so(tmp_path: Path) -> None:
    rows = "".join(f"{i},{i + 1}:{10 * i}\n" for i in range(30))
    names = " ".join(str(10 * i) for i in range(30))
    for kind, objective in (("@targetLabel true", "regress"), (f"@classLabel true {names}", "classify")):
        path = tmp_path / f"{objective}.ts"
        path.write_text(f"{kind}\n@data\n{rows}")
        assert Series(path=str(path)).objective == objective
    assert Series(path=str(tmp_path / "regress.ts"), target="class").objective == "classify"


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.zeros(N, dtype=int), "y is 0 for every sequence; two classes are needed"),
        (np.full(N, 0.5), "y is the same number in all of the training part"),
        (np.arange(N) * 1e17, "y has 40 different whole numbers in 40 sequences: say task.target=value where"),
        (np.array(["nan", *map(str, np.arange(1, N) + 0.25)]), "and words such as 'nan': values must be numbers"),
        (
            np.array(["NA", *map(str, np.arange(1, N) % 5 / 2)]),
            "39 numbers such as 0.5 in 40 sequences, and words",
        ),
        (np.array(["NA", *map(str, range(1, N))]), "39 numbers such as 1 in 40 sequences, and words such as 'NA'"),
        (np.array([f"{i},5" for i in range(N)]), "40 different names such as '0,5' in 40 sequences: write values as"),
        (np.array([f"{i}.10%" for i in range(N)]), "40 different names such as '0.10%' in 40 sequences"),
        (np.array([0, 1]), "too few sequences"),
    ],
)
def test_what_leaves_nothing_to_learn_is_refused(y: np.ndarray, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        Series(path=written(tmp_path, y=y, **({"x": np.zeros((2, 2))} if len(y) == 2 else {}))).check()
