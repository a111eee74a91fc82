"""Whether this processor computes a network's float32 outputs as the one of the stored figures did.

The last bits of a float32 product follow from the instructions that a processor has. Where they
are others, so are the inputs of every figure of a network, by about 1e-7, and no tolerance near
1e-12 can hold. The libraries are asked directly: a change of kdcal cannot show here.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import onnxruntime as ort

_ROWS = 64


def outputs_digest(samples: Path) -> str:
    """SHA-256 of what shipped ONNX networks say of fixed rows, and of a product of matrices."""
    rng = np.random.default_rng(0)
    square = rng.normal(size=(200, 200))
    digest = hashlib.sha256((square @ square).tobytes())
    for path in sorted(samples.glob("*/model.onnx")):
        session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
        asked = session.get_inputs()
        if len(asked) > 1 or asked[0].type != "tensor(float)":
            continue  # of words and numbers in columns
        rows = rng.uniform(size=(_ROWS, asked[0].shape[-1])).astype(np.float32)
        for said in session.run(None, {asked[0].name: rows}):
            digest.update(np.asarray(said).tobytes())
    return digest.hexdigest()
