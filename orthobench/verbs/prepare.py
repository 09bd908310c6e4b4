"""`orthobench prepare DATASET`: download, verify and unpack a data set. Nothing is ever downloaded inside a run."""

from pathlib import Path

from orthobench.errors import ConfigError
from orthobench.verbs.arguments import Parser


def main(arguments: list[str]) -> int:
    """Prepare each named data set under `data_root=` (or $ORTHOBENCH_DATA, or data/).

    Raises:
        ConfigError: no name, or one that is not known.
        DataError: it could not be downloaded, or is not the published data.
    """
    given = Parser(__doc__).read(arguments)
    if not given.names:
        raise ConfigError("prepare needs the name of a data set, for example `orthobench prepare mnist`.")
    root = Path(given.catalogue.compose(given.overrides).values["data_root"])
    from orthobench.datasets.download import prepare

    for name in given.names:
        prepare(name, root)
    return 0
