"""The Transformer of "Attention Is All You Need", with every attention head open to inspection.

A name is imported when it is first asked for (PEP 562), so that what needs no PyTorch does not wait
for it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformer import interventions
    from transformer.config import (
        AttentionKind,
        EncoderConfig,
        LanguageModelConfig,
        TransformerConfig,
    )
    from transformer.exports.npz import load_trace, save_trace
    from transformer.hooks import Capture, Hooks
    from transformer.model import EncoderModel, LanguageModel, Transformer
    from transformer.run import Translation
    from transformer.sampling import Sampling
    from transformer.text.tokenizer import Tokenizer
    from transformer.trace import AttentionTrace
    from transformer.translator import (
        Translator,
        load_encoder,
        load_language_model,
        load_translator,
    )
    from transformer.view import HeadView, Window

__version__ = "0.1.0"

__all__ = [
    "AttentionKind",
    "AttentionTrace",
    "Capture",
    "EncoderConfig",
    "EncoderModel",
    "HeadView",
    "Hooks",
    "LanguageModel",
    "LanguageModelConfig",
    "Sampling",
    "Tokenizer",
    "Transformer",
    "TransformerConfig",
    "Translation",
    "Translator",
    "Window",
    "interventions",
    "load_encoder",
    "load_language_model",
    "load_trace",
    "load_translator",
    "save_trace",
]

_HOMES = {
    "AttentionKind": "config",
    "AttentionTrace": "trace",
    "Capture": "hooks",
    "EncoderConfig": "config",
    "EncoderModel": "model",
    "HeadView": "view",
    "Hooks": "hooks",
    "LanguageModel": "model",
    "LanguageModelConfig": "config",
    "Sampling": "sampling",
    "Tokenizer": "text.tokenizer",
    "Transformer": "model",
    "TransformerConfig": "config",
    "Translation": "run",
    "Translator": "translator",
    "Window": "view",
    "load_encoder": "translator",
    "load_language_model": "translator",
    "load_trace": "exports.npz",
    "load_translator": "translator",
    "save_trace": "exports.npz",
}
"""The module of each name of ``__all__``; ``interventions`` is a package."""


def __getattr__(name: str) -> object:
    if name == "interventions":
        return import_module(f"{__name__}.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
