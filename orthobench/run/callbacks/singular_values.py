"""Distance of the recurrent matrices from isometries: max |sigma_i - 1| (Spectral-RNN, figure 4).

The largest over layers and gates. For a matrix in a band this is the margin in use, at most r.
"""

import torch

from orthobench.run.callbacks.log import LogAtSteps


class SingularValues(LogAtSteps):
    """Args: `subject`, the parametrizations that are looked at; see `Log` for the others."""

    @torch.no_grad()
    def measure(self) -> dict[str, float]:
        """The margin in use."""
        return {"singular_value_margin": max(margin(p()) for p in self.subject)}


def margin(W: torch.Tensor) -> float:
    """The largest |sigma_i - 1| of a matrix, in float64."""
    return float((torch.linalg.svdvals(W.detach().to(torch.promote_types(W.dtype, torch.float64))) - 1).abs().max())
