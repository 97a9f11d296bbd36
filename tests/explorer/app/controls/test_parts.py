"""Parts of a page: what one refuses is said in it, and the rest of the page goes on."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest


def page(error: str) -> AppTest:
    """A page with a part that raises."""

    def script(error: str) -> None:
        import streamlit as st

        from explorer.app.controls.parts import part

        @part
        def refuses() -> None:
            import torch

            st.write("before")
            if error == "OutOfMemoryError":
                raise torch.OutOfMemoryError
            raise {"ValueError": ValueError, "OSError": OSError, "TypeError": TypeError}[error](
                "2 * 3 is a _sum_"
            )

        refuses()
        part(st.write, run_every=60)("after")

    return AppTest.from_function(script, kwargs={"error": error}).run()


@pytest.mark.parametrize("error", ["ValueError", "OSError"])
def test_what_a_part_refuses_is_said_in_it(error):
    at = page(error)
    assert [each.value for each in at.error] == ["2 \\* 3 is a \\_sum\\_"]
    assert [each.value for each in at.markdown] == ["before", "after"]
    assert not at.exception


def test_a_fault_of_the_program_stays_one():
    assert page("TypeError").exception


def test_a_gpu_without_memory_left_is_one_sentence_and_models_go_to_the_cpu(monkeypatch: pytest.MonkeyPatch):
    left: list[None] = []
    monkeypatch.setattr("explorer.app.server.models.leave_gpu", lambda: left.append(None))
    at = page("OutOfMemoryError")
    said = "The GPU has no memory left, so models compute on the CPU from now on: ask again."
    assert [each.value for each in at.info] == [said]
    assert not at.exception
    assert left == [None]
