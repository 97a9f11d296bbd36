"""Numbers for Prometheus at an address of their own, for whoever runs a hosted instance.

``TRANSFORMER_HOSTED_METRICS=PORT`` or ``ADDRESS:PORT`` opens it with the first run of a page; never a text,
an address or a name of a visitor stands there.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

import streamlit as st
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    start_http_server,
)
from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.registry import Collector

from ui.address import session
from ui.server import catalogue, models, stores
from ui.server.background.run import turns

_SECONDS = (0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)


class _Stores(Collector):
    """What the stores hold: those of a page exist from its first run on."""

    def collect(self) -> Iterator[GaugeMetricFamily]:
        values, most, sizes = (
            GaugeMetricFamily(f"explorer_store_{name}", told, labels=["store"])
            for name, told in (
                ("values", "Values that a store keeps."),
                ("most", "Most values that it keeps."),
                ("bytes", "Bytes of a store, where they are bounded."),
            )
        )
        for name, store in stores.every().items():
            values.add_metric([name], len(store))
            most.add_metric([name], stores.most(name))
            sizes.add_metric([name], store.bytes())
        yield from (values, most, sizes)


class Metrics:
    """The numbers of this process."""

    def __init__(self) -> None:
        own = self.registry = CollectorRegistry()
        ProcessCollector(registry=own)  # memory, processor time and open files, where /proc has them
        self._pages = Counter("explorer_page_runs", "Runs of a page.", ["page"], registry=own)
        self._refused = Counter("explorer_refused", "Requests over a bound.", ["reason"], registry=own)
        self._made = Histogram(
            *("explorer_translation_seconds", "New translations.", ["model"]), buckets=_SECONDS, registry=own
        )
        self.sessions = Gauge("explorer_sessions", "Visitors with an open page.", registry=own)
        line, queue = turns(), Gauge("explorer_work", "Long computations.", ["state"], registry=own)
        queue.labels("running").set_function(lambda: line.count()[0])
        queue.labels("queued").set_function(lambda: line.count()[1])
        Gauge("explorer_models", "Models in memory.", registry=own).set_function(models.residents())
        own.register(_Stores())

    def hear(self, event: str, **values: object) -> None:
        """Counts an event of the log."""
        match event, values:
            case "page", {"page": page}:
                self._pages.labels(page).inc()
                _present(session.visitor(), self.sessions)
            case "refused", {"why": reason}:
                self._refused.labels(reason).inc()
            case "translated", {"model": str(name), "ms": int(took)}:
                bundled = (catalogue.BUNDLED / name).is_dir()  # visitors may have named the others
                self._made.labels(name if bundled else "other").observe(took / 1000)


@st.cache_resource(scope="session", on_release=lambda leave: leave(), show_spinner=False)
def _present(visitor: str, _sessions: Gauge) -> Callable[[], None]:
    _sessions.inc()
    return _sessions.dec


@st.cache_resource(show_spinner=False)
def opened(place: str) -> Metrics:
    """The numbers, shown at a port of this machine or at an address and port; if that fails, it says why."""
    address, _, port = place.rpartition(":")
    found = Metrics()
    try:
        start_http_server(int(port), address.strip("[]") or "127.0.0.1", found.registry)
    except (OSError, OverflowError, ValueError) as error:
        print(
            f"TRANSFORMER_HOSTED_METRICS={place}: the metrics are not shown: {error}.",
            file=sys.stderr,
            flush=True,
        )
    return found
