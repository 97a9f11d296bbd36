"""Every name of the product that this suite uses.

What is renamed later is changed here and nowhere else.
"""

import shutil
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import Any

from transformer import Sampling, load_trace, load_translator, save_trace  # noqa: F401
from transformer import interventions as do  # noqa: F401

ROOT = Path(__file__).resolve().parents[2]
MODELS = ROOT / "assets" / "models"
REVERSE = Path(__file__).parent / "reverse"
CHROMIUM = shutil.which("chromium-headless-shell") or shutil.which("chromium")
ENCODINGS = ("none", "sinusoidal", "learned", "shaw", "t5", "rotary", "alibi")
TRANSLATORS = ["en-de", "en-pt", *(f"positions/{name}" for name in (*ENCODINGS, "postnorm"))]
TRANSLATORS += [f"recurrent/{name}" for name in ("additive", "bilinear", "dot", "local")]
LANGUAGE = "language/lm-en"
COMPANIONS = (
    "heads.json",
    "survey.npz",
    "means.safetensors",
    "examples.json",
    "first.npz",
    "history.json",
)
KINDS = {"encoder": False, "decoder": True, "cross": False}  # whether a mask hides what comes later


@cache
def translator(model: str) -> Any:
    return load_translator(MODELS / model)


# Commands, behind `python -m`; what the trainer writes; what a run says beside its tokens.
TRAIN, TRANSLATE, ALIGN = "transformer train", "transformer translate", "explorer align"
PAGE = "explorer page"
LOG, LOSS, RATE, EXACT = "log.jsonl", "loss", "learning_rate", "exact"
distributions = attrgetter("distributions")


def embedded(run: Any) -> Any:
    return lambda side: run.trace.embeddings[side].tokens.numpy()


def entered(run: Any) -> Any:
    return lambda side: run.trace.embeddings[side].input.numpy()


# Arrays of a saved run, and the checks that read them.
META, REPLAY = "meta", "replay_error"
QUERY, VALUE = "decoder.1.cross_attention.query", "decoder.0.cross_attention.value"
SENT = "decoder.2.self_attention.heads"
ASKED, KEY = "encoder.0.self_attention.query", "encoder.0.self_attention.key"
LATER = "decoder.0.self_attention.key"
TOKEN, INPUT, PLACE = "encoder.tokens", "decoder.input", "encoder.positions"
OUTPUTS, EMBEDDINGS, POSITIONS = "outputs", "embeddings", "positions"
RECORDED = "log-probabilities (as recorded)"

# Addresses, and what stands on the screen.
HOME, SCRIPT, FOLDER = "app.py", "pages/{}.py", "TRANSFORMER_MODELS"
PAGES = [
    "encoder_self_attention",
    "decoder_self_attention",
    "cross_attention",
    "heads",
    "masks",
    "glossary",
]
PAGES += ["inside_a_head", "whole_model", "beam_search", "what_if", "explanation", "positions"]
PAGES += ["lessons", "paper", "training", "recurrent", "findings"]
PAGES += ["open_file"]
JUDGED = ("recurrent",)
BADGE = r"✓|what if, not the model's|formula"
FIELD, FORWARD, SAVE = "Sentence to translate", "One forward", ".st-key-export-run button"
VIEW, COUNT, WORDS = ".lv[data-ready=true]", ".lv-count", ".lv-strip-{} .lv-word"
MAP, CAPTION = "[data-plot=cross] .lv-body", "[data-plot=cross] figcaption"
VERIFIED, HEADS = "[data-plot=cross] .lv-badge", "[data-plot=cross] .lv-head"
NOT_OURS = [[".stAppHeader"], [".stSidebarHeader"], [".main-svg"]]
