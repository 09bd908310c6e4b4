"""Torch's modes inside a run, whatever the program around it has set."""

import pytest
import torch

from orthobench.models.surroundings import torch_as_new


@pytest.mark.parametrize("before", ["default", "magma"])
def test_solvers_of_a_run_on_a_gpu_are_cusolvers_and_put_back(before: str, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = [before]

    def library(name: str | None = None) -> object:
        if name is not None:
            chosen.append(name)
        return f"_LinalgBackend.{chosen[-1].capitalize()}"

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.backends.cuda, "preferred_linalg_library", library)
    with torch_as_new():
        assert chosen[-1] == "cusolver"
        with torch_as_new():
            assert chosen[-1] == "cusolver"
        assert chosen[-1] == "cusolver", "the run around it goes on"
    assert chosen[-1] == before


def test_without_a_gpu_the_choice_of_solvers_is_left_alone() -> None:
    before = torch.backends.cuda.preferred_linalg_library()
    with torch_as_new():
        assert torch.backends.cuda.preferred_linalg_library() == before
