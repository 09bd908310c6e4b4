"""Running members from their start to their end."""

import traceback
from functools import partial

from orthobench.ensemble.member import Member
from orthobench.ensemble.stacked import Together, forms
from orthobench.ensemble.turns import Meeting
from orthobench.errors import OrthobenchError, code_of
from orthobench.run import run as app
from orthobench.run.memory import available, device_of, estimate
from orthobench.run.run import Experiment
from orthobench.terminal import complain, say


def run(experiments: list[Experiment], ways: tuple[str, ...] | None = None) -> list[int]:
    """Run members of one shape, as many at once as fit into memory; returns an exit code for each.

    Args:
        experiments: the members.
        ways: how to compute, see `together.forms`; those of the members' device when null.
    """
    accelerator = experiments[0].settings.trainer.get("accelerator", "auto")
    room = available(accelerator) // estimate(experiments[0].model, experiments[0].task)
    at_once = len(experiments) if experiments[0].settings.run["force"] else max(room, 1)
    codes: list[int] = []
    while len(codes) < len(experiments):
        codes += _run(experiments[len(codes) :][:at_once], ways or forms(device_of(accelerator)))
    return codes


def _run(experiments: list[Experiment], ways: tuple[str, ...]) -> list[int]:
    size, meeting = len(experiments), Meeting()
    together = Together(experiments[0].model, ways)
    say(f"{size} members as one program, computed {ways[0]}")
    members = [
        partial(Member, size=size, first=number == 0, meeting=meeting, together=together) for number in range(size)
    ]
    return meeting.run([partial(_code, exp, member) for exp, member in zip(experiments, members, strict=True)])


def _code(exp: Experiment, member: "partial[Member]") -> int:
    """The exit code of one member's run, as the command line gives it to a single run."""
    try:
        return code_of(app.run(exp, member)["status"])
    except OrthobenchError as error:
        complain(f"orthobench: {exp.run_id}: {error}")
        return error.exit_code
    except Exception:
        complain(f"{exp.run_id}: {traceback.format_exc()}")
        return 1
