"""A figure that shows and does not tell: its colours, bars and axes without numbers and hover texts."""

import re
from typing import Any

NUMBER = re.compile(r"\d[.,]\d|\d\s?%")
"""A measured number in a text; whole numbers are places."""
_WHOLE = re.compile(r"[+−-]?\d+")
_ENDS = re.compile(r": Σ = .*")


def quiet(spec: dict[str, Any]) -> dict[str, Any]:
    """The figure without written numbers; clicks on its marks still count."""
    layout = dict(spec["layout"])
    if "annotations" in layout:
        layout["annotations"] = [
            each | {"text": _without(each.get("text"))} for each in layout["annotations"]
        ]
    if "title" in layout:
        layout["title"] = layout["title"] | {"text": _ENDS.sub("", layout["title"].get("text") or "")}
    frames = [
        frame | {"layout": {"title": {"text": _ENDS.sub("", frame["layout"]["title"]["text"])}}}
        if "title" in frame.get("layout", {})
        else frame
        for frame in spec.get("frames") or ()
    ]
    return {**spec, "data": [_trace(each) for each in spec["data"]], "layout": layout, "frames": frames}


def _trace(trace: dict[str, Any]) -> dict[str, Any]:
    left = {name: each for name, each in trace.items() if name not in ("hovertemplate", "hovertext", "text")}
    hover = {} if left.get("hoverinfo") == "skip" else {"hoverinfo": "none"}
    written = {"text": _without(trace["text"])} if trace.get("text") is not None else {}
    return left | written | hover


def _without(text: Any) -> Any:
    if isinstance(text, str):
        return "" if NUMBER.search(text) or _WHOLE.fullmatch(text) else text
    return text if text is None else [_without(each) for each in text]
