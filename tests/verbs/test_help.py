"""The first screen, the help of each verb with an example that works, and lists with descriptions from the files."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from orthobench import verbs
from orthobench.__main__ import main
from orthobench.study.catalogue import SHIPPED
from orthobench.verbs import GROUPS, VERBS
from orthobench.verbs.list import details
from tests.conftest import Refused, Run, write
from tests.pages import composed

SLOW = {"torch", "lightning", "numpy", "pandas", "scipy", "matplotlib", "optuna", "altair", "wandb"}
OF_A_RUN = [name for name, verb in VERBS.items() if "runs/adding" in verb.example or "runs/ " in f"{verb.example} "]


def test_every_verb_has_a_file_and_is_in_one_group() -> None:
    assert sum(map(len, GROUPS.values())) == len(VERBS)
    files = {path.stem for path in Path(verbs.__file__).parent.glob("*.py") if "def main(" in path.read_text()}
    assert files == set(VERBS)


def test_help_begins_with_what_it_is_for(cli: Run) -> None:
    shown = cli("--help")
    assert shown.returncode == 0, shown.stderr
    lines = shown.stdout.splitlines()
    assert lines[0].startswith("orthobench measures how well recurrent neural networks remember")
    places = [lines.index(f"{group}:") for group in GROUPS]
    assert places == sorted(places)
    assert places[-1] < next(at for at, line in enumerate(lines) if "Configuration groups" in line)
    assert all(sum(line.startswith(f"  {verb} ") for line in lines[: places[-1] + 10]) == 1 for verb in VERBS)


def test_without_arguments_the_same_is_shorter(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    error = capsys.readouterr().err
    assert "usage: orthobench" in error
    assert error.count("\n  orthobench ") == 3
    lines = error.splitlines()
    assert lines[0].startswith("orthobench measures how well recurrent neural networks remember")
    assert all(any(line.startswith(f"{group} ") for line in lines) for group in GROUPS)
    assert len(lines) <= 20
    assert max(map(len, lines)) <= 120


def test_help_of_every_verb_imports_nothing_slow() -> None:
    """In one process, so that no verb is left out for want of time; what one imports is told of it alone."""
    asked = [[], ["--help"], *([verb, "--help"] for verb in VERBS)]
    program = (
        "import sys; from orthobench.__main__ import main; known = set()\n"
        f"for words in {asked!r}:\n"
        "    try: main(words)\n    except SystemExit: pass\n"
        f"    for name in {SLOW!r} & set(sys.modules) - known:\n"
        "        known.add(name); print('orthobench', *words, 'imports', name, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    assert [line for line in done.stderr.splitlines() if " imports " in line] == []
    assert [verb for verb in VERBS if f"usage: orthobench {verb}" not in done.stdout] == []


@pytest.mark.parametrize("verb", VERBS)
def test_the_example_of_a_verb_is_shown_and_composed(
    verb: str, capsys: pytest.CaptureFixture[str], refused: Refused
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([verb, "--help"])
    shown = capsys.readouterr().out
    assert ended.value.code == 0
    assert shown.startswith(f"usage: orthobench {verb}")
    assert f"example:\n  {VERBS[verb].example}\n" in shown
    assert f"\n\n{VERBS[verb].does[:1].upper()}{VERBS[verb].does[1:]}.\n" in shown, "the line of `orthobench --help`"
    refused(
        [verb, "--such-option"],
        f"orthobench: {verb}: unrecognized arguments: --such-option; see `orthobench {verb} --help`.",
    )
    assert shlex.split(VERBS[verb].example)[:2] == ["orthobench", verb]
    composed(VERBS[verb].example)


@pytest.mark.slow
def test_the_examples_about_a_finished_run_work_on_it(tmp_path: Path, cli: Run) -> None:
    """The run of the page about finished runs, whose name the examples have."""
    words = "model=scornn task=adding T=20 model.hidden_size=16 trainer.max_steps=4 task.val_size=20 task.test_size=20"
    assert cli(*words.split(), ORTHOBENCH_RUNS="runs").returncode == 0
    assert [path.name for path in (tmp_path / "runs").glob("adding-*")] == ["adding-scornn-54975264bb"]
    assert len(OF_A_RUN) == 7
    for verb in OF_A_RUN:
        done = cli(*shlex.split(VERBS[verb].example)[1:], ORTHOBENCH_RUNS="runs")
        assert done.returncode == 0, done.stdout + done.stderr


def test_models_tasks_and_tables_have_their_descriptions(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    write(tmp_path, {"model/mine.yaml": "description: A model of mine\ncell: lstm\n"})
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
    write(tmp_path, {"model/broken.yaml": "description: A model of mine\ncell: lstn\n"})
    assert main(["list", "models", "--counts", "--config-dir", str(tmp_path)]) == 2
    out, err = capsys.readouterr()
    lines = {line.split()[0]: line for line in out.splitlines()}
    assert list(lines) == sorted(["broken", *SHIPPED.options("model")])
    assert lines["broken"].endswith("cannot be built")
    assert "did you mean 'lstm'" in err
