"""`orthobench show KEY=VALUE...`: print what a run would be."""

import argparse

from orthobench.common.terminal import say
from orthobench.errors import ConfigError
from orthobench.verbs.arguments import Parser


def main(arguments: list[str]) -> int:
    """Print the resolved configuration, parameter counts, baseline, engine, length and folder.

    Raises:
        ConfigError: the configuration is wrong.
    """
    parser = Parser(__doc__)
    parser.add_folders()
    parser.add_argument("--multirun", "-m", action="store_true", help=argparse.SUPPRESS)
    given = parser.read(arguments)
    if given.multirun:
        raise ConfigError("show reports one run: use `orthobench plan -m` for a sweep.")
    asked = given.catalogue.settings(given.words)
    import yaml

    from orthobench.recording.files import read_json
    from orthobench.run.memory import GIB, device_of, estimate
    from orthobench.run.run import Run

    exp = Run.fitted(asked)
    exp.model.to(device_of(exp.settings.trainer.get("accelerator", "auto")))
    say(yaml.safe_dump(exp.settings.as_dict(), sort_keys=False).rstrip())
    counts, length = exp.parameters | exp.budget, exp.duration
    say("")
    say(f"parameters  {counts['total']:,} in all, {counts['recurrent']:,} recurrent")
    say(f"sequence    {counts['state_bytes']:,} bytes of state, {counts['multiply_adds']:,} multiply-adds per step")
    for name, known in (("baseline", exp.task.baseline), ("order-blind", exp.task.order_blind)):
        if known or name == "baseline":
            say(f"{name:12}" + ", ".join(f"{metric} {value:.6g}" for metric, value in known.items()))
    for layer, (name, why) in enumerate(exp.model.engines(), start=1):
        say(f"engine      {name} (layer {layer}): {why}")
    steps = f"{length.steps:,} steps" if length.steps else "until the time limit"
    count = length.steps / length.epoch_steps if length.steps else 0
    epochs = f" = {count:{',.0f' if count >= 1e4 else '.4g'}} epochs of {length.epoch_steps:,}" if count else ""
    say(f"length      {steps}{epochs}; a validation every {length.val_every:,} batches")
    say(f"memory      about {estimate(exp.model, exp.task) / GIB:.2f} GiB for a training step")
    record = read_json(exp.settings.folder / "record.json")
    say(f"folder      {exp.settings.folder} ({record['status'] if record else 'not run yet'})")
    return 0
