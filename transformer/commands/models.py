"""The options of commands that open a model, and what they print of its answers."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from transformer.devices import AUTO, LARGE, VARIABLE, choose_device
from transformer.text.kinds import at_least, one_of
from transformer.training.distributed import Workers, joined
from transformer.translator import (
    TYPES,
    Translator,
    load_encoder,
    load_language_model,
    load_translator,
)

BUNDLED = Path(__file__).resolve().parents[2] / "assets" / "models"
"""The models that come with a clone of this project."""
ENCODERS = BUNDLED / "encoder"
"""Those of them that are encoders alone."""
Json = dict[str, Any]
Device = Annotated[
    str,
    f"auto, cpu or cuda; auto is what {VARIABLE} says, or cuda for training and for models from "
    f"{LARGE // 1_000_000} million parameters on, where there is one, else cpu",
]


@dataclass(frozen=True, kw_only=True)
class BeamOptions:
    """How a command searches; ValueError for a beam narrower than 1.

    length_offset [K]: divide by ((K + length) / (K + 1))^a instead; 5 is the formula of Wu et
        al. (2016)
    """

    beam_size: Annotated[int, "beam width; 1 is greedy"] = 1
    length_penalty: Annotated[float | None, "A", "a of a beam's score, sum of log p / length^a"] = (
        None
    )
    length_offset: int | None = None

    def __post_init__(self) -> None:
        at_least(1).check("The beam size", self.beam_size)


@dataclass(frozen=True, kw_only=True)
class LanguageModelOptions:
    """The language model that a command opens."""

    model: Annotated[str, "DIR", "directory, GGUF file, or owner/model on the Hub"]
    device: Device = AUTO
    dtype: Annotated[str, one_of(*TYPES), "number type of the computation"] = "float32"
    json: Annotated[bool, "print lines of JSON"] = False

    def load(self) -> Translator:
        """The model."""
        return load_language_model(self.model, self.device, dtype=self.dtype)

    def open(self, beam: BeamOptions | None = None) -> Translator:
        """The model, whose beams score as the options say."""
        model = self.load()
        if beam is not None:
            model.rules = model.rules.with_penalty(beam.length_penalty, beam.length_offset)
        return model

    def write(self, model: Translator, values: Json, text: str) -> None:
        """Prints a line of JSON, with the device that computed it, or the text."""
        line = (
            json.dumps(values | {"device": str(model.device)}, ensure_ascii=False)
            if self.json
            else text
        )
        print(line, flush=True)


@dataclass(frozen=True, kw_only=True)
class ModelOptions(LanguageModelOptions):
    """Any model that a command opens."""

    revision: Annotated[str | None, "branch, tag or commit of a model on the Hub"] = None

    def load(self) -> Translator:
        """The model."""
        return load_translator(self.model, self.device, self.dtype, self.revision, task=None)


@dataclass(frozen=True, kw_only=True)
class EncoderOptions(ModelOptions):
    """The encoder alone that a command opens: the one that comes with this project, if none is
    named."""

    model: Annotated[str, "DIR", "directory, or owner/model on the Hub; else the bundled one"] = ""

    def load(self) -> Translator:
        """The model; ValueError if none is named, and none is bundled."""
        path = self.model or next(map(str, sorted(ENCODERS.glob("*/"))), "")
        if not path:
            raise ValueError("No encoder alone comes with this installation; name one by --model.")
        return load_encoder(path, self.device, self.revision, self.dtype)


@dataclass(frozen=True, kw_only=True)
class TranslatorOptions(ModelOptions):
    """The model that a command translates with."""

    def load(self) -> Translator:
        """The model."""
        return load_translator(self.model, self.device, self.dtype, self.revision)

    @contextmanager
    def open_in_job(self, beam: BeamOptions | None = None) -> Iterator[tuple[Translator, Workers]]:
        """The model in each of the processes that torchrun has started, if any.

        Several processes take GPUs as training does, whatever the size of the model.
        """
        with joined(choose_device(self.device)) as (workers, device):
            options = replace(self, device=str(device)) if workers.world > 1 else self
            yield options.open(beam), workers
