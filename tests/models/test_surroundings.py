"""Torch's modes inside a run, whatever the program around it has set."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from orthobench.models.surroundings import denormals_are_zero, denormals_as_zero, torch_as_new


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


@pytest.mark.skipif(not torch.set_flush_denormal(False), reason="this processor has no such mode")
@pytest.mark.parametrize("before", [False, True])
def test_denormal_numbers_are_zero_in_a_run_and_as_they_were_after_it(before: bool) -> None:
    torch.set_flush_denormal(before)
    try:
        with denormals_as_zero():
            with denormals_as_zero():
                assert denormals_are_zero()
            assert denormals_are_zero(), "the run around it goes on"
            with ThreadPoolExecutor(1) as pool:  # as members of an ensemble
                assert pool.submit(denormals_are_zero).result()
        assert denormals_are_zero() is before
    finally:
        torch.set_flush_denormal(False)


@pytest.mark.skipif(not torch.set_flush_denormal(False), reason="this processor has no such mode")
def test_a_run_ends_its_mode_when_it_fails() -> None:
    with pytest.raises(KeyError), denormals_as_zero():
        raise KeyError
    assert not denormals_are_zero()
