"""Packages that orthobench needs: what each is for, and which of them are missing here.

The lists are those of pyproject.toml in a checkout, else of the installed package's metadata. Nothing but the standard
library is imported, so that this works where everything else is missing.
"""

import re
import shlex
import sys
from importlib import metadata
from pathlib import Path

CORE = ("torch", "lightning", "hydra-core", "omegaconf", "numpy")  # without which no run starts
PURPOSES = {
    "torch": "every run",
    "lightning": "every run",
    "hydra-core": "every command",
    "omegaconf": "every command",
    "numpy": "every run",
    "scipy": "intervals and tests of tables, and reading audio",
    "pandas": "orthobench.records",
    "matplotlib": "plot, inspect, tune and the figures of pages",
    "wandb": "logger=wandb",
    "torchtext": "fields of text in your own PyTorch code",
    "pooch": "prepare",
    "jinja2": "site",
    "rich": "the live table of sweep, tune and reproduce",
}
EXTRAS = {
    "tensorboard": "logger=tensorboard",
    "triton": "engine=triton on a GPU",
    "kernels": "tests of the Triton kernels without a GPU",
    "slurm": "hydra/launcher=slurm",
    "ray": "hydra/launcher=ray",
    "export": "export to ONNX",
    "share": "export --format safetensors",
    "tune": "tune",
    "site": "the figures of site",
    "docs": "building these docs",
    "audio": "audio of task=timit, and its scores",
    "dev": "the tests",
}
IMPORTED = {"hydra": "hydra-core", "vl_convert": "vl-convert-python", "hydra_plugins": "hydra-core"}  # as packages


def _root() -> Path:
    """Folder of the checkout, where this is one."""
    return Path(__file__).resolve().parents[2]


def wanted() -> dict[str, list[str]]:
    """By extra, `""` for what is always needed, the requirements as pip takes them; empty where nothing says."""
    path = _root() / "pyproject.toml"
    if path.is_file():
        import tomllib

        project = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
        return {"": project["dependencies"], **project["optional-dependencies"]}
    found: dict[str, list[str]] = {}
    try:
        listed = metadata.requires("orthobench") or []
    except metadata.PackageNotFoundError:
        return {}
    for text in listed:
        extra = re.search(r"""extra\s*==\s*['"]([\w-]+)['"]""", text)
        found.setdefault(extra[1] if extra else "", []).append(text.partition(";")[0].strip())
    return found


def install(extra: str) -> str:
    """Command that installs an extra: from the checkout that the program is run from, or of the installed package."""
    root = _root()
    if not (root / "pyproject.toml").is_file():
        return f"pip install 'orthobench[{extra}]'"
    here = Path.cwd() == root
    constraints = "constraints.txt" if here else shlex.quote(str(root / "constraints.txt"))
    return f"pip install -c {constraints} -e {shlex.quote(f'.[{extra}]' if here else f'{root}[{extra}]')}"


def name_of(requirement: str) -> str:
    """The package of a requirement such as `torch>=2.11`."""
    return re.split(r"[\s<>=!~\[;(]", requirement.strip(), maxsplit=1)[0]


def trouble(requirement: str) -> str:
    """The reason why a requirement is not met, `is missing` or `1.0 is not >=2.0`; empty where it is."""
    name = name_of(requirement)
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        return "is missing"
    try:
        from packaging.requirements import Requirement
    except ImportError:
        return ""
    wanted_versions = Requirement(requirement).specifier
    return "" if wanted_versions.contains(version, prereleases=True) else f"{version} is not {wanted_versions}"


def not_found(error: ModuleNotFoundError) -> str | None:
    """The sentence for a package that is not installed; None where the missing module is our own."""
    top = (error.name or "").partition(".")[0]
    if not top or top == "orthobench":
        return None
    name = IMPORTED.get(top, top.replace("_", "-"))
    lists = wanted()
    extra = next((extra for extra, listed in lists.items() if extra and name in map(name_of, listed)), "")
    if name in map(name_of, lists.get("", [])) or not extra:
        use = f", which is needed for {PURPOSES[name]}," if name in PURPOSES else ""
        requirement = next((one for one in lists.get("", []) if name_of(one) == name), name)
        return (
            f"{name}{use} is not installed in this Python ({sys.executable}): python -m pip install '{requirement}'; "
            "`orthobench doctor` lists what is missing."
        )
    return f"{name}, which is needed for {EXTRAS.get(extra, extra)}, is not installed: {install(extra)}."
