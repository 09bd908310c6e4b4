"""The picture of a tuning."""

from orthobench.report.importance import picture


def test_importances_and_scores_are_drawn() -> None:
    shares, scores = {"optimizer.lr": 0.75, "model.rho": 0.25}, [(1, 0.5), (2, 0.001), (4, 0.3)]
    text = picture(shares, scores, "val/loss", higher=False)
    assert text.startswith("<svg")
    assert text == picture(shares, scores, "val/loss", higher=False)
    assert text != picture(shares, scores, "val/loss", higher=True), "the best so far is another"


def test_too_few_trials_are_no_picture_of_importance() -> None:
    assert picture({}, [(1, 0.5)], "val/accuracy", higher=True).startswith("<svg")
