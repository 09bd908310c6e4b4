"""The catalogue of what can be run and compared: models, tasks, tables and papers, and what words make of them."""

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from orthobench.common.schema import did_you_mean
from orthobench.config.configuration import Configuration
from orthobench.config.words import key, value
from orthobench.errors import ConfigError
from orthobench.study.tables.table import Table, load

if TYPE_CHECKING:
    from orthobench.study.tables.published import Published


class Catalogue(Configuration):
    """All that conf/, results/published and the user's own folders hold."""

    def expand(self, words: Iterable[str]) -> list[str]:
        """`experiment=<paper>/<table> cell=NAME` as the overrides of that row, then the other words, which beat them.

        Raises:
            ConfigError: there is no such table or row, or more than one is named.
        """
        words = super().expand(words)
        if not (asked := [word for word in words if key(word) == "experiment"]):
            return words
        if len(asked) > 1 or "," in asked[0]:
            raise ConfigError("experiment= names one table; use `orthobench reproduce` for several.")
        table = self.table(value(asked[0]))
        asked_rows = [word for word in words if key(word) == "cell"]
        if not asked_rows and len(table.rows) > 1:
            shown = ", ".join(table.rows)
            told = f"{table.name} has {len(table.rows)} cells; choose one with cell=NAME, or add -m: {shown}."
            raise ConfigError(told)
        row = value(asked_rows[-1]) if asked_rows else next(iter(table.rows))
        if table.rates and row in table.rows:
            shown, count = ", ".join(table.trained([row])), len(table.rates)
            raise ConfigError(f"cell={row} of {table.name} is trained with {count} rates; choose one: {shown}.")
        rest = [word for word in words if key(word) not in ("experiment", "cell")]
        return [*table.row(row), f"cell={row}", *rest]

    def table(self, name: str) -> Table:
        """Table `<paper>/<table>`.

        Raises:
            ConfigError: the table is not known, or its file breaks the schema.
        """
        return load(name, self)

    def tables(self, papers: Collection[str] | None = None) -> list[Table]:
        """All tables, or those of some papers.

        Raises:
            ConfigError: a file breaks the schema.
        """
        names = self.options("experiment")
        return [self.table(name) for name in names if papers is None or name.split("/")[0] in papers]

    def select(self, names: Iterable[str]) -> list[Table]:
        """The tables that are meant by a table's name, a paper's, `fair`, or `all` for every paper.

        Tables in a user's own folder are found by their name or its first part.

        Raises:
            ConfigError: a name is none of these.
        """
        known, papers, found = self.options("experiment"), self.papers(), list[str]()
        for name in names:
            wanted = papers if name == "all" else (name,)
            chosen = [t for t in known if t in wanted or t.split("/")[0] in wanted]
            if not chosen:
                raise ConfigError(f"{name} is no table or paper: {did_you_mean(name, [*known, *papers, 'all'])}")
            found += chosen
        return [self.table(name) for name in dict.fromkeys(found)]

    def papers(self) -> tuple[str, ...]:
        """Names of all papers in alphabetical order."""
        from orthobench.study.tables.published import papers

        return papers(self)

    def published(self, paper: str) -> "list[Published]":
        """Every number and claim of a paper, in its order.

        Raises:
            ConfigError: there is no such paper, or its file breaks the schema.
        """
        from orthobench.study.tables.published import load

        return load(paper, self)

    def citations(self, word: str) -> list[str]:
        """The BibTeX entries of a model, a paper or a table.

        Raises:
            ConfigError: the word is not known, or nothing says what to cite.
        """
        from orthobench.study.tables.citations import of_model, of_paper, of_table

        tables, models, papers = self.options("experiment"), self.options("model"), self.papers()
        if word in tables:
            return of_table(self.table(word))
        if word in models:
            return of_model(word, self)
        if word in papers:
            return of_paper(word, self)
        raise ConfigError(f"cite {word} is not known: {did_you_mean(word, {*models, *papers, *tables})}")


SHIPPED = Catalogue()
