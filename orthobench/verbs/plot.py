"""`orthobench plot [TABLE...|PAPER...|all]`: results/figures/*.svg from what is recorded."""

import re

from orthobench.experiment import FULL
from orthobench.terminal import say


def main(arguments: list[str]) -> int:
    """Write the figures that the records of the named tables allow; all tables when none is named.

    Raises:
        ConfigError: no such table or paper.
    """
    from orthobench import experiment
    from orthobench.recording.files import write_bytes
    from orthobench.report import fair_figures
    from orthobench.report.comparison import compare, presets
    from orthobench.report.fair import contest
    from orthobench.report.figures import figures
    from orthobench.reproduce import select
    from orthobench.verbs.report import results_root

    results = results_root([word for word in arguments if "=" in word])
    names = [word for word in arguments if "=" not in word] or ["all"]
    written = 0
    for name in select(names):
        for preset in (FULL, *presets(name, results)):
            fair = experiment.load(name).track == experiment.FAIR
            drawn = (
                fair_figures.figures(contest(name, results, preset))
                if fair
                else figures(compare(name, results, preset), results)
            )
            for title, svg in drawn.items():
                words = re.sub(r"[^a-z0-9]+", "-", title.partition(": ")[2].lower()).strip("-")
                short = "" if preset == FULL else f"-{preset}"
                path = results / "figures" / f"{name.replace('/', '-')}{short}-{words}.svg"
                write_bytes(path, svg.encode())
                say(f"wrote {path}")
                written += 1
    if not written:
        say("nothing is recorded that could be drawn")
    return 0
