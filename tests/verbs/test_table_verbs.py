"""The verbs that show published tables: list, plan, compare, plot, tables, site, cite, and -m experiment=."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import orthobench
from orthobench.__main__ import main
from orthobench.config.settings import Settings
from orthobench.errors import ConfigError, Stopped
from orthobench.recording.digest import write_sealed
from orthobench.recording.files import write_json
from orthobench.study.catalogue import SHIPPED
from orthobench.study.costs import measuring
from orthobench.study.costs.run_costs import START, KeptCost, digests
from orthobench.study.records import records
from orthobench.study.reproduce.plan import plan
from orthobench.study.reproduce.selection import Selection
from orthobench.tasks.base import Split
from orthobench.verbs import reproduce
from orthobench.verbs.site import written
from tests.conftest import REPO, Refused, write
from tests.report.made_up import made_up, record

pytestmark = pytest.mark.usefixtures("here")
RESULTS = f"results_root={REPO / 'results'}"
WINNERS = [
    (["fair/adding", "gru"], "gru has a row in 3 cases of fair/adding; name one: gru_T100, gru_T200, gru_T50"),
    (["fair/adding", "gur_T50"], "fair/adding has no row gur_T50"),
    (["fair/adding", "gru_T50", "T=9"], "T=9 does not apply to a row of a table"),
    (["fair/adding"], "best of a table needs its name, a row, and --write FILE"),
]


def recorded(results: Path) -> None:
    lines = [made_up("sgornn", seed, last___test__accuracy=0.94 + seed / 5000) for seed in range(1, 11)]
    lines += [made_up("lstm", seed, "smoke", last___test__accuracy=0.5) for seed in (1, 2)]
    record(results, "sgornn/table2", [*lines, made_up("lstm", 1, last___test__accuracy=0.9)])


def test_list_tables(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "tables"]) == 0
    out = capsys.readouterr().out
    assert "sgornn/table2" in out
    assert "SGORNN, Table 2: HAR-2" in out
    assert len(out.splitlines()) == len(SHIPPED.options("experiment"))


def test_compare(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    recorded(tmp_path / "results")
    assert main(["compare", "sgornn/table2"]) == 0
    out = capsys.readouterr().out
    assert "94.07 ± 0.20" in out
    assert "reproduced" in out
    assert "partial (1 of 10)" in out
    assert "shortened to smoke" in out
    assert main(["compare"]) == 2


def test_plot(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    recorded(tmp_path / "results")
    assert main(["plot", "sgornn/table2", "scornn/table1"]) == 0
    path = Path("results/figures/sgornn-table2-test-accuracy-published-and-ours.svg")
    assert f"wrote {path}" in capsys.readouterr().out
    assert path.read_text().startswith("<svg")
    assert main(["plot", "scornn/table1"]) == 0
    assert "nothing is recorded that could be drawn; results_root= names" in capsys.readouterr().out


@pytest.mark.parametrize("verb", ["site", "tables"])
def test_a_folder_that_is_not_there_is_refused(verb: str, refused: Refused) -> None:
    refused([verb, "results_root=reslts"], "results_root=reslts is not a folder: name the one that holds `records`.")
    assert not Path("reslts").exists()


@pytest.mark.slow
def test_tables(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    recorded(tmp_path / "elsewhere")
    assert main(["tables", "--check", "results_root=elsewhere"]) == 1
    assert main(["tables", "sgornn", "results_root=elsewhere"]) == 0
    assert "wrote elsewhere/tables/sgornn.md" in capsys.readouterr().out
    assert main(["tables", "results_root=elsewhere"]) == 0
    assert main(["tables", "--check", "results_root=elsewhere"]) == 0
    assert main(["tables", "sgorn"]) == 2
    assert "did you mean 'sgornn'" in capsys.readouterr().err
    assert main(["tables", "sgornn", "--format", "latex", "results_root=elsewhere"]) == 0
    assert "wrote elsewhere/tables/sgornn.tex" in capsys.readouterr().out
    assert main(["tables", "--format", "html"]) == 2


def test_when_by_what_and_where_pages_are_made() -> None:
    when = r"Written on \d{4}-\d\d-\d\d \d\d:\d\d UTC by (commit|version) .*, on .* cores, .*; Python "
    assert re.match(when, written())


@pytest.mark.parametrize("words", [["report"], ["report", "results_root=elsewhere"], ["report", "--help"]])
def test_report_is_site_now(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    told = "orthobench: `orthobench report` is `orthobench site` now, so use that: write a site of all recorded results"
    assert capsys.readouterr().err.startswith(told)


@pytest.mark.slow
def test_plan_of_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "ncgru/figure8", "--preset", "smoke"]) == 0
    out = capsys.readouterr().out
    assert "ncgru/figure8: 0 of 1 runs recorded, 1 to do" in out
    assert "ncgru_c: 1 seed, 10,182 parameters, 2 steps x" in out


def cost_of(settings: Settings) -> KeptCost:
    """A step of a second, and nothing else."""
    own, alike = digests(settings)
    batches: dict[Split, int] = {"train": 1, "val": 1, "test": 1}
    return KeptCost("", None, own, alike, None, batches, 100, 0, 1.0, 0.0, 0.0, 0.0, measuring.made_on(settings))


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "measure", cost_of)
    monkeypatch.setattr(measuring, "start_up", lambda settings: replace(cost_of(settings), digest=START, step_s=1e-9))


@pytest.mark.usefixtures("measured")
@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({}, "done"),
        ({"sources": {"data": {"mine.npz": "0" * 64}}}, "stale: it was made before a change of the data in mine.npz"),
        ({"identity": "0" * 64}, "record.json is another run's"),
        (None, "record.json has been changed since it was written"),
    ],
    ids=str,
)
def test_a_plan_does_not_call_a_stale_run_done(
    change: dict[str, Any] | None, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["model=rnn", "task=recall", "recipe=none", "trainer.max_steps=10", "data_root=here"]
    write(Path(), {"here/mine.npz": "other data than before"})
    asked = SHIPPED.settings(words)
    what = {"model": "rnn", "task": "recall", "seed": 1, "steps": 10}
    record = {"status": "done", "run_id": asked.run_id, "identity": asked.digest, **what, **(change or {})}
    sealed = write_sealed(asked.folder / "record.json", record)
    if change is None:
        write_json(asked.folder / "record.json", {**sealed, "status": "diverged"})
    assert main(["plan", *words]) == 0
    _, summary, line = capsys.readouterr().out.splitlines()
    done = change == {}
    assert line.split()[:2] == [asked.run_id, "done" if done else "stale"]
    assert told in line
    assert summary.startswith("1 done; 0" if done else "1 stale; 10")


@pytest.mark.usefixtures("measured")
def test_a_plan_is_grouped_by_what_costs_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "experiment=ncgru/figure8", "-m"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("orthobench ")
    assert " runs recorded, " in lines[1]
    assert lines[2].startswith("ncgru/figure8: 0 of ")
    rows = [line for line in lines[3:] if line.endswith(" each")]
    assert rows
    assert len(rows) == len(lines[3:])


@pytest.mark.usefixtures("measured")
def test_the_cheapest_rows_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--cheapest", "100h", "sgornn/table1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert re.match(r"\d+ rows, \d+ runs, \d+\.\d of 100h, which settle \d+ numbers and claims \(", lines[1])
    assert all(line.startswith("  sgornn/table1 ") for line in lines[2:-1])
    assert "`orthobench reproduce` with the same words" in lines[-1]
    assert main(["plan", "--cheapest", "1s", "sgornn/table1"]) == 0
    assert "0 rows, 0 runs" in capsys.readouterr().out
    assert main(["plan", "--cheapest", "soon", "sgornn/table1"]) == 2
    assert "--cheapest soon is not a time" in capsys.readouterr().err


@pytest.mark.usefixtures("measured")
def test_a_plan_of_a_table_says_which_records_are_stale(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    recorded(tmp_path / "results")
    known = records.read(tmp_path / "results", "sgornn/table2")
    (line,) = [line for line in known if line.row == "sgornn" and line.seed == 3]
    line.values.update(run_id="har2-sgornn-0123456789")
    for one in known:
        one.values.update(status="diverged")
    records.write(tmp_path / "results", "sgornn/table2", known)
    assert main(["plan", "experiment=sgornn/table2", "-m", "cell=sgornn"]) == 0
    out = capsys.readouterr().out
    assert "9 of 10 runs recorded" in out
    assert "1 to do, 1 of which are stale" in out
    assert "  sgornn seed 3: stale: run har2-sgornn-0123456789 is recorded, made with other settings." in out


@pytest.mark.usefixtures("measured")
def test_a_plan_says_how_many_records_are_taken_over(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    recorded(tmp_path / "results")
    write(tmp_path, {"mine/experiment/mine/har2.yaml": "like: sgornn/table2\nseeds: [1, 2, 30]\n"})
    assert main(["plan", "mine/har2", "--config-dir", "mine"]) == 0
    out = capsys.readouterr().out
    assert "3 of its runs are recorded for sgornn/table2" in out, "two of SGORNN and one of the LSTM"
    assert main(["plan", "sgornn/table2"]) == 0
    assert "are recorded for" not in capsys.readouterr().out


def test_a_table_that_could_not_be_rendered_is_refused_before_anything_is_run(refused: Refused, tmp_path: Path) -> None:
    write(tmp_path, {"mine/experiment/mine/broken.yaml": "track: fair\n"})
    refused(["reproduce", "ncgru/figure8", "--preset", "smoke", "--config-dir", "mine"], "experiment mine/broken: ")
    assert not Path("runs").exists()


def test_compare_of_a_searched_table_has_no_heading_without_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "fair2/cued_copying", RESULTS]) == 0
    out = capsys.readouterr().out.splitlines()
    headings = [i for i, text in enumerate(out) if text.startswith(("  by length", "  effects", "  claims"))]
    assert len(headings) >= 2
    assert all(out[i + 1].split()[0] in ("cell", "claim") for i in headings), "the headers of its columns"
    assert not any("-0.00" in text for text in out)


def test_a_plan_that_is_asked_to_stop_stops(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped(*_: Any) -> None:
        raise Stopped("stopped by SIGTERM")

    monkeypatch.setattr(measuring, "measure", stopped)
    assert main(["plan", "sgornn/table2"]) == Stopped.exit_code
    assert "SIGTERM" in capsys.readouterr().err


def test_m_with_an_experiment_is_reproduce(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(reproduce, "run", lambda *given, catalogue: seen.append((given, catalogue.folders)) or 0)
    words = ["-m", "+experiment=sgornn/table2", "cell=lstm,sgornn", "--config-dir", "mine", "seed=range(1,3)"]
    assert main([*words, "runs_root=there"]) == 0
    (((selection,), folders),) = seen
    assert (selection.names, selection.rows) == (("sgornn/table2",), ("lstm", "sgornn"))
    assert (selection.seeds, selection.extra) == ((1, 2), ("runs_root=there",))
    assert folders == (Path("mine"),)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["plan", "--preset", "smoke", "T=5"], "--preset smoke is of a table"),
        (["plan", "T=1", "T=2"], "= is given twice: give it once."),
        (["eval", "runs/x", "T=60", "T=80"], "= is given twice: give it once."),
        (["plan", "sgornn/table2", "--preset", "smok"], "did you mean 'smoke'"),
        (["plan", "-m", "experiment=sgornn/tabel2"], "did you mean 'sgornn/table2'"),
        (["show", "-m", "seed=1,2"], "`orthobench plan -m`"),
        (["reproduce", "sgornn/table2", "x=[1"], "not an override of the form key=value"),
        (["reproduce", "runs_root=x"], "needs a table"),
        (["cite", "sgornn/tabel2"], "did you mean 'sgornn/table2'"),
        (["bench", "now"], "'now' is not an argument"),
        *(([verb, "sixth"], "sixth is") for verb in ("reproduce", "plan", "compare", "plot", "cite", "tables")),
        *((["best", *words, "--write", "mine.yaml", RESULTS], sentence) for words, sentence in WINNERS),
        (["eval"], "eval needs a run"),
        (["eval", "a", "b"], "a is no run"),
        (["eval", "nowhere"], "nowhere is no run"),
        (["eval", "/nowhere"], "/nowhere is no run: there is no config.yaml in /nowhere; name the folder of a run, or"),
        *(([verb, "nowhere", "--config-dir", "."], "nowhere is no run") for verb in ("eval", "export", "inspect")),
        (["eval", "nowhere", "optimizer.lr=1"], "optimizer.lr=1 does not apply to a run that is finished"),
        *(
            (
                ["eval", "nowhere", f"task.{name}=9", "T=5"],
                f"task.{name}=9 is no setting of a task: use T=400,800 for the lengths",
            )
            for name in ("data_root", "run", "lengths", "content", "T")
        ),
        (["site", "paper=scornn"], "results_root="),
        (["model=gru", "list", "models"], "as a verb it comes first, orthobench list"),
        (["inspect"], "inspect needs one run"),
        (["inspect", "nowhere"], "nowhere is no run"),
        (["inspect", "nowhere", "T=5"], "T=5 does not apply to inspect"),
        (["inspect", "nowhere", "--sequences", "0"], "--sequences 0 is out of range"),
        (["generate"], "generate needs one run"),
        (["generate", "a", "--tokens", "0"], "--tokens 0 is out of range"),
        (["generate", "a", "--temperature", "-1"], "--temperature -1.0 is out of range"),
        (["generate", "a", "--temperature", "nan"], "--temperature nan is out of range"),
        (["generate", "a", "--seed", "-1"], "--seed -1 is out of range"),
        (["generate", "nowhere"], "nowhere is no run"),
        *(
            (["export", *words], "export")
            for words in ([], ["a", "b"], ["a", "optimizer.lr=1"], ["a", "--format", "tflite"])
        ),
    ],
)
def test_wrong_words_after_a_verb(words: list[str], message: str, refused: Refused) -> None:
    refused(words, message)


def test_cite_a_fair_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cite", "fair/copying", "scornn"]) == 0
    out = capsys.readouterr().out
    assert out.count("helfrich2018scornn") == 1
    assert "hochreiter1997lstm" in out
    assert "Mucllari" in out


RACE = """
track: fair
seeds: [1]
margin: {}
score: test/loss
common: [task=copying, params=1000, recipe=none, T=4, task.val_size=5, task.test_size=5, trainer.max_steps=2]
cells:
  lstm: [model=lstm]
