"""Where tensors lie, checked without a GPU: PyTorch's fake tensors compute no numbers, and refuse to meet tensors
of another device. Only a build with CUDA has its devices; this test is run by hand in an environment of its own:

    python3 -m venv cuda && cuda/bin/pip install "torch===2.13.0" -r requirements-dev.txt
    cuda/bin/pytest -n 0 tests/transformer/runs/test_fake_cuda.py
"""

from __future__ import annotations

import pytest
import torch

pytestmark = pytest.mark.skipif(torch.version.cuda is None, reason="this build of PyTorch has no CUDA")
