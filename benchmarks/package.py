"""The package on one machine: capture, changes, search, scoring and measures, each beside what it
adds to.

Where nothing else is said, the model has the shape of `en-de` and random weights; its ``</s>`` is
never the most probable token, so that every output has the same length.
"""

import os
import random
import re
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import torch
from torch import Tensor
from torch.nn.functional import linear

from benchmarks.timing import (
    ASSETS,
    MODELS,
    Model,
    Repeats,
    Seconds,
    Threads,
    Tokens,
    interleaved,
    ratio,
    report,
    text_of,
)
from explorer.lenses.measures.attribution import alti, attribution
from explorer.lenses.measures.effect import Cut, Effects, effect
from explorer.lenses.measures.stream import carried, score_parts
from transformer import (
    AttentionKind,
    Capture,
    Tokenizer,
    Transformer,
    TransformerConfig,
    Translation,
    Translator,
    load_translator,
)
from transformer import interventions as do
from transformer.audit import audit
from transformer.batches import forced_log_probs
from transformer.decoding import DecodingState, decode
from transformer.hooks import Hooks
from transformer.interventions import HeadMeans
from transformer.layers import Layer
from transformer.packed import convert
from transformer.requests import LEFT_OUT
from transformer.text.pairs import SentencePair, read_pairs
from transformer.trace import trace_of

SHAPE: dict[str, Any] = {
    **{"d_model": 256, "d_ff": 1024, "n_heads": 8, "n_encoder_layers": 3, "n_decoder_layers": 3}
}
TEXTS = 30
"""Translations of each sort whose notes are counted."""


def own_model() -> Translator:
    """Our model of the shape, laid out as if loaded, with mean outputs of its heads."""
    torch.manual_seed(0)
    tokenizer = Tokenizer.load(MODELS / "en-de/tokenizer.model")
    config = TransformerConfig(vocab_size=tokenizer.vocab_size, norm="pre", **SHAPE)
    model = Transformer(config).eval().requires_grad_(False)
    model.embedding.weight[config.eos_id] = 0.0
    size = config.n_heads, config.d_head
    outputs = {kind: torch.randn(site.n_layers, *size) for kind, site in config.sites.items()}
    return Translator(convert(model, "cpu"), tokenizer, means=HeadMeans(outputs, {}))


def marian_like(config: Any, attention: str) -> Any:
    """transformers' MarianMTModel of the shape of a config; its ``</s>`` is never the most probable
    token."""
    from transformers import MarianConfig, MarianMTModel

    torch.manual_seed(0)
    sides = {"layers": (config.n_encoder_layers, config.n_decoder_layers)}
    sides |= {"ffn_dim": (config.d_ff,) * 2, "attention_heads": (config.n_heads,) * 2}
    of_sides = {
        f"{side}_{name}": sizes[i]
        for name, sizes in sides.items()
        for i, side in enumerate(("encoder", "decoder"))
    }
    model = MarianMTModel(
        MarianConfig(  # type: ignore[call-arg]
            vocab_size=max(config.vocab_size, config.pad_id + 1, config.bos_id + 1),
            d_model=config.d_model,
            activation_function=config.activation,
            max_position_embeddings=2048,
            pad_token_id=config.pad_id,
            eos_token_id=config.eos_id,
            decoder_start_token_id=config.bos_id,
            forced_eos_token_id=None,
            attn_implementation=attention,
            **of_sides,
        )
    ).eval()
    with torch.no_grad():
        model.model.shared.weight[config.eos_id] = 0.0
    return model


def sample(name: str) -> list[SentencePair]:
    """The bundled sentence pairs of a model."""
    return list(read_pairs(ASSETS / f"sample/tatoeba-{name}.tsv.gz"))


def ours(
    translator: Translator,
    text: str,
    tokens: int,
    beam_size: int = 1,
    capture: bool = True,
    **more: Any,
) -> Callable[[], None]:
    """A run of this package that writes so many tokens; a capture derives one layer of each
    kind."""

    def run() -> None:
        translation = translator.translate(
            text, beam_size=beam_size, max_length=tokens, capture=capture, **more
        )
        assert len(translation.target_tokens) == tokens
        read_weights(translation)

    return run


def read_weights(run: Translation) -> None:
    """Derives the weights of one layer of each kind, if there is a capture."""
    if run.attention is not None:
        for kind in AttentionKind:
            run.attention.weights(kind, layer=0)


