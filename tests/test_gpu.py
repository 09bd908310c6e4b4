"""The same job on a GPU."""

import pytest
import torch

import orthobench

pytestmark = pytest.mark.gpu
TINY = (
    "T=20",
    "model.hidden_size=32",
    "trainer.max_steps=30",
    "trainer.val_check_interval=30",
    "task.val_size=40",
    "task.test_size=40",
)


@pytest.mark.parametrize("model", ["scornn", "lstm", "gru", "irnn"])
def test_it_trains_on_the_gpu_as_on_the_cpu(model: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    records = {}
    for accelerator in ("gpu", "cpu"):
        root = tmp_path_factory.mktemp(accelerator)
        words = (f"model={model}", "task=adding", *TINY, f"trainer.accelerator={accelerator}", f"runs_root={root}")
        records[accelerator] = orthobench.build(*words).run()
    assert records["gpu"]["hardware"]["device"] == "cuda"
    assert records["gpu"]["run_id"] == records["cpu"]["run_id"]
    losses = [records[name]["metrics"]["last"]["test/loss"] for name in ("gpu", "cpu")]
    assert losses[0] == pytest.approx(losses[1], rel=0.02)  # float32 on both, summed in another order


def test_a_matrix_is_orthogonal_on_the_gpu() -> None:
    W = orthobench.build("T=5").model.to("cuda").recurrent_weights()[0]
    deviation = torch.linalg.matrix_norm(W.T @ W - torch.eye(190, device="cuda"))
    assert deviation < 1e-4
