"""DistributedDataParallel, in one process and in two, against plain training; and threads that share a layer."""

import copy
import sys
import tempfile
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import torch
from torch import Tensor

from orthobench.layers import Layer
from tests.layers.uses.common import KINDS, I, Net, draw, make, net, same, train


def _worker(rank: int, size: int, folder: str, out: str) -> None:
    """Train every layer in a group of processes, and save what their weights are after that, or what was raised."""
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=size)
    found: dict[str, Any] = {}
    for kind in KINDS:
        model = DistributedDataParallel(started(kind))
        optimizer = torch.optim.SGD(model.parameters(), 0.05)
        for step in range(3):
            optimizer.zero_grad()
            model(draw(seed=3 + step).chunk(size)[rank]).square().mean().backward()
            optimizer.step()
        found[kind] = model.module.state_dict()
    if rank == 0:
        torch.save(found, out)
    dist.barrier()
    dist.destroy_process_group()


@cache
def _trained_by(size: int) -> dict[str, Any]:
    import torch.multiprocessing as mp

    with tempfile.TemporaryDirectory() as folder:
        out = f"{folder}/out.pt"
        if size == 1:
            _worker(0, 1, folder, out)
        else:
            mp.start_processes(_worker, (size, folder, out), nprocs=size, start_method="spawn")
        return torch.load(out)


def started(kind: str) -> Net:
    """A model whose reflectors have unit length, as those of loaded or broadcast weights get it."""
    model = net(kind)
    model.layer.after_step()
    return model


def _data_parallel(kind: str, size: int) -> None:
    model = started(kind)
    train(model)
    for name, value in model.state_dict().items():
        same(_trained_by(size)[kind][name], value, atol=1e-5, rtol=1e-4)


def data_parallel(kind: str) -> None:
    _data_parallel(kind, 1)


def data_parallel_two(kind: str) -> None:
    _data_parallel(kind, 2)


def threads(kind: str) -> None:
    """Four threads call a layer at once after an optimizer's step, as a server does whose weights are renewed."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for seed in range(4):
            _call_in_threads(make(kind, I, 24), draw(seed=seed))
    finally:
        sys.setswitchinterval(interval)


def _call_in_threads(layer: Layer, x: Tensor, count: int = 4) -> None:
    train(layer, 1)
    alone, barrier = copy.deepcopy(layer), threading.Barrier(count)

    def call(_: int) -> Tensor:
        barrier.wait()
        return layer(x)[0].detach()

    with ThreadPoolExecutor(count) as pool:
        found = list(pool.map(call, range(count)))
    for y in found:
        same(y, alone(x)[0].detach(), atol=0, rtol=0)
    same(layer.state_dict(), alone.state_dict(), atol=0, rtol=0)
