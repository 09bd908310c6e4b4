"""`orthobench cite MODEL|PAPER|TABLE...`: the BibTeX entries of their papers."""

from orthobench.config import table as experiment
from orthobench.errors import ConfigError
from orthobench.report.citations import MODELS, PAPERS
from orthobench.schema import did_you_mean
from orthobench.terminal import say
from orthobench.verbs.arguments import Parser


def main(arguments: list[str]) -> int:
    """Print the entries of models, papers or tables (`scornn`, `sgornn/table1`), each once.

    Raises:
        ConfigError: a name that is not known.
    """
    words = Parser(__doc__).read(arguments).words
    if not words:
        raise ConfigError("cite needs a model, a paper or a table, for example `orthobench cite scornn`.")
    for paper in dict.fromkeys(paper for word in words for paper in _papers(word)):
        say(PAPERS[paper])
    return 0


def _papers(word: str) -> list[str]:
    """A model's paper, a paper itself, that of a published table, or those of a fair table's models."""
    tables = experiment.tables()
    if word in tables:
        table = experiment.load(word)
        if table.paper in PAPERS:
            return [table.paper]
        words = (word for cell in table.cells for word in table.cell(cell))
        return [MODELS[experiment.value(word)] for word in words if experiment.key(word) == "model"]
    if word not in MODELS and word not in PAPERS:
        raise ConfigError(f"cite {word} is not known: {did_you_mean(word, {*MODELS, *PAPERS, *tables})}")
    return [MODELS.get(word, word)]
