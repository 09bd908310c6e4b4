"""`orthobench cite MODEL|PAPER|TABLE...`: the BibTeX entries of their papers."""

from orthobench.common.terminal import say
from orthobench.errors import ConfigError
from orthobench.verbs.arguments import Parser


def main(arguments: list[str]) -> int:
    """Print the entries of models, papers or tables (`scornn`, `sgornn/table1`), each once.

    Raises:
        ConfigError: a name that is not known, or one for which nothing says what to cite.
    """
    parser = Parser(__doc__)
    parser.add_folders()
    given = parser.read(arguments)
    if not given.words:
        raise ConfigError("cite needs a model, a paper or a table, for example `orthobench cite scornn`.")
    for entry in dict.fromkeys(entry for word in given.words for entry in given.catalogue.citations(word)):
        say(entry)
    return 0
