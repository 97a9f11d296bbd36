"""A worker of torchrun that ends without a word before a step, as if it was killed; but only once.

`torchrun … worker.py RANK STEP MARK train …`: process RANK ends before STEP unless the file MARK
exists.
"""

import os
import sys
from pathlib import Path

from programs import main

from transformer.training.trainer import Trainer, TrainingStep

if __name__ == "__main__":
    rank = int(sys.argv[1])
    step = int(sys.argv[2])
    mark = Path(sys.argv[3])
    advance = Trainer.advance

    def until_killed(trainer: Trainer) -> TrainingStep:
        if trainer.workers.rank == rank and trainer.step + 1 == step and not mark.exists():
            mark.touch()
            os._exit(9)
        return advance(trainer)

    Trainer.advance = until_killed  # type: ignore[method-assign]
    sys.exit(main(sys.argv[4:]))
