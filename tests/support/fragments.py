"""What a page sends: which parts draw themselves again on a clock, and which parts lie inside
those."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from streamlit.runtime.forward_msg_queue import ForwardMsgQueue


@dataclass
class Sent:
    """The messages of a page."""

    timed: set[str] = field(default_factory=set)  # the fragments that run again by themselves
    # of every fragment, the places of what it drew
    places: dict[str, list[tuple[int, ...]]] = field(default_factory=dict)

    def take(self, message: object) -> None:
        """Takes one message of Streamlit to a browser."""
        kind = message.WhichOneof("type")  # type: ignore[attr-defined]
        if kind == "auto_rerun":
            self.timed.add(message.auto_rerun.fragment_id)  # type: ignore[attr-defined]
        elif kind == "delta" and message.delta.fragment_id:  # type: ignore[attr-defined]
            path = tuple(message.metadata.delta_path)  # type: ignore[attr-defined]
            self.places.setdefault(message.delta.fragment_id, []).append(path)  # type: ignore[attr-defined]

    @property
    def nested(self) -> set[str]:
        """The fragments that lie inside one with a clock."""
        tops = [min(self.places[each], key=len) for each in self.timed if each in self.places]
        return {
            name
            for name, places in self.places.items()
            if name not in self.timed
            and any(place[: len(top)] == top for top in tops for place in places)
        }


@contextmanager
def listening() -> Iterator[Sent]:
    """Collects what pages send."""
    sent = Sent()
    ForwardMsgQueue.on_before_enqueue_msg(sent.take)
    try:
        yield sent
    finally:
        ForwardMsgQueue.on_before_enqueue_msg(None)
