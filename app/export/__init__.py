"""What the page Choose and export shows."""

from __future__ import annotations

from app.shared.navigation import Place

PLACE = Place(
    title="Choose and export",
    icon=":material/output:",
    purpose="One repair, what it gains, and its file",
    will_show=(
        "Here you will see what a calibrator gains over the model as it is, its reliability "
        "before and after and how it changes a score. You can save it: as one file that "
        "scores new rows anywhere, and as part of the model's ONNX file if ONNX can express "
        "it. For a regression, you choose a repair of its predictive distributions instead."
    ),
    tasks=("classification", "regression"),
)
