"""The Transformer of "Attention Is All You Need", with every attention head open to inspection."""

from transformer.decode.sampling import Sampling
from transformer.exports.npz import load_trace, save_trace
from transformer.exports.view import load_view, save_view
from transformer.model import interventions
from transformer.model.config import TransformerConfig
from transformer.model.sites import AttentionKind
from transformer.model.transformer import Transformer
from transformer.model.watching.hooks import Hook
from transformer.text.vocabulary import Tokenizer
from transformer.trace.recorder import Capture
from transformer.trace.records import AttentionTrace
from transformer.trace.view import HeadView, Window
from transformer.translate.translation import Translation
from transformer.translate.translator import Translator, load_translator

__version__ = "0.1.0"

__all__ = [
    "AttentionKind",
    "AttentionTrace",
    "Capture",
    "HeadView",
    "Hook",
    "Sampling",
    "Tokenizer",
    "Transformer",
    "TransformerConfig",
    "Translation",
    "Translator",
    "Window",
    "interventions",
    "load_trace",
    "load_translator",
    "load_view",
    "save_trace",
    "save_view",
]
