"""What each path of the program imports: no Lightning where nothing is trained, and never SciPy or a compiler."""

import subprocess
import sys
from pathlib import Path

import pytest

import orthobench

UNUSED = "[name for name in ('scipy', 'matplotlib', 'torch._dynamo', 'sympy') if name in sys.modules]"
RUN = (
    "from orthobench.__main__ import main; main(['model=rnn', 'task=recall', 'recipe=none', 'T=5', "
    "'trainer.max_steps=1', 'task.val_size=1', 'task.test_size=1', 'runs_root={root}'])"
)


def answer(*lines: str) -> str:
    """What a fresh program prints last."""
    program = "\n".join(["import sys", *lines])
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    return done.stdout.splitlines()[-1]


def test_a_run_imports_nothing_of_what_it_does_not_use(tmp_path: Path) -> None:
    assert answer(RUN.format(root=tmp_path), f"print({UNUSED})") == "[]"


IMPORTED = "[name for name in ('torch', 'lightning', 'hydra') if name in sys.modules]"
TINY = ("model=rnn", "task=recall", "recipe=none", "T=5", "trainer.max_steps=1", "task.val_size=1", "task.test_size=1")


def program(root: Path, *words: str) -> str:
    """A line that runs the program in `root`."""
    given = [*words, f"runs_root={root}"] if "=" in words[-1] else list(words)
    return f"from orthobench.__main__ import main; code = main({given!r})"


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("list", "models"), "0 []"),
        (("modle=rnn",), "2 ['hydra']"),
        (("plan", "model=rnn", "model.rho=3"), "2 ['torch', 'hydra']"),
        (("model=rnn", "model.rho=3"), "2 ['torch', 'hydra']"),
        (("model=rnn", "trainer.max_steps=0"), "2 ['torch', 'hydra']"),
        (("-m", "model=rnn", "seed=1,2", "model.rho=3"), "2 ['torch', 'hydra']"),
    ],
)
@pytest.mark.sampled(3)
def test_what_trains_nothing_imports_no_lightning(tmp_path: Path, words: tuple[str, ...], found: str) -> None:
    assert answer(program(tmp_path, *words), f"print(code, {IMPORTED})") == found


@pytest.mark.slow
def test_a_done_run_is_found_without_lightning(tmp_path: Path) -> None:
    first = answer(program(tmp_path, *TINY), "import lightning.pytorch", f"print(code, {IMPORTED})")
    assert first == "0 ['torch', 'lightning', 'hydra']"
    for words in (TINY, ("-m", *TINY, "seed=1")):
        assert answer(program(tmp_path, *words), f"print(code, {IMPORTED})") == "0 ['torch', 'hydra']"


def test_a_task_is_made_without_lightning() -> None:
    lines = ("from orthobench.tasks.drawn.copying import Copying", "Copying(T=3).batch('train', 0, 0)")
    assert answer(*lines, "print('lightning' in sys.modules)") == "False"


def test_the_first_line_comes_before_the_imports(tmp_path: Path) -> None:
    lines = (
        "from orthobench import __main__ as program",
        "heard = []",
        f"program.say = lambda text, end=None: end is None and heard.append((text, {IMPORTED}))",
        "code = program.main(['model=rnn', 'model.rho=3'])",
        "program.main(['model=rnn', '--cfg', 'job'])",
        "print(heard)",
    )
    assert answer(*lines) == f"[('orthobench {orthobench.__version__} reads the configuration', [])]"


@pytest.mark.slow
@pytest.mark.parametrize("module", ["run.task_data", "run.trainer", "run.callbacks.saver", "ensemble.member"])
def test_whatever_is_imported_first(module: str) -> None:
    assert answer(f"import orthobench.{module}", f"print({UNUSED})") == "[]"


@pytest.mark.slow
def test_all_of_it_can_be_imported_afterwards() -> None:
    lines = (
        "import torch, scipy.signal, matplotlib.figure, torchmetrics, orthobench.run.trainer",
        "import torch._dynamo, lightning_utilities.core.imports as installed",
        "from lightning.pytorch.utilities.compile import OptimizedModule",
        "module = torch.nn.Linear(1, 1)",
        "known = [isinstance(one, OptimizedModule) for one in (module, torch.compile(module))]",
        "print(known, installed.package_available('scipy'), bool(installed.RequirementCache('matplotlib')))",
    )
    assert answer("import orthobench.run.trainer", *lines) == "[False, True] True True"


@pytest.mark.slow
def test_a_run_gives_lightning_its_own_kinds() -> None:
    lines = (
        "from orthobench.run.trainer import SafeCheckpointIO",
        "from orthobench.run.task_data import TaskData",
        "from lightning.pytorch import LightningDataModule",
        "from lightning.fabric.plugins import CheckpointIO",
        "print(issubclass(TaskData, LightningDataModule), issubclass(SafeCheckpointIO, CheckpointIO))",
    )
    assert answer(*lines) == "True True"


@pytest.mark.parametrize("refused", ["lightning.pytorch", "lightning.pytorch.trainer.trainer", "torchmetrics.metric"])
@pytest.mark.slow
def test_lightning_is_imported_as_it_comes_where_something_is_refused(refused: str) -> None:
    lines = (
        "class Refusal:",
        "    def find_spec(self, name, path=None, target=None):",
        "        compiler = sys.modules.get('torch._dynamo')",
        f"        if name == {refused!r} and compiler is not None and compiler.__spec__ is None:",
        "            raise ImportError(name)",
        "sys.meta_path.insert(0, Refusal())",
        "import orthobench.run.trainer",
        "print('scipy' in sys.modules)",
    )
    assert answer(*lines) == "True"
