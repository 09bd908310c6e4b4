import json
import os
import signal
import sys
import time
from pathlib import Path


def main() -> int:
    """Do what the first word says; returns the exit code."""
    what, *rest = sys.argv[1:]
    if what == "describe":
        import torch

        session = os.getsid(0) == os.getpid()
        told = [os.environ.get(name) for name in ("GIVEN", "OPENBLAS_NUM_THREADS")]
        sys.stdout.write(json.dumps([rest, session, torch.get_num_threads(), str(Path.cwd()), *told]))
    elif what == "show":
        sys.stdout.write(os.environ[rest[0]])
    elif what == "sleep":
        Path(rest[0]).touch()
        time.sleep(60)
    elif what == "sleep once":  # what a second attempt finds done
        if Path(rest[0]).exists():
            return 4
        Path(rest[0]).touch()
        time.sleep(1)
    elif what == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif what == "raise":
        raise ValueError("broken")
    elif what == "exit":
        sys.exit(int(rest[0]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
