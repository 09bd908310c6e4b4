"""`orthobench cite MODEL`: the BibTeX entry of its paper."""

from orthobench.errors import ConfigError
from orthobench.report.citations import MODELS, PAPERS
from orthobench.schema import did_you_mean
from orthobench.terminal import say


def main(arguments: list[str]) -> int:
    """Print the entries of the named models, papers or tables (`scornn`, `sgornn/table1`).

    Raises:
        ConfigError: a name that is not known.
    """
    if not arguments:
        raise ConfigError("cite needs a model, a paper or a table, for example `orthobench cite scornn`.")
    for word in arguments:
        paper = MODELS.get(word, word.split("/")[0])
        if paper not in PAPERS:
            raise ConfigError(f"cite {word} is not known: {did_you_mean(word, [*MODELS, *PAPERS])}")
        say(PAPERS[paper])
    return 0
