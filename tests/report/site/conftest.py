"""A site of made-up records; its figures are drawn by Altair where that is installed, and empty elsewhere."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from orthobench.report import paper
from orthobench.report.site import charts
from orthobench.report.site import collected as site_data
from orthobench.report.site.write import rendered
from orthobench.study.catalogue import SHIPPED
from orthobench.study.records import curves
from orthobench.study.records.curves import CurvePoint
from orthobench.study.verdicts.comparison import compare
from orthobench.study.verdicts.fair import fair_table
from tests.report.made_up import made_up, record

HOSTILE = "<img src=x onerror=alert(1)></script>'\"&"
KINDS = ("cost", "lengths", "seeds", "pairs", "curve", "standing", "phases")
LENGTHS = (10, 20, 40, 80, 160)
MODELS = {"gru": 0.97, "scornn": 0.9, "lstm": 0.5}  # with digits=1; a control with digits=3 beside them


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("results")
    seeds = range(1, 11)
    lines = [made_up("sgornn", s, best_val___test__accuracy=0.94, last___test__accuracy=0.94 + s / 5000) for s in seeds]
    lines += [made_up("lstm", s, last___test__accuracy=0.9 + s / 500, gpu=HOSTILE, reason=HOSTILE) for s in seeds]
    record(root, "sgornn/table2", lines)
    made = [made_up("vprnn_0.01", s, last___val__loss=0.01, baseline__loss=1 / 6) for s in (1, 2)]
    record(root, "sgornn/figure1", made)
    fair = [
        made_up(f"{model}_digits1_lr{rate}", s, T=100, **_scores(score * (1 if rate == "3e-3" else 0.9), s))
        for model, score in MODELS.items()
        for rate in ("3e-2", "1e-2", "3e-3", "1e-3", "3e-4")
        for s in ((101, 102, 1, 2, 3, 4, 5) if rate == "3e-3" else (101, 102))
    ]
    fair.append(made_up("mlstm_unconvolved_digits3_lr3e-3", 101, T=100, **_scores(0.5, 101)))
    record(root, "fair/cued_copying", fair)
    (root / "runs").mkdir()
    points = [
        CurvePoint(line["run_id"], "full", "vprnn_0.01", int(line["seed"]), name, t, 0.2 / (1 + t))
        for line in collected_lines(root)
        for name in ("val/loss", "train/loss")
        for t in (0, 100, 200)
    ]
    curves.add(root, "sgornn/figure1", points)
    return root


def collected_lines(root: Path) -> list[dict[str, Any]]:
    from orthobench.study.records import records

    return [line.values for line in records.read(root, "sgornn/figure1")]


def _scores(score: float, seed: int) -> dict[str, float]:
    value = score - seed % 10 / 1000
    at = {f"length__{n}___test__score": value * min(1.0, 40 / n) for n in LENGTHS}
    at |= {f"length__{n}___baseline__score": 0.0 for n in LENGTHS}
    return {"best_val___val__score": value, "best_val___test__score": value, "baseline__score": 0.0, **at}


@pytest.fixture(scope="session")
def data(results: Path) -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as patch:
        few(patch)
        return site_data.collected(results)


@pytest.fixture(scope="session")
def site(data: dict[str, Any]) -> dict[str, str]:
    """Every page and every plot's data, by path."""
    with pytest.MonkeyPatch.context() as patch:
        undrawn(patch)
        return rendered(data, "Written by a test.")


def few(patch: pytest.MonkeyPatch) -> None:
    """Compare two tables of one paper and one fair table, since all of them take a minute."""
    fair, others = SHIPPED.table("fair/cued_copying"), [SHIPPED.table("sgornn/table2"), SHIPPED.table("sgornn/figure1")]
    patch.setattr(
        paper,
        "comparisons",
        lambda name, results, catalogue: [compare(one, results) for one in others if one.paper == name],
    )
    patch.setattr(site_data, "fair_tables", lambda tables, results: [fair_table(fair, results)])


def undrawn(patch: pytest.MonkeyPatch) -> None:
    """Take empty figures where Altair is not installed."""
    if find_spec("altair") is not None and find_spec("vl_convert") is not None:
        return
    for kind in KINDS:
        patch.setattr(charts, kind, lambda *_: {"mark": "point"})
    patch.setattr(charts, "altair", lambda: None)
    patch.setattr(charts, "javascript", lambda: "")
