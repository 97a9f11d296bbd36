"""What a model card states of the training: its options, and the toy task. No PyTorch: a cold
server asks."""

import re
from dataclasses import fields
from typing import NamedTuple

from transformer.training.options import TrainingOptions
from transformer.training.presets import PRESETS, preset_name
from transformer.training.toys import LENGTH, LENGTHS, TOYS

_CODE = re.compile(r"^```[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
_COMMAND = re.compile(r"\btransformer\s+train\b")
_FLAG = re.compile(r"--([a-z][a-z-]*)[ =]+(?!--)([^\s\"'\\]+)")


class Stated(NamedTuple):
    """What the training commands in a card's blocks of code say; None for nothing usable."""

    options: TrainingOptions | None = None
    toy: tuple[str, int] | None = None  # the toy task, and the most letters of a sequence


def stated(card: str) -> Stated:
    """What a card states; of each flag the last value counts."""
    code = [block for block in _CODE.findall(card) if _COMMAND.search(block)]
    if not code:
        return Stated()
    flags: dict[str, str] = dict(_FLAG.findall("\n".join(code)))
    name = flags.get("toy", "")
    length = flags.get("toy-length", str(LENGTH))
    known = name in TOYS and length.isdecimal() and LENGTHS[0] <= int(length) <= LENGTHS[1]
    toy = None
    if known:
        toy = (name, int(length))
    preset = PRESETS.get(preset_name(flags.get("preset"), name))
    options = dict(preset.options) if preset else {}
    try:
        for field in fields(TrainingOptions):
            kind: type = type(field.default)
            if text := flags.get(field.name.replace("_", "-")):
                options[field.name] = kind(text)
        return Stated(TrainingOptions(**options), toy)
    except ValueError:
        return Stated(None, toy)
