"""`python -m transformer generate` and `perplexity`: continues and scores texts with a language
model."""

from functools import partial
from typing import Annotated

import numpy as np

from transformer import batches
from transformer.commands.lines import Answer, answer_lines
from transformer.commands.models import BeamOptions, Json, LanguageModelOptions
from transformer.commands.program import OutputFile
from transformer.requests import LENGTH
from transformer.sampling import Sampling
from transformer.storage.files import write_json
from transformer.text.chat import Message
from transformer.text.pairs import DataError, filled_lines
from transformer.training import quality


def generate(
    prompts: Annotated[
        tuple[str, ...], "TEXT", "how the text begins; without one, each line of input"
    ] = (),
    *,
    model: LanguageModelOptions,
    beam: BeamOptions,
    max_length: Annotated[int, "most tokens of the text, the prompt among them"] = LENGTH,
    chat: Annotated[bool, "each text is what somebody says to a chat model, which answers"] = False,
    sample: Annotated[bool, "draw each token instead of taking the best"] = False,
    temperature: Annotated[float, "T", "with --sample"] = 1.0,
    top_k: Annotated[int | None, "K", "with --sample: from the K best tokens"] = None,
    top_p: Annotated[float | None, "P", "with --sample: from the best, up to mass P"] = None,
    seed: Annotated[int, "with --sample"] = 0,
) -> int:
    """Continue texts, or the lines of standard input, with a language model."""
    generator = model.open(beam)
    sampling = Sampling(temperature, top_k, top_p, seed) if sample else None
    options: Json = {"sample": sampling, "max_length": max_length, "beam_size": beam.beam_size}

    def answer(text: str) -> Answer:
        turns: list[Message] | None = [{"role": "user", "content": text}] if chat else None
        run = generator.generate("" if chat else text, chat=turns, capture=False, **options)
        log_probs = [round(value, 5) for value in run.log_probs]
        line = generator.text(run.target_ids[run.n_given :]) if chat else run.text
        values: Json = {"text": run.text, "prompt": run.prompt, "given": run.n_given}
        return values | {"tokens": run.target_tokens, "log_probs": log_probs}, line, run.notes

    return answer_lines(prompts, answer, partial(model.write, generator))


def perplexity(
    *, model: LanguageModelOptions, data: tuple[str, ...], output: OutputFile | None = None
) -> int:
    """Perplexity of a language model per word and per piece.

    data [FILE]: texts to score, one a line
    output [FILE]: also write the numbers as JSON
    """
    generator = model.open()
    results = dict[str, Json]()
    texts = {path: [line for _, line in filled_lines(path)] for path in data}
    if empty := [path for path, lines in texts.items() if not lines]:
        raise DataError(f"{empty[0]}: there is no text in this file.")
    # without a start token nothing predicts the first token of a text
    n_first = int(not generator.config.starts_with_token)
    for path, lines in texts.items():
        log_probs = np.array([sum(prob) for prob in batches.forced_log_probs(generator, lines)])
        words = [len(text.split()) for text in lines]
        pieces = [len(generator.ids(text)) - n_first for text in lines]
        per_word, per_piece = (quality.perplexity(log_probs, units) for units in (words, pieces))
        values: Json = {"texts": len(lines), "words": sum(words), "pieces": sum(pieces)}
        values |= {"per_word": per_word, "per_piece": per_piece}
        text = (
            f"{path}: {len(lines):,} texts, {sum(words):,} words, {sum(pieces):,} pieces\n"
            f"  perplexity per word {per_word:.1f}, per piece {per_piece:.1f}"
        )
        results[path] = values
        model.write(generator, {"data": path, **values}, text)
    if output is not None:
        write_json(output, {"data": results})
    return 0