def theirs(
    model: Any, src_ids: Tensor, tokens: int, beam_size: int = 1, capture: bool = True
) -> Callable[[], None]:
    """A run of transformers that writes so many tokens."""

    def run() -> None:
        output = model.generate(
            src_ids,
            max_new_tokens=tokens,
            num_beams=beam_size,
            do_sample=False,
            return_dict_in_generate=True,
            output_attentions=capture,
        )
        assert output.sequences.shape[1] == tokens + 1

    return run


def capture(*, repeats: Repeats = 15, threads: Threads = 2) -> int:
    """Time of a capture beside none and beside transformers' explicit attention; the bytes that it
    keeps."""
    torch.set_num_threads(threads)
    translator = own_model()
    model, encode = translator.model, translator.tokenizer.target.decode
    reference = marian_like(model.config, "eager")
    for source, target in ((12, 14), (32, 40), (64, 80)):
        text = encode([translator.tokenizer.source.ids["▁the"]] * (source - 1))
        src_ids = torch.tensor([[*translator.ids(text), model.config.eos_id]])
        runs = {
            "capture": ours(translator, text, target),
            "no capture": ours(translator, text, target, capture=False),
            "transformers": theirs(reference, src_ids, target),
        }
        seconds = interleaved(runs, repeats)
        label = f"{src_ids.shape[1]} → {target} tokens"
        report(label, seconds, "capture", "no capture", "at most 1.15")
        report(label, seconds, "transformers", "capture", "at least 1.5")
    heads = sum(layers * count for layers, count in model.config.sizes.values())
    first = None
    for n in (64, 256, 1024):
        hooks = Hooks(Capture().parts)
        for _ in decode(DecodingState(model, torch.full((1, n), 7), hooks, hooks), n):
            pass
        trace = trace_of(hooks, model.config, audit)
        assert trace is not None
        first = first or trace.nbytes / n
        shares = f"{trace.nbytes / n / first:.3f} × a token as at first"
        shares += f", {trace.nbytes / (4 * heads * n * n):.3f} × all weights in float32"
        print(f"{n} tokens a side: {trace.nbytes / 1e6:.2f} MB kept, {shares}")
    return 0


def words(
    *, repeats: Repeats = 15, sentences: Annotated[int, "sentences of the sample"] = 40
) -> int:
    """Words a second and core of `en-pt` and of a MarianMTModel of its shape that writes as many
    tokens."""
    torch.set_num_threads(1)
    translator = load_translator(MODELS / "en-pt")
    texts = [pair.source for pair in sample("en-pt")[:sentences]]
    written = [translator.translate(text, capture=False) for text in texts]
    sources = [torch.tensor([[*translator.ids(text), translator.config.eos_id]]) for text in texts]
    lengths = [len(run.target_tokens) for run in written]
    reference = marian_like(translator.config, "sdpa")
    runs: dict[str, Callable[[int], object]] = {
        "en-pt, no capture": lambda i: translator.translate(texts[i], capture=False),
        "en-pt, capture": lambda i: read_weights(translator.translate(texts[i])),
        "transformers": lambda i: theirs(reference, sources[i], lengths[i], capture=False)(),
    }
    count = sum(len(run.text.split()) for run in written)
    speeds: Seconds = {name: [] for name in runs}
    for _ in range(repeats):
        spent = dict.fromkeys(runs, 0.0)
        for i in range(sentences):
            for name in list(runs)[
                :: 1 if i % 2 else -1
            ]:  # to and fro: none always finds warm caches
                start = time.process_time()
                runs[name](i)
                spent[name] += time.process_time() - start
        for name, seconds in spent.items():
            speeds[name].append(count / seconds)
    for name, rates in speeds.items():
        times, low, high = ratio(speeds, name, "transformers")
        spread = f"{times:.2f} (from {low:.2f} to {high:.2f}) × transformers"
        print(f"{name}: {statistics.median(rates):.0f} words a second and core; {spread}")
    return 0


