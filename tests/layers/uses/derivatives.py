"""torch.func, second derivatives and checkpointing."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from tests.layers.uses.common import EXACT, B, Surrogate, draw, gradients, make, net, same, train


def functional_call(kind: str) -> None:
    model, other = make(kind), make(kind)
    train(other)
    given = {k: v.detach().clone() for k, v in [*other.named_parameters(), *other.named_buffers()]}
    y = model(draw())[0].detach()
    same(torch.func.functional_call(model, given, (draw(),))[0], other(draw())[0], atol=1e-3, rtol=1e-3)
    same(model(draw())[0], y, atol=0, rtol=0)


def _loss(model: nn.Module) -> Callable[[dict[str, Tensor], Tensor], Tensor]:
    return lambda given, x: torch.func.functional_call(model, given, (x,)).square().sum()


def func_grad(kind: str) -> None:
    model, x = net(kind), draw()
    found = torch.func.grad(_loss(model))({k: p.detach() for k, p in model.named_parameters()}, x)
    for name, wanted in gradients(model, x).items():
        same(found[name], wanted)


def func_per_sample(kind: str) -> None:
    model, x = net(kind), draw()
    given = {k: p.detach() for k, p in model.named_parameters()}
    found = torch.func.vmap(torch.func.grad(_loss(model)), (None, 0))(given, x.unsqueeze(1))
    for i in range(B):
        for name, wanted in gradients(model, x[i : i + 1]).items():
            same(found[name][i], wanted)


def func_stacked(kind: str) -> None:
    models, x = [net(kind), net(kind)], draw()
    train(models[1])
    for model in models:
        model(x)
    parameters, buffers = torch.func.stack_module_state(models)
    base = models[0]

    def call(p: dict[str, Tensor], b: dict[str, Tensor]) -> Tensor:
        return torch.func.functional_call(base, (p, b), (x,))

    found = torch.func.vmap(call)(parameters, buffers)
    for i, model in enumerate(models):
        same(found[i], model(x), atol=1e-3, rtol=1e-3)


def func_stacked_grad(kind: str) -> None:
    models, x = [net(kind), net(kind)], draw()
    train(models[1])
    for model in models:
        model(x)
    parameters, buffers = torch.func.stack_module_state(models)
    base = models[0]

    def loss(p: dict[str, Tensor], b: dict[str, Tensor]) -> Tensor:
        return torch.func.functional_call(base, (p, b), (x,)).square().sum()

    found = torch.func.vmap(torch.func.grad(loss))(parameters, buffers)
    for i, model in enumerate(models):
        for name, wanted in gradients(model, x).items():
            same(found[name][i], wanted, atol=1e-2, rtol=1e-2)


def func_jvp(kind: str) -> None:
    model, x, v = make(kind).double(), draw(dtype=torch.float64), draw(seed=5, dtype=torch.float64)
    y, tangent = torch.func.jvp(lambda x: model(x)[0], (x,), (v,))
    jacobian = torch.autograd.functional.jacobian(lambda x: model(x)[0], x)
    same(y, model(x)[0], **EXACT)
    same(tangent, torch.einsum("btfcsi,csi->btf", jacobian, v), **EXACT)


def second_derivative(kind: str) -> None:
    x = draw(dtype=torch.float64).requires_grad_()
    model = make(kind).double()
    (first,) = torch.autograd.grad(model(x)[0].square().sum(), x, create_graph=True)
    (found,) = torch.autograd.grad(first.square().sum(), x)
    step, v = 1e-5, draw(seed=5, dtype=torch.float64)

    def penalty(x: Tensor) -> Tensor:
        x = x.detach().requires_grad_()
        return torch.autograd.grad(model(x)[0].square().sum(), x)[0].square().sum()

    wanted = (penalty(x + step * v) - penalty(x - step * v)) / (2 * step)
    same((found * v).sum(), wanted, atol=1e-4, rtol=1e-4)


def second_derivative_reference(kind: str) -> None:
    if kind == "PDSSM":
        raise Surrogate
    x = draw(dtype=torch.float64)
    model = make(kind, engine="reference").double()
    assert torch.autograd.gradgradcheck(lambda x: model(x)[0].sum(), (x[:1, :3].requires_grad_(),), atol=1e-4)


def checkpointed(kind: str) -> None:
    from torch.utils.checkpoint import checkpoint

    model, x = net(kind), draw()
    wanted = gradients(model, x)
    model.zero_grad()
    checkpoint(model, x, use_reentrant=False).square().sum().backward()
    for name, p in model.named_parameters():
        if name in wanted:
            same(p.grad, wanted[name])
