"""The app: address, server, controls, shell, maps and sections of pages around the linked view."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
"""One computing thread for each visitor, set before torch is imported. With two threads on two
cores, the time from Enter to the painted page is 1.4 times as long (``python -m benchmarks app``):
threads wait for each other and for the browser."""
