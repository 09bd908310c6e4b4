"""The pages of a site: which there are, and what each shows; everything is read from what results.json holds."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from orthobench.report.fair import CLAIMS
from orthobench.report.site import fair_views, front, other_views
from orthobench.report.site.catalogue import FAMILIES
from orthobench.report.site.places import CELLS, INDEX, LENGTHS, OUTSIDE, PAPERS, RUNS, TASKS, Places
from orthobench.report.site.plots import Plot
from orthobench.study.tables.table import FULL

Page = tuple[str, str, dict[str, Any]]  # its path, its template, what the template shows
MENU = (
    (INDEX, "Which cell?"),
    (LENGTHS, "Length curves"),
    (TASKS, "Tasks"),
    (CELLS, "Cells"),
    (PAPERS, "Papers"),
    (RUNS, "Runs"),
)
DOCS = "docs/index.html"
FROM_OTHERS = "From others"


def pages(data: dict[str, Any]) -> Iterator[Page]:
    """Every page."""
    places = Places(data)
    kinds: tuple[Callable[[Places], Iterator[Page]], ...] = (_front, _lists, _cells, _tasks, _papers, _runs, _outside)
    for kind in kinds:
        yield from kind(places)


def _front(places: Places) -> Iterator[Page]:
    data = places.data
    best, curves = fair_views.cost(places), fair_views.lengths(places)
    doors = [
        {"name": "Length curves", "href": LENGTHS, "text": "Who generalises beyond the lengths of training."},
        {
            "name": "Tasks",
            "href": TASKS,
            "text": "Each task with every cell and every seed, beside the trivial predictor.",
        },
        {"name": "Cells", "href": CELLS, "text": "Equations, settings, citation and records of every model."},
        {"name": "Papers", "href": PAPERS, "text": "Published numbers beside ours, with a status and every deviation."},
        {"name": "Runs", "href": RUNS, "text": "Every run: its curve, numbers, settings and command."},
    ]
    yield (
        INDEX,
        "index.html",
        {
            "title": "Which cell?",
            "told": front.told(data),
            "answer": other_views.answer(places),
            "plots": _some(best),
            "statuses": other_views.statuses(places),
            "doors": doors,
        },
    )
    told = (
        "Each cell was trained at short lengths and tested at longer ones. A cell that has learnt the rule keeps its "
        "score; one that has learnt the length does not."
    )
    yield LENGTHS, "figure.html", {"title": "Length curves", "told": told, "plots": _some(curves)}


def _lists(places: Places) -> Iterator[Page]:
    data = places.data
    runs, fair = Counter(run["model"] for run in data["runs"].values()), {x["task"] for x in data["fair"]}
    cells = [
        {
            "name": name,
            "href": places.cell(name),
            "mark": one["family"],
            "text": _counted(one["description"], runs[name]),
        }
        for name, one in sorted(data["models"].items(), key=lambda pair: (FAMILIES.index(pair[1]["family"]), pair[0]))
    ]
    told = "A model is a recurrent cell with a parametrization of its recurrent matrix; its kind says what that one is."
    yield CELLS, "list.html", {"title": "Cells", "told": told, "cards_of": cells, "table": None, "hint": "orthogonal"}
    by_task = Counter(run["task"] for run in data["runs"].values())
    tasks = [
        {
            "name": name,
            "href": places.task(name),
            "mark": "fair track" if name in fair else "",
            "text": _counted(one["description"], by_task[name]),
        }
        for name, one in sorted(data["tasks"].items(), key=lambda pair: (pair[0] not in fair, pair[0]))
    ]
    yield (
        TASKS,
        "list.html",
        {
            "title": "Tasks",
            "told": "Those with results of the fair track come first.",
            "cards_of": tasks,
            "table": other_views.together(places),
            "hint": "copying",
        },
    )
    papers = [
        {"name": name, "href": places.paper(name), "text": f"{paper['title']}: {_statuses(places, name)}"}
        for name, paper in data["papers"].items()
    ]
    yield (
        PAPERS,
        "list.html",
        {
            "title": "Papers",
            "told": "Published numbers and claims, run again.",
            "cards_of": papers,
            "table": None,
            "hint": "reproduced",
        },
    )
    chosen = sorted(
        data["runs"].values(), key=lambda run: (run["places"][0]["table"], run["places"][0]["row"], run["seed"])
    )
    table = other_views.runs(places, chosen, "Every recorded run")
    told = "All these pages are computed from these runs. The numbers are of the weights with the best validation."
    yield RUNS, "list.html", {"title": "Runs", "told": told, "cards_of": [], "table": table, "hint": "lstm parity"}


def _cells(places: Places) -> Iterator[Page]:
    data = places.data
    for name, cell in data["models"].items():
        runs = sorted(
            (run for run in data["runs"].values() if run["model"] == name),
            key=lambda run: (run["task"], run["places"][0]["row"], run["seed"]),
        )
        table = other_views.runs(places, runs, f"{len(runs)} recorded runs") if runs else None
        plots = _some(fair_views.standing(places, name), other_views.phases(places, name))
        published = _published(places, lambda table, name=name: name in table["models"])
        yield (
            places.cell(name),
            "cell.html",
            {"title": name, "name": name, "cell": cell, "plots": plots, "table": table, "published": published},
        )


def _tasks(places: Places) -> Iterator[Page]:
    data = places.data
    for name, task in data["tasks"].items():
        tables = []
        for table in (one for one in data["tables"] if not one["published"] and one["tasks"][0] == name):
            cases = dict.fromkeys(
                x["case"] for x in data["fair"] if (x["table"], x["preset"]) == (table["name"], table["preset"])
            )
            found = [(fair_views.seeds(places, table, case), fair_views.tuning(places, table, case)) for case in cases]
            told = [
                grid for grid in table["grids"] if not cases or grid["subject"] == CLAIMS
            ]  # the plots show the rest
            tables.append((table | {"grids": told}, [(plot, tuned) for plot, tuned in found if plot]))
        plots = [plot for _, cases in tables for plot, _ in cases]
        published = _published(places, lambda table, name=name: name in table["tasks"])
        sent = [run for run in data["outside"] if run["task"] == name]
        shown = {"task": task, "tables": tables, "plots": plots, "published": published}
        shown |= {"outside": other_views.outside(places, sent) if sent else None}
        yield places.task(name), "task.html", {"title": name, "name": name, **shown}


def _papers(places: Places) -> Iterator[Page]:
    data = places.data
    for name, paper in data["papers"].items():
        found = [table for table in data["tables"] if table["published"] and table["name"].split("/")[0] == name]
        tables = [(table, other_views.pairs(places, table)) for table in found]
        plots = [plot for _, plot in tables if plot]
        yield (
            places.paper(name),
            "paper.html",
            {
                "title": name,
                "name": name,
                "paper": paper,
                "tables": tables,
                "plots": plots,
                "told": _statuses(places, name),
            },
        )


def _runs(places: Places) -> Iterator[Page]:
    for run in places.data["runs"].values():
        shown = {
            "facts": other_views.facts(run),
            "numbers": other_views.numbers(run),
            "plots": _some(other_views.curve(run)),
        }
        yield places.run(run["run_id"]), "run.html", {"title": run["run_id"], "run": run, **shown}


def _outside(places: Places) -> Iterator[Page]:
    """The runs of others, on pages of their own."""
    found = places.data["outside"]
    if not found:
        return
    told = (
        "Runs that others have sent. Their form, digests and settings were checked; nobody here has made them again. "
        "They fill no table, and count in no mean, rank or claim."
    )
    table = other_views.outside(places, found)
    shown = {"title": FROM_OTHERS, "told": told, "cards_of": [], "table": table, "hint": "lstm parity"}
    yield OUTSIDE, "list.html", shown
    for run in found:
        shown = {"facts": other_views.facts(run), "numbers": other_views.numbers(run)}
        plots = _some(other_views.curve(run))
        yield places.outside(run), "run.html", {"title": run["run_id"], "run": run, "plots": plots, **shown}


def _published(places: Places, is_of: Callable[[dict[str, Any]], bool]) -> list[tuple[str, str]]:
    """The tables of papers that are of something, with where they stand."""
    found = [
        table for table in places.data["tables"] if table["published"] and table["preset"] == FULL and is_of(table)
    ]
    return [(places.table(table["name"], FULL), f"{table['name'].split('/')[0]}: {table['title']}") for table in found]


def _statuses(places: Places, paper: str) -> str:
    lines = [x for x in places.data["published"] if x["preset"] == FULL and x["table"].split("/")[0] == paper]
    found = Counter(x["status"] for x in lines if not x["lost"])
    return "; ".join(f"{count} {status}" for status, count in found.most_common()) + "."


def _counted(text: str, runs: int) -> str:
    return f"{text}. {runs:,} recorded run{'s' * (runs != 1)}." if runs else f"{text}."


def _some(*plots: Plot | None) -> list[Plot]:
    return [plot for plot in plots if plot is not None]
