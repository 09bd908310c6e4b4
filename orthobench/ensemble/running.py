"""Running the members of an ensemble."""

import traceback
from functools import partial

from orthobench.common.terminal import complain, say
from orthobench.ensemble.member import Member
from orthobench.ensemble.stacked import Stacked, forms
from orthobench.ensemble.threads_in_turn import Turns
from orthobench.errors import OrthobenchError, code_of
from orthobench.models.surroundings import denormals_as_zero, torch_as_new
from orthobench.run.memory import available, device_of, estimate
from orthobench.run.run import Run


@torch_as_new()
@denormals_as_zero()
def run_members(
    runs: list[Run], ways: tuple[str, ...] | None = None, computed_by: type[Stacked] = Stacked
) -> list[int]:
    """Run members of one shape, as many at once as fit into memory; returns an exit code for each.

    Args:
        runs: the members.
        ways: the ways to compute, see `stacked.forms`; None for those of the members' device.
        computed_by: what computes losses and gradients.
    """
    accelerator = runs[0].settings.trainer.get("accelerator", "auto")
    room = available(accelerator) // estimate(runs[0].model, runs[0].task)
    at_once = len(runs) if runs[0].settings.run["force"] else max(room, 1)
    codes: list[int] = []
    while len(codes) < len(runs):
        codes += _run(runs[len(codes) :][:at_once], ways or forms(device_of(accelerator)), computed_by)
    return codes


def _run(runs: list[Run], ways: tuple[str, ...], computed_by: type[Stacked]) -> list[int]:
    size, meeting = len(runs), Turns()
    together = computed_by(runs[0].model, ways)
    say(f"{size} members as one program, computed {ways[0]}")
    members = [
        partial(Member, size=size, first=number == 0, meeting=meeting, together=together) for number in range(size)
    ]
    return meeting.run([partial(_code, run, member) for run, member in zip(runs, members, strict=True)])


def _code(run: Run, member: "partial[Member]") -> int:
    """The exit code of one member's run, as the command line gives it to a single run."""
    try:
        return code_of(run.run(member)["status"])
    except OrthobenchError as error:
        complain(f"orthobench: {run.run_id}: {error}")
        return error.exit_code
    except Exception:
        complain(f"{run.run_id}: {traceback.format_exc()}")
        return 1
