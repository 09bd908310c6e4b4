"""What the verbs of a finished run say of words that are wrong."""

import pytest

from orthobench.__main__ import main


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["eval"], "eval needs a run"),
        (["eval", "a", "b"], "a is no run"),
        (["eval", "nowhere"], "nowhere is no run"),
        (["eval", "/nowhere"], "/nowhere is no run: there is no config.yaml in /nowhere; runs_root="),
        (
            ["eval", "nowhere", "--config-dir", "x"],
            "--config-dir is not needed, for the settings of a finished run hold all",
        ),
        (["eval", "nowhere", "optimizer.lr=1"], "optimizer.lr=1 does not apply to a run that is finished"),
        *(
            (
                ["eval", "nowhere", f"task.{name}=9", "T=5"],
                f"task.{name}=9 is no setting of a task: T=400,800 sets the lengths",
            )
            for name in ("data_root", "run", "lengths", "content", "T")
        ),
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
def test_wrong_words(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    assert message in capsys.readouterr().err
