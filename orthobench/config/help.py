"""The text of `orthobench --help`: the groups of files, and the configuration that the words make.

Hydra's own help copies its whole configuration for every group, which takes most of a second.
"""

import yaml

from orthobench.config.compose import Composed
from orthobench.config.files import GROUPS, Files, conf_dir
from orthobench.config.yaml_file import read_yaml

TEMPLATE = """\
{header}
== Configuration groups ==
Compose your configuration from those groups (group=option)

{groups}

== Config ==
Override anything in the config (foo.bar=value)

{config}

{footer}"""


def text(files: Files, composed: Composed) -> str:
    """The text for what the words chose and set; its first and last line are in conf/config.yaml."""
    told = read_yaml(conf_dir() / "config.yaml")["hydra"]["help"]
    groups: dict[str, list[str]] = {}
    for group in GROUPS:
        for path in files.options(group):
            folder, _, name = f"{group}/{path}".rpartition("/")
            groups.setdefault(folder, []).append(name)
    return TEMPLATE.format(
        header=told["header"],
        groups="\n".join(f"{group}: {', '.join(sorted(names))}" for group, names in sorted(groups.items())),
        config=yaml.safe_dump(composed.values, sort_keys=False, allow_unicode=True, width=1000),
        footer=told["footer"],
    )
