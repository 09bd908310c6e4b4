"""Text from a trained language model, token by token."""

from collections.abc import Iterator
from contextlib import suppress

import torch
from torch import Tensor

from orthobench.cells.base import State
from orthobench.errors import ConfigError
from orthobench.models.base import Network
from orthobench.models.frozen import frozen
from orthobench.run.load import Finished
from orthobench.tasks.real.language import Language


def generate(run: Finished, prompt: str, tokens: int, temperature: float, seed: int) -> Iterator[str]:
    """The text that follows a prompt, in pieces as they are drawn.

    Args:
        run: a run of a language model's task.
        prompt: what the model reads first, after the end of a line or sentence.
        tokens: how many tokens are drawn, characters or words.
        temperature: the logits are divided by it; zero takes the likeliest token.
        seed: of the draws.

    Raises:
        ConfigError: the task is no language model's, its text has changed, or the prompt has a token that the model
            does not know.
        DataError: the data, whose training text decides the vocabulary, are missing or damaged.
    """
    task = run.task
    if not isinstance(task, Language):
        raise ConfigError(
            f"{run.run_id} is a run of {run.settings.task['name']}, which has no text to generate"
            ": name a run of a language model."
        )
    run.refuse_changed_data()
    ids, names = task.ids(prompt), task.vocabulary()
    generator = torch.Generator().manual_seed(seed)
    for token in draw(run.model, ids, tokens, temperature, generator):
        yield task.piece(names[token])


@torch.no_grad()
def draw(model: Network, ids: list[int], tokens: int, temperature: float, generator: torch.Generator) -> Iterator[int]:
    """Tokens drawn one after the other from the model's distribution, after it has read `ids`."""
    with suppress(ConfigError):  # a complex cell of one's own, whose matrices are made anew for every token
        model = frozen(model)
    x, state = torch.tensor([ids]), None
    for _ in range(tokens):
        y, state = _step(model, x, state)
        chosen = int(y.argmax() if temperature == 0 else _sampled(y / temperature, generator))
        yield chosen
        x = torch.tensor([[chosen]])


def _step(model: Network, x: Tensor, state: list[State] | None) -> tuple[Tensor, list[State]]:
    """The logits (O,) after the last token of x (1, T), and the state."""
    y, end = model(x, state)
    return y[0, -1].double(), end


def _sampled(logits: Tensor, generator: torch.Generator) -> Tensor:
    return torch.multinomial(logits.softmax(-1), 1, generator=generator)
