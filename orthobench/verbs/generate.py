"""`orthobench generate RUN [--prompt TEXT] [--tokens N] [--temperature X] [--seed N] [--last]`: write text."""

import math

from orthobench.common.terminal import say
from orthobench.errors import ConfigError
from orthobench.verbs.arguments import RunParser, load_run


def main(arguments: list[str]) -> int:
    """Print the prompt and what the model makes of it.

    Raises:
        ConfigError: no run of that name, one that is not done or not of a text, or a value out of range.
    """
    parser = RunParser(__doc__, 'orthobench generate runs/NAME --prompt "the" --tokens 200')
    parser.add_argument("--prompt", default="", help="what the model reads first")
    parser.add_argument("--tokens", type=int, default=200, help="characters or words to draw (200)")
    parser.add_argument("--temperature", type=float, default=1.0, help="below 1: likelier tokens more often; 0: always")
    parser.add_argument("--seed", type=int, default=1, help="of the draws (1)")
    given = parser.read(arguments)
    if given.tokens < 1:
        raise ConfigError(f"--tokens {given.tokens} is out of range: it must be >= 1.")
    if not (math.isfinite(given.temperature) and given.temperature >= 0):
        raise ConfigError(f"--temperature {given.temperature} is out of range: it must be a number >= 0.")
    if not 0 <= given.seed < 2**63:
        raise ConfigError(f"--seed {given.seed} is out of range: it must be >= 0 and below 2^63.")
    run = load_run(given)
    from orthobench.run.generate import generate

    drawn = generate(run, given.prompt, given.tokens, given.temperature, given.seed)
    first = next(drawn)  # whatever is wrong is told before the prompt is printed
    say(given.prompt + first, end="")
    for piece in drawn:
        say(piece, end="")
    say("")
    return 0