tuning: {seeds: [101], lr: [1e-1, 3e-2, 1e-2, 3e-3, 1e-3]}
presets: {}
"""


@pytest.mark.slow
def test_a_table_of_ones_own_is_run_recorded_compared_and_drawn(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    mine = ["--config-dir", str(tmp_path / "conf")]
    write(tmp_path, {"conf/experiment/mine/race.yaml": RACE})
    assert main(["plan", "mine/race", *mine]) == 0
    assert "0 of 6 runs recorded, 5 to do, and then 1 at the rates that these will choose" in capsys.readouterr().out
    assert main(["reproduce", "mine/race", *mine]) == 0
    out = capsys.readouterr().out
    assert "5 of 5 runs recorded" in out, "the tuning"
    assert "1 of 1 runs recorded" in out, "the run that is reported"
    assert main(["reproduce", *mine, "mine"]) == 0
    assert "0 runs to do" in capsys.readouterr().out
    assert main(["compare", "mine/race", *mine]) == 0
    assert "1 of 1" in capsys.readouterr().out
    assert main(["plot", "mine/race", *mine]) == 0
    assert "wrote results/figures/mine-race-" in capsys.readouterr().out
    assert main(["plan", "mine/race", *mine]) == 0
    assert re.search(r"mine/race: (\d+) of \1 runs recorded, 0 to do", capsys.readouterr().out)
    assert main(["reproduce", "mine/race", "--seeds", "2", *mine]) == 2
    assert "mine/race is a fair table: its seeds" in capsys.readouterr().err
    assert main(["reproduce", "experiment=mine/race", "cell=lstn", *mine]) == 2
    assert "cell=lstn is no model of mine/race: did you mean 'lstm'" in capsys.readouterr().err


def test_a_model_is_chosen_in_one_case_of_a_fair_table(tmp_path: Path) -> None:
    found = plan(
        Selection(SHIPPED.select(["fair/adding"]), rows=["gru_T200", "lstm_T50"], extra=(f"results_root={tmp_path}",))
    )
    assert {run.job.row.rsplit("_lr", 1)[0] for run in found.runs} == {"gru_T200", "lstm_T50"}
    with pytest.raises(ConfigError, match="cell=gru_T201 is no model of fair/adding: did you mean 'gru_T200'"):
        plan(Selection(SHIPPED.select(["fair/adding"]), rows=["gru_T201"]))


def test_a_file_with_a_name_of_ours_is_refused(refused: Refused, tmp_path: Path) -> None:
    write(tmp_path, {"conf/model/scornn.yaml": "hidden_size: 3\n"})
    refused(["show", "--config-dir", str(tmp_path / "conf")], "orthobench has a file of this name")


def test_a_file_that_another_folder_has_too_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for folder in ("mine", "yours"):
        write(tmp_path, {f"{folder}/model/big.yaml": "cell: gru\n"})
    given = ["show", "model=big", "task=adding", "--config-dir", "mine"]
    assert main([*given, "--config-dir", "yours"]) == 2
    assert "yours/model/big.yaml would not be read: mine/model/big.yaml has its name" in capsys.readouterr().err
    assert main([*given, "--config-dir", str(tmp_path / "mine")]) == 0, "one folder, named twice"


def test_the_version_may_stand_anywhere(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["T=5", "--version"]) == 0
    assert capsys.readouterr().out == f"orthobench {orthobench.__version__}\n"


def test_completion_is_hydras(cli: Any) -> None:
    assert "hydra_bash_completion" in cli("--shell-completion", "install=bash").stdout


def test_help_and_cfg_of_a_sweep_start_nothing(cli: Any, tmp_path: Path) -> None:
    shown = cli("-m", "T=5", "--cfg", "job")
    assert shown.returncode == 0
    assert "T: 5" in shown.stdout
    assert not (tmp_path / "runs").exists()
