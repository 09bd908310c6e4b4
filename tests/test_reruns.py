"""The paragraph of the docs about recorded runs that were made again."""

from scripts import reruns


def test_the_paragraph_is_what_the_reruns_gave() -> None:
    assert reruns.PAGE.read_text(encoding="utf-8") == reruns.page(), "run: python scripts/reruns.py"
    assert len({(row["table"], row["row"]) for row in reruns.made()}) == reruns.ROWS


def test_a_paragraph_counts_verdicts_and_what_left_the_range_of_the_seeds() -> None:
    kept = {"cpu": "A", "rerun_cpu": "B", "least": "0.2", "greatest": "0.4", "recorded": "0.3"}
    rows = [
        kept | {"verdict": "bitwise the same", "rerun": "0.3"},
        kept | {"verdict": "the same to rounding", "rerun": "0.300001"},
        kept | {"verdict": "different", "rerun": "0.5"},
        kept | {"verdict": "different", "rerun": "0.31", "least": "", "greatest": ""},
    ]
    text = reruns.paragraph(rows).replace("\n", " ")
    assert "Of 4 runs of the fair tables, made on A and made again on B, 1 are bitwise the same, 1 the same" in text
    assert "and 2 differ." in text
    assert (
        "moved by 0.005 in the median, and by 0.2 at most. It left the range of the recorded seeds in 1 of the 3"
        in text
    )
