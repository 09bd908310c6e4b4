"""`orthobench list`: descriptions from the files, details from the built tasks, a user's files among them."""

from pathlib import Path

import pytest

from orthobench.__main__ import main
from orthobench.study.catalogue import SHIPPED
from orthobench.verbs.list import details


def test_models_tasks_and_tables_have_their_descriptions(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "mine.yaml").write_text("description: A model of mine\ncell: lstm\n")
    assert main(["list", "models", "--config-dir", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == sorted(["mine", *SHIPPED.options("model")])
    assert any(line.endswith("A model of mine") for line in lines)


@pytest.mark.parametrize("task", SHIPPED.options("task"))
def test_a_task_tells_its_shapes_and_its_data(task: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORTHOBENCH_DATA", str(tmp_path))
    told, *data = details(task)
    assert " in, " in told
    assert ", baseline " in told
    if data:
        (where,) = data
        name = where.rpartition(" ")[2]
        assert where == f"no data: orthobench prepare {name}"
        (tmp_path / name).mkdir()
        assert details(task)[1] == f"data in {tmp_path / name}"


def test_the_tasks_that_read_data_say_which() -> None:
    reads = {task for task in SHIPPED.options("task") if len(details(task)) == 2}
    assert reads == {"har2", "mnist", "mnist_flat", "noisy_mnist", "pmnist", "ptb_char", "ptb_word", "timit", "ucr"}


def test_one_that_cannot_be_built_hides_no_other(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "broken.yaml").write_text("description: A model of mine\ncell: lstn\n")
    assert main(["list", "models", "--counts", "--config-dir", str(tmp_path)]) == 2
    out, err = capsys.readouterr()
    lines = {line.split()[0]: line for line in out.splitlines()}
    assert list(lines) == sorted(["broken", *SHIPPED.options("model")])
    assert lines["broken"].endswith("cannot be built")
    assert "did you mean 'lstm'" in err
