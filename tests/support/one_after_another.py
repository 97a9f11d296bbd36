"""A worker of torchrun that runs several commands: `torchrun … one_after_another.py '[["evaluate",
…], …]'`.

A job of its own for every command would mostly import PyTorch. The first command that fails ends
the job.
"""

import json
import os
import sys

from programs import main

if __name__ == "__main__":
    for number, command in enumerate(json.loads(sys.argv[1])):
        # Each group of processes meets at a place of its own.
        os.environ["TORCHELASTIC_RESTART_COUNT"] = str(number)
        if status := main(command):
            sys.exit(status)
