"""The Transformer of "Attention Is All You Need", with every attention head open to inspection."""

from .capture import AttentionKind, AttentionTrace, Capture, HeadView, Window
from .config import TransformerConfig
from .decoding import Sampling
from .hooks import Hook
from .model import Transformer
from .tokenizer import Tokenizer
from .trace_file import load_trace, save_trace
from .trace_json import load_view, save_view
from .translation import Translation
from .translator import Translator, load_translator

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
    "load_trace",
    "load_translator",
    "load_view",
    "save_trace",
    "save_view",
]
