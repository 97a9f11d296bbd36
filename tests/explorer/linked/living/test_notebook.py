from __future__ import annotations

import html
import re

from explorer import page, show
from transformer import Translator


def test_a_notebook_gets_the_page_in_a_frame(translator: Translator):
    run = translator.translate("one two", max_length=4)
    shown = show(run, place="step=2", height=500)
    frame = r'<iframe srcdoc="([^"]*)" style="([^"]*)" (.*?)>(.*)</iframe>'
    found = re.fullmatch(frame, shown._repr_html_(), re.S)
    assert found is not None
    assert html.unescape(found[1]) == shown.page == page(run, place="step=2")
    assert "height: 500px" in found[2]
    assert 'allow="fullscreen"' in found[3]
    assert "trusted" in found[4]
    assert len(repr(shown)) < 80