def changes(*, tokens: Tokens = 20, repeats: Repeats = 15) -> int:
    """Time of a translation with each sort of change beside one without; "none" shows the machine's
    noise."""
    torch.set_num_threads(1)
    translator = own_model()
    text = "the cat sees the house of my friend " * 2
    run = do.run(text, list(range(60, 60 + tokens)))
    sorts: dict[str, do.Intervention] = {
        "choose": do.choose(3, 50),
        "forbid": do.forbid(50),
        "prefix": do.prefix([50, 51]),
        "edit a source token": do.edit_source(1, 50),
        "drop a source token": do.drop_source(1),
        "ablate by zero": do.ablate("cross", 1, 2),
        "ablate by mean": do.ablate("decoder", 1, 2, by="mean"),
        "ablate by uniform": do.ablate("cross", 1, 2, by="uniform"),
        "ablate by previous": do.ablate("decoder", 1, 2, by="previous"),
        "ablate by first": do.ablate("encoder", 1, 2, by="first"),
        "scale": do.scale("cross", 1, None, 0.5),
        "set a row": do.set_row("cross", 1, 2, 4, {0: 0.5}),
        "hide a source token": do.hide(1),
        "mask": do.mask("decoder", forbid="past", layer=1),
        "temperature": do.temperature("cross", 1, None, 2.0),
        "without ÷ √d_k": do.unscaled("cross", 1),
        "no positions": do.no_positions("decoder"),
        "drop a sub-layer": do.drop_sublayer("decoder", 1, "self_attention"),
        "drop a LayerNorm": do.drop_norm("decoder", 1, "feed_forward"),
        "patch embeddings": do.patch(do.embeddings("encoder"), run, [1]),
        "patch a stream": do.patch(do.stream("decoder", 1, "feed_forward"), run, [1]),
        "patch a head": do.patch(do.head_output("cross", 1, 2), run, [1]),
        "patch the encoder's output": do.patch(do.encoder_output(), run, [1]),
    }
    three = sorts["ablate by zero"], sorts["hide a source token"], sorts["drop a sub-layer"]
    lists: dict[str, tuple[do.Intervention, ...]] = {
        name: (change,) for name, change in sorts.items()
    }
    for name, several in ({"none": ()} | lists | {"three at once": three}).items():
        runs = {
            name: ours(translator, text, tokens, interventions=several),
            "plain": ours(translator, text, tokens),
        }
        report(f"{tokens} tokens", interleaved(runs, repeats), name, "plain", "at most 2")
    return 0


def tree(*, repeats: Repeats = 15) -> int:
    """Time of a beam search with its tree beside the same search without; "again" is the machine's
    noise."""
    torch.set_num_threads(1)
    translator = own_model()
    text = "the cat sees the house of my friend " * 2
    for tokens in (20, 40):
        for beam_size in (4, 8):
            search = partial(translator.translate, text, beam_size=beam_size, max_length=tokens)
            runs = {"tree": partial(search, tree=True), "again": search, "no tree": search}
            seconds = interleaved(runs, repeats)
            label = f"{tokens} tokens, beam of {beam_size}"
            for name in ("tree", "again"):
                report(label, seconds, name, "no tree", "at most 1.05")
    return 0


def scoring(*, pairs: Annotated[int, "pairs of the sample"] = 200, repeats: Repeats = 5) -> int:
    """Time of log-probabilities of given translations in batches, beside one by one."""
    torch.set_num_threads(1)
    for name in ("en-de", "en-pt"):
        translator = load_translator(MODELS / name)
        parallel = sample(name)[:pairs]

        def alone(
            translator: Translator = translator, parallel: list[SentencePair] = parallel
        ) -> list[Any]:
            return [
                translator.force(pair.source, pair.target, capture=False).log_probs
                for pair in parallel
            ]

        batched = partial(forced_log_probs, translator, parallel)
        runs: dict[str, Callable[[], object]] = {"batched": batched, "one by one": alone}
        report(
            f"{name}, {pairs} pairs",
            interleaved(runs, repeats, 1),
            "batched",
            "one by one",
            "below 1",
        )
        pairs_of_rows = zip(forced_log_probs(translator, parallel), alone(), strict=True)
        furthest = max(
            abs(a - b)
            for together, singly in pairs_of_rows
            for a, b in zip(together, singly, strict=True)
        )
        print(f"{name}: the log p of a token differs by at most {furthest:.1e}")
    return 0


def layouts(*, repeats: Repeats = 40) -> int:
    """Time of one row times a matrix of `en-pt`'s decoder, stored inputs first, beside outputs
    first."""
    torch.set_num_threads(1)
    stack = load_translator(MODELS / "en-pt").model.stack("decoder")
    layers = [layer for layer in stack.modules() if isinstance(layer, Layer)]
    for name, maps in {
        "W^O": [layer.self_attention.out_proj for layer in layers],
        "W_1": [layer.feed_forward.inner for layer in layers],
        "W_2": [layer.feed_forward.outer for layer in layers],
    }.items():
        plain = [linear_map.weight.data.contiguous() for linear_map in maps]
        turned = [matrix.t().contiguous().t() for matrix in plain]
        x = torch.randn(1, plain[0].shape[1])

        @torch.inference_mode()
        def run(matrices: list[Tensor], x: Tensor = x) -> None:
            for matrix in matrices * 20:
                linear(x, matrix)

        runs = {"inputs first": partial(run, turned), "outputs first": partial(run, plain)}
        seconds = interleaved(runs, repeats)
        report(
            f"{name} {tuple(plain[0].shape)}",
            seconds,
            "inputs first",
            "outputs first",
            "the used one",
        )
    return 0


