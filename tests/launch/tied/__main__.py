"""A program that says which signal its parent's death sends it."""

import sys
import time
from pathlib import Path

from orthobench.common import signals

with signals.watched():
    signals.end_with_parent()
    Path(sys.argv[1]).touch()
    while signals.asked() is None:
        time.sleep(0.01)
    sys.stdout.write(str(signals.asked()))
