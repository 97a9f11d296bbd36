"""Search settings of a published model, from ``generation_config.json`` or an older
``config.json``."""

from pathlib import Path
from typing import Any

from transformer.config import ModelConfig
from transformer.decoding import SearchRules
from transformer.families.family import GENERATION_FILE, listed_ids, one_id
from transformer.storage.files import CheckpointError, read_json
from transformer.text.kinds import Kind, number, whole

MOST_BEAMS = 64
MAX_FORBIDDEN = 10_000
MANY = 1_000_000

_NONE = "begin_suppress_tokens", "constraints", "force_words_ids", "sequence_bias", "stop_strings"
_ZERO = "diversity_penalty", "do_sample", "encoder_no_repeat_ngram_size", "penalty_alpha"
_ONE = "encoder_repetition_penalty", "guidance_scale", "num_beam_groups", "repetition_penalty"
NEUTRAL: dict[str, tuple[object, ...]] = {
    **dict.fromkeys(_NONE, (None, [], {})),
    **dict.fromkeys(_ZERO, (None, 0)),
    **dict.fromkeys(_ONE, (None, 1)),
    "exponential_decay_length_penalty": (None,),
}
"""Entries that this package does not apply, with the values that have no effect."""


def search_rules(
    directory: Path,  # the model directory
    config_values: dict[
        str, Any
    ],  # content of ``config.json``, which holds these entries in older models
    config: ModelConfig,  # the same config, converted to ours
    pad_id: int,  # id of `<pad>` in the output's vocabulary, which no search writes
) -> tuple[SearchRules, tuple[str, ...]]:
    """The search rules, and one sentence for each entry left unapplied; CheckpointError if one is
    invalid."""
    path = directory / GENERATION_FILE
    values = read_json(path) if path.exists() else config_values

    def entry(name: str, kind: Kind, default: Any) -> Any:
        value = values.get(name)
        return default if value is None else kind.check(name, value)

    try:
        beams = entry("num_beams", whole(1, MANY), 1)
        # of two entries for one length, the older counts the start token
        most = (
            entry("max_new_tokens", whole(1, MANY), None)
            or entry("max_length", whole(2, MANY), 1) - 1
        )
        fewest = entry("min_new_tokens", whole(0, MANY), entry("min_length", whole(0, MANY), 0) - 1)
        start, end = (_forced(values, f"forced_{name}_token_id", config) for name in ("bos", "eos"))
        never = () if pad_id in (start, end, config.eos_id) else ((pad_id,),)
        stop = values.get("early_stopping") or False
        if type(stop) is not bool and stop != "never":
            raise ValueError(f'early_stopping is {stop!r:.80}; it must be true, false or "never".')
        rules = SearchRules(
            beam_size=min(beams, MOST_BEAMS),
            length_penalty=float(entry("length_penalty", number(-100, 100), 1.0)),
            early_stopping=stop,
            max_length=most or None,
            forbidden=tuple(dict.fromkeys((*_forbidden(values, config), *never))),
            forced_end=end,
            forced_start=start,
            renormalize=bool(values.get("renormalize_logits")),
            min_tokens=max(0, fewest),
            no_repeat=entry("no_repeat_ngram_size", whole(0, 1_000), 0),
            end_id=config.eos_id,
            other_ends=_other_ends(values, config),
        )
    except ValueError as error:
        file = path if path.exists() else directory / "config.json"
        raise CheckpointError(f"{file} describes no usable search: {error}") from error
    start_id = config.bos_id
    neutral = NEUTRAL | {"decoder_start_token_id": (None, start_id, [start_id])}
    ignored = sorted(name for name, known in neutral.items() if values.get(name) not in known)
    notes = list[str]()
    if rules.in_words:
        notes.append(f"This model's search keeps rules of its own: {' and '.join(rules.in_words)}.")
    if beams > MOST_BEAMS:
        notes.append(f"This model's files ask for {beams:,} beams; it searches with {MOST_BEAMS}.")
    for name in ignored:
        notes.append(
            f"This model's files set {name} = {values[name]!r:.80}, which this package does not "
            "apply."
        )
    return rules, tuple(notes)


def _forbidden(values: dict[str, Any], config: ModelConfig) -> tuple[tuple[int, ...], ...]:
    """The sequences of ``bad_words_ids`` except ``</s>`` alone, and the tokens of
    ``suppress_tokens``."""
    words, tokens = (values.get(name) or [] for name in ("bad_words_ids", "suppress_tokens"))
    lists = isinstance(words, list) and isinstance(tokens, list)
    if not lists or len(words) + len(tokens) > MAX_FORBIDDEN:
        raise ValueError(
            f"bad_words_ids and suppress_tokens must be lists of at most {MAX_FORBIDDEN:,} entries."
        )
    entries = [*(word for word in words if word not in (config.eos_id, [config.eos_id])), *tokens]
    sequences = [entry if isinstance(entry, list) else [entry] for entry in entries]
    piece = whole(0, config.n_target_pieces - 1)
    if not all(sequence and all(map(piece.holds, sequence)) for sequence in sequences):
        raise ValueError(
            "bad_words_ids or suppress_tokens names pieces that the vocabulary does not have."
        )
    forbidden = tuple(dict.fromkeys(map(tuple, sequences)))
    if sum(len(sequence) == 1 for sequence in forbidden) >= config.n_target_pieces - 1:
        raise ValueError("bad_words_ids forbids every piece of the vocabulary.")
    return forbidden


def _other_ends(values: dict[str, Any], config: ModelConfig) -> tuple[int, ...]:
    """The ids that end an output besides the config's."""
    stated = values.get("eos_token_id")
    ends = [number for number in listed_ids(stated) if number != config.eos_id]
    if not all(map(whole(0, config.n_target_pieces - 1).holds, ends)):
        raise ValueError(f"eos_token_id is {stated!r:.80}, which the vocabulary does not have.")
    return tuple(dict.fromkeys(ends))


def _forced(values: dict[str, Any], name: str, config: ModelConfig) -> int | None:
    value = one_id(values.get(name))
    if value is not None and not whole(0, config.n_target_pieces - 1).holds(value):
        raise ValueError(f"{name} is {value!r:.80}, which the vocabulary does not have.")
    return value
