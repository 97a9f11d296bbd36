"""What a model card states of the training: its options, and the toy task. No PyTorch: a cold server asks."""

import re
from dataclasses import fields

from transformer.training.options import TrainingOptions
from transformer.training.presets import PRESETS, preset_name
from transformer.training.toys import LENGTH, LENGTHS, TOYS

_CODE = re.compile(r"^```[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
_COMMAND = re.compile(r"\btransformer\s+train\b")
_FLAG = re.compile(r"--([a-z][a-z-]*)[ =]+(?!--)([^\s\"'\\]+)")


def stated_options(card: str) -> TrainingOptions | None:
    """The options of the training commands in a card's code, of each flag the last value; or None."""
    if (flags := _flags(card)) is None:
        return None
    preset = PRESETS.get(preset_name(flags.get("preset"), flags.get("toy")))
    options = dict(preset.options) if preset else {}
    try:
        for each in fields(TrainingOptions):
            kind: type = type(each.default)
            if text := flags.get(each.name.replace("_", "-")):
                options[each.name] = kind(text)
        return TrainingOptions(**options)
    except ValueError:
        return None


def stated_task(card: str) -> tuple[str, int] | None:
    """The toy task that a card's training command names, and the most letters of a sequence, or None."""
    flags = _flags(card) or {}
    length = flags.get("toy-length", str(LENGTH))
    if flags.get("toy") not in TOYS or not length.isdecimal() or not LENGTHS[0] <= int(length) <= LENGTHS[1]:
        return None
    return flags["toy"], int(length)


def _flags(card: str) -> dict[str, str] | None:
    """The flags of the training commands in a card's blocks of code; None if there is no such command."""
    code = [block for block in _CODE.findall(card) if _COMMAND.search(block)]
    return dict(_FLAG.findall("\n".join(code))) if code else None