def _measures(translator: Translator, tokens: int) -> dict[str, Callable[[], object]]:
    """Every measure of a run of so many tokens a side, after the recorded pass that it is compared
    with."""
    text = text_of(translator, tokens)
    recorded = Capture(residual=True)
    run = translator.force(text, text, capture=recorded)
    model = translator.model
    step = len(run.steps) // 2
    token = run.steps[step].token_id
    against = run.steps[step].alternatives[-1].token_id
    return {
        "forced pass": partial(translator.force, text, text, capture=recorded),
        "attribution": partial(attribution, model, run, step, token, against=against),
        "carried": partial(carried, model, run, "cross", layer=1, head=0),
        "ALTI+": partial(alti, model, run),
        "score parts": partial(score_parts, model, run, ("cross", 1, 0), step, 1),
        # cells follow one another in passes of bounded size, so one shows how far the process grows
        "effect, one cell": lambda: Effects(translator, run).of(
            [(Cut(AttentionKind.CROSS, (1,)),)]
        ),
        "effect, one row": partial(
            effect, translator, run, "cross", layer=1, head=0, way="hidden", rows=[step]
        ),
        "effect, encoder row": partial(
            effect,
            translator,
            run,
            "encoder",
            layer=1,
            head=0,
            way="hidden",
            step=step,
            rows=[step],
        ),
    }


def measures(*, model: Model = "en-pt", repeats: Repeats = 5) -> int:
    """Time of each measure beside the weight, as a ratio to a recorded forced pass."""
    torch.set_num_threads(1)
    translator = load_translator(MODELS / model)
    for tokens in (13, 32, 64):
        runs = _measures(translator, tokens)
        seconds = interleaved(runs, repeats, 1)
        for name in list(runs)[1:]:
            report(f"{tokens} tokens", seconds, name, "forced pass", "below 2 s")
    return 0


def growth(*, model: Model = "en-pt", tokens: Tokens = 1000) -> int:
    """MB by which each measure lets the process grow, each in a process of its own, beside a forced
    pass."""
    torch.set_num_threads(1)
    reference = 0.0
    result = Path(tempfile.gettempdir()) / f"growth-{os.getpid()}"
    for name in (
        "forced pass",
        "carried",
        "attribution",
        "score parts",
        "effect, one cell",
        "ALTI+",
    ):
        if (pid := os.fork()) == 0:
            run = _measures(load_translator(MODELS / model), tokens)[name]
            Path("/proc/self/clear_refs").write_text("5")  # forgets the peak so far
            before = memory("VmRSS")
            run()
            result.write_text(str(memory("VmHWM") - before))
            os._exit(0)
        os.waitpid(pid, 0)
        grown = float(result.read_text())
        reference = reference or grown
        print(
            (
                f"{tokens} tokens, {name:18} {grown:8.0f} MB at the peak, ratio "
                f"{grown / reference:5.2f}"
            ),
            flush=True,
        )
    result.unlink()
    return 0


def memory(field: str, pid: int | str = "self") -> float:
    """A size of a process in MB, as Linux tells it: `VmRSS` holds now, `VmHWM` held at most."""
    status = Path(f"/proc/{pid}/status").read_text()
    line = re.search(rf"{field}:\s+(\d+)", status)
    assert line is not None, status
    return int(line[1]) * 1024 / 1e6


def left_out() -> int:
    """How many whole and how many cut translations are named as leaving out the end, of 30 of each
    pair.

    Whole ones are translated sentence by sentence: 10 single sentences of the sample, 20 texts of
    two to six. Cut ones are the same with the first half of the words of their translation.
    """
    for name in ("en-pt", "en-de"):
        translator = load_translator(MODELS / name)
        named = [0, 0]
        sources = [pair.source for pair in sample(name)]
        random.Random(54).shuffle(sources)
        long = iter(text for text in sources if len(text.split()) >= 6)
        for i in range(TEXTS):
            text = " ".join(next(long) for _ in range((1, 2, 3, 4, 1, 6)[i % 6]))
            complete = translator.translate_text(text, capture=False).text
            half = " ".join(complete.split()[: len(complete.split()) // 2])
            for j, output in enumerate((complete, half)):
                named[j] += LEFT_OUT in translator.force(text, output).notes
        print(
            f"{name}: {named[1]} of {TEXTS} cut and {named[0]} of {TEXTS} whole translations are "
            "named"
        )
    return 0
