"""Following an optimizer's steps: what parametrizations do after a step is done by the next forward pass of a layer."""

from threading import RLock
from typing import Any

import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_post_hook

from orthobench.parametrizations.base import Parametrized
from orthobench.parametrizations.moving_base import Settling
from orthobench.parametrizations.traced import traced
from orthobench.scan.uncompiled import uncompiled


class _Fused:
    """Number of steps that optimizers with `fused=True` have made in this process; torch does not count what they
    change.
    """

    steps = 0

    @classmethod
    def count(cls, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        cls.steps += any(group.get("fused") for group in optimizer.param_groups)


register_optimizer_step_post_hook(_Fused.count)

Versions = tuple[tuple[int, int], ...]
_one_at_a_time = RLock()  # of threads that call a layer after a step, one does what is due, and the others wait for it


class Follower(Parametrized):
    """A module that sees by torch's count of in-place changes that its parameters have moved."""

    _followed: Versions | None

    def after_step(self) -> None:
        """Do what follows an optimizer's step, if it is due; a forward pass calls it.

        A call looks at the parameters' values, as a forward pass does not on a GPU.
        """
        with _one_at_a_time:
            for parametrization in self._settling():
                parametrization.look_again()
            self._settle()

    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """See `nn.Module.state_dict`; what is due after an optimizer's step is done before."""
        self._follow()
        return super().state_dict(*args, **kwargs)

    def recurrent_weights(self) -> list[torch.Tensor]:
        """The constrained matrices (N, N), one per layer and gate; empty when there is none."""
        self._follow()
        return super().recurrent_weights()

    def _start_following(self) -> None:
        for parametrization in self._settling():
            parametrization.careful = True
        self._followed = self._versions()
        self.register_load_state_dict_post_hook(_loaded)  # what was saved has been settled

    def _settling(self) -> list[Settling]:
        return [p for p in self.parametrizations() if isinstance(p, Settling)]

    def _versions(self) -> Versions | None:
        """Marks that tell if parameters have moved, without a look at values; None if they are not the layer's own."""
        own = [q for p in self.parametrizations() for q in p.parameters()]
        if any(not isinstance(q, nn.Parameter) or q.is_inference() for q in own):
            return None
        return *((id(q), q._version) for q in own), (0, _Fused.steps)

    @uncompiled  # it reads counts that a graph does not have
    def _follow(self) -> None:
        if getattr(self, "_is_replica", False) or traced(*self.parameters()):
            return
        with _one_at_a_time:
            for parametrization in self._settling():
                if parametrization.beside:
                    parametrization.check()
            now, before = self._versions(), self._followed
            if now is None or now == before:
                return
            uncounted = before is None or now[-1] != before[-1]
            self.after_step() if uncounted else self._settle()

    def _settle(self) -> None:
        for parametrization in self.parametrizations():
            parametrization.after_step()
        self._followed = self._versions()

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        followed = self._followed == self._versions() if hasattr(self, "_followed") else False
        super()._apply(fn, recurse)
        if followed:
            self._followed = self._versions()
        return self

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_followed": self._followed == self._versions()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._followed = self._versions() if state["_followed"] else None

    def _replicate_for_data_parallel(self) -> Any:
        if not all(p.is_settled() for p in self._settling()):
            use = "call layer.after_step() after every optimizer.step(), or use DistributedDataParallel"
            raise RuntimeError(f"{type(self).__name__} cannot follow the optimizer's step in copies of itself: {use}.")
        return super()._replicate_for_data_parallel()


def _loaded(layer: Any, keys: Any) -> None:
    layer._fill_constants()
    layer._followed = layer._versions()
