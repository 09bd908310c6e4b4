"""Slips of the pen on the command line: each gets the sentence that says what to write."""

import pytest

from orthobench.__main__ import main


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--T", "200"], "--T is no option: settings have no dashes, write T=VALUE."),
        (["--T=200"], "settings have no dashes, write T=200."),
        (["--model.rho=3"], "write model.rho=3."),
        (["T =200"], "'T =200' has a blank before =: write T=200."),
        (["T", "=200"], "'T' is followed by a blank: write T=200."),
        (["T", "=", "200"], "'T' is followed by a blank: write T=VALUE."),
        (["model=", "scornn"], "'model=' is followed by a blank: write model=scornn."),
        (["T=200,"], "'T=200,' ends with a comma: write T=200, or several values with -m."),
        (["t=200"], "t= is not a setting: did you mean T=?"),
        (["steps=10"], "did you mean trainer.max_steps=?"),
        (["device=cpu"], "did you mean trainer.accelerator=cpu or gpu?"),
        (["model=SCORNN"], "did you mean 'scornn'?"),
        (["run", "model=scornn"], "'run' is no verb: a run has no verb"),
        (["resume", "runs/x"], "'resume' is no verb: the command that started a run goes on with it"),
        (["model=glob(*rnn)"], "model=glob(*rnn) is not supported: name every model"),
        (["-m", "model=glob(*rnn)"], "model=glob(*rnn) is not supported: name every model"),
        (["-m", "seed=glob(*)"], "cannot be expanded"),
    ],
)
def test_what_to_write_instead(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.splitlines()) == 1
