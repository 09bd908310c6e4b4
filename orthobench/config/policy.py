"""Refuse a configuration that runs code, reads the environment, holds secrets, or sets Hydra's own settings."""

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

from orthobench.common.schema import did_you_mean
from orthobench.errors import ConfigError, not_installed

HYDRA_ALLOWED = ("hydra/launcher", "hydra.launcher.", "hydra.verbose")

NO_LAUNCHER = "hydra._internal.core_plugins.basic_launcher.BasicLauncher"  # Hydra's own, where none is chosen
LAUNCHERS = ("local", "joblib", "slurm", "ray")
FORMER_LAUNCHERS = {"submitit_slurm": "slurm", "submitit_local": "local"}
LAUNCHER_PACKAGES = {"slurm": "submitit", "ray": "ray"}
COMMAND_LINE_ALONE = ("data_root", "runs_root", "results_root", "data", "logger", "force", "fork", "timeout")
OF_THE_RUN = {"runtime", "overrides", "searchpath", "job", "mode"}
MOST_REFERENCES = 24  # ${...} in the settings of a run: in the worst order they expand to 3^8 values
SECRETS = ("api_key", "apikey", "secret", "password")  # within a key; within one with `token` only numbers are none
DIGITS = 9  # of a number of tokens
ENVIRONMENT = ("ORTHOBENCH_DATA", "ORTHOBENCH_RUNS", "ORTHOBENCH_RESULTS")


def check_hydra_override(key: str, text: str) -> None:
    """Refuse an override of Hydra's own settings other than the launcher's.

    Raises:
        ConfigError: the override is of this kind.
    """
    if not any(key == name or (name.endswith(".") and key.startswith(name)) for name in HYDRA_ALLOWED):
        raise ConfigError(
            f"{text!r} is refused: only the launcher among Hydra's own settings can be changed, so leave it out."
        )
    if "_target_" in text:
        raise ConfigError(f"{text!r} is refused: a configuration may not name code to run (_target_), so delete it.")
    if key == "hydra/launcher":
        name = text.partition("=")[2]
        if name not in (*LAUNCHERS, "basic"):
            if name in FORMER_LAUNCHERS:
                raise ConfigError(f"hydra/launcher={name} is hydra/launcher={FORMER_LAUNCHERS[name]} now: use that.")
            raise ConfigError(f"hydra/launcher={name} is not known: {did_you_mean(name, LAUNCHERS)}")
        if name in LAUNCHER_PACKAGES and not _is_there(LAUNCHER_PACKAGES[name]):
            raise not_installed(text, name)


def _is_there(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # of a package that the name begins with
        return False


def walk(node: Any, place: str = "") -> Iterator[tuple[str, str, Any]]:
    """(dotted path, key, value) of every entry of nested dictionaries and lists."""
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in items:
        here = f"{place}.{key}" if place else str(key)
        yield here, str(key), value
        yield from walk(value, here)


def check_values(content: Any, source: str = "") -> None:
    """Refuse code to run, secrets, and interpolations other than plain references.

    Raises:
        ConfigError: a value is one of these.
    """
    for place, key, value in walk(content):
        if key == "_target_":
            raise ConfigError(
                f"{source}{place} is refused: a configuration may not name code to run (_target_), so delete it."
            )
        if any(word in key.lower() for word in SECRETS) or ("token" in key.lower() and not _is_small_number(value)):
            raise ConfigError(f"{source}{place} looks like a secret; put secrets into the environment, never here.")
        if isinstance(value, str) and "${" in value:
            _check_interpolation(value, source + place)


def _is_small_number(value: Any) -> bool:
    """Return True if a value is null, true, false or a number of few digits: a count of tokens, and no token."""
    return value is None or (isinstance(value, int | float) and abs(value) < 10**DIGITS)


def check_references(content: Any) -> None:
    """Refuse so many references that those which refer to each other, several times each, would have no end.

    Raises:
        ConfigError: there are more than MOST_REFERENCES.
    """
    found = [(place, value.count("${") - value.count("${oc.env:")) for place, _, value in walk(content)
             if isinstance(value, str)]  # fmt: skip
    count = sum(number for _, number in found)
    if count > MOST_REFERENCES:
        place = next(place for place, number in found if number)
        raise ConfigError(f"{count} references such as that of {place} are too many: {MOST_REFERENCES} are allowed.")


def _check_interpolation(value: str, place: str) -> None:
    parts = value.split("${")[1:]
    for number, part in enumerate(parts, start=1):
        inside, closed, _ = part.partition("}")
        resolver, colon, argument = inside.partition(":")
        nested = not closed and number < len(parts)  # a resolver's name could be made of it
        if nested or (colon and not (resolver == "oc.env" and argument.split(",")[0] in ENVIRONMENT)):
            raise ConfigError(f"{place}={value} is refused: only plain references such as ${{seed}} are allowed.")


def check_hydra(hydra: Any) -> None:
    """Refuse a composed `hydra` node that sets callbacks, an environment or an unknown launcher class.

    Raises:
        ConfigError: it sets one of these.
    """
    launcher = hydra["launcher"].get("_target_")
    own = launcher is None and hydra["launcher"].get("name") in LAUNCHERS
    if hydra.get("callbacks") or hydra["job"].get("env_set") or not (own or launcher == NO_LAUNCHER):
        raise ConfigError(
            "the configuration sets Hydra's callbacks, environment or launcher class, which is refused"
            ": delete those lines of the files in --config-dir."
        )


def check_foreign(found: dict[str, Any], shipped: dict[str, Any]) -> None:
    """Refuse what the files of `--config-dir` may not change: Hydra's own settings, the places that are written to and
    the logger, which are for the command line alone.

    Args:
        found: the composed configuration, with its `hydra` node.
        shipped: the same without these files, of the words for Hydra, places and logger alone.

    Raises:
        ConfigError: one of them differs.
    """
    for key, value in shipped["hydra"].items():
        if key not in OF_THE_RUN and found["hydra"].get(key) != value:
            raise ConfigError(f"a file of --config-dir changes hydra.{key}, which is refused: delete that line.")
    for key in COMMAND_LINE_ALONE:
        if found.get(key) != shipped.get(key):
            raise ConfigError(f"a file of --config-dir sets {key}, which is for the command line alone: drop it.")
