"""MNIST digits: a small convolutional network as ONNX, with clothes and noise as foreign rows.

As in the image experiments of Dey et al., in a size that ships: an encoder of two convolutions and
a dense ReLU head, images halved to 14 x 14 pixels.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from recipes.files import split_rows, write_parquet

SIDE = 14
CHANNELS, HEAD = (8, 16), (64, 32)
EPOCHS, BATCH, RATE, SEED = 40, 64, 0.002, 0
SIZES = {"training": 3_000, "calibration": 1_500, "evaluation": 1_500}
N_CLOTHES, N_NOISE = 300, 200
CLASSES = [str(digit) for digit in range(10)]
NAMES = [f"pixel_{row}_{column}" for row in range(SIDE) for column in range(SIDE)]
# files of arrays, and the SHA-256 of the images that are read
DATA = {
    "mnist.npz": ("X_train", "741c988805d008ac6e4c904b69001ba184c24b2c540a4ef403f4c71b676cf757"),
    "fashion_mnist.npz": (
        "X_test",
        "c867c93ff95360594e8ec3287995350b824dd110b11595c0e13d5423f621867a",
    ),
}
SOURCE = (
    "MNIST, Y. LeCun and C. Cortes: 6,000 of its 60,000 training images, halved to 14 x 14 pixels "
    "by the mean of four. Foreign tables: the first 300 test images of Fashion-MNIST (Zalando "
    "Research), halved likewise, and 200 images of uniform noise."
)
LICENCE = (
    "MNIST: CC BY-SA 3.0, and so are its halved images here. Fashion-MNIST: MIT. Model and noise: "
    "made for kdcal, same terms."
)

State = dict[str, np.ndarray]


def build(folder: Path, data: Path) -> dict[str, Any]:
    images, digit = halved(read(data, "mnist.npz")), labels(data)
    parts = dict(zip(SIZES, split_rows(len(digit), tuple(SIZES.values()), seed=6), strict=True))
    known, held_out = parts["training"], parts["evaluation"]
    state = train(images[known], digit[known])
    (folder / "model.onnx").write_bytes(to_onnx(state))
    for name, rows in parts.items():
        write_parquet(folder / f"{name}.parquet", {**columns(images[rows]), "digit": digit[rows]})
    clothes = halved(read(data, "fashion_mnist.npz")[:N_CLOTHES])
    noise = np.random.RandomState(SEED).randint(0, 256, (N_NOISE, SIDE, SIDE)).astype(np.uint8)
    for name, strange in {"clothes": clothes, "noise": noise}.items():
        write_parquet(folder / f"foreign_{name}.parquet", columns(strange))
    stated = logits(state, images[held_out])
    return {
        "title": "MNIST digits, a convolutional network",
        "summary": (
            "A small convolutional network reads handwritten digits. It was trained until it knew "
            "its 3,000 images by heart. Show it shirts, shoes and noise on Out of distribution: "
            "it calls six in ten pieces of clothing a digit with more than 90% confidence."
        ),
        "task": "classification",
        "model": "model.onnx",
        "target": "digit",
        "source": SOURCE,
        "licence": LICENCE,
        "trained": (
            f"On the {len(known):,} images of the training table, which are in no other: two "
            f"convolutions (3 x 3, stride 2, {CHANNELS[0]} and {CHANNELS[1]} channels) and dense "
            f"ReLU layers of {HEAD[0]} and {HEAD[1]}, Adam, learning rate {RATE:g}, {EPOCHS} "
            f"epochs in batches of {BATCH} (PyTorch, seed {SEED})."
        ),
        "accuracy": float(np.mean(stated.argmax(axis=1) == digit[held_out])),
        "class_names": CLASSES,
    }


def read(data: Path, file: str) -> np.ndarray:
    """The images of a file, checked to be the very ones that this recipe knows."""
    name, known = DATA[file]
    with np.load(data / file, allow_pickle=False) as arrays:
        images: np.ndarray = arrays[name]
    found = hashlib.sha256(np.ascontiguousarray(images).tobytes()).hexdigest()
    if found != known:
        raise SystemExit(f"{file} holds other images than expected: SHA-256 {found}")
    return images


def labels(data: Path) -> np.ndarray:
    with np.load(data / "mnist.npz", allow_pickle=False) as arrays:
        return np.asarray(arrays["y_train"], dtype=np.uint8)


def halved(images: np.ndarray) -> np.ndarray:
    """The mean of each square of four pixels, (n, 14, 14) of whole numbers from 0 to 255."""
    squares = images.reshape(-1, SIDE, 2, SIDE, 2).astype(np.int64).sum(axis=(2, 4))
    return ((squares + 2) // 4).astype(np.uint8)


def columns(images: np.ndarray) -> dict[str, np.ndarray]:
    flat = images.reshape(len(images), -1)
    return {name: flat[:, at] for at, name in enumerate(NAMES)}


def network() -> Any:
    import torch

    first, second = CHANNELS
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, first, 3, stride=2, padding=1),
        torch.nn.ReLU(),
        torch.nn.Conv2d(first, second, 3, stride=2, padding=1),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(second * 16, HEAD[0]),
        torch.nn.ReLU(),
        torch.nn.Linear(*HEAD),
        torch.nn.ReLU(),
        torch.nn.Linear(HEAD[1], len(CLASSES)),
    )


def given(images: np.ndarray) -> Any:
    import torch

    return torch.from_numpy(images[:, None].astype(np.float32) / 255.0)


def train(images: np.ndarray, digit: np.ndarray) -> State:
    """Weights by a fixed number of steps, rounded as in the census network."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    made, wanted = network(), torch.from_numpy(digit.astype(np.int64))
    inputs = given(images)
    optimiser, loss = torch.optim.Adam(made.parameters(), lr=RATE), torch.nn.CrossEntropyLoss()
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(wanted)).split(BATCH):
            optimiser.zero_grad()
            loss(made(inputs[rows]), wanted[rows]).backward()
            optimiser.step()
    return {
        name: np.asarray(value.numpy(), dtype=np.float64).round(4)
        for name, value in made.state_dict().items()
    }


def logits(state: State, images: np.ndarray) -> np.ndarray:
    import torch

    made = network()
    made.load_state_dict({name: torch.from_numpy(value).float() for name, value in state.items()})
    with torch.no_grad():
        found: np.ndarray = made(given(images)).numpy()
    return found


def to_onnx(state: State) -> bytes:
    """A table of pixels in, probabilities out."""
    from onnx import TensorProto, checker, helper, numpy_helper

    node = helper.make_node
    weights = {
        "white": np.array(255.0, dtype=np.float32),
        "shape": np.array([-1, 1, SIDE, SIDE], dtype=np.int64),
        **{name: value.astype(np.float32) for name, value in state.items()},
    }
    nodes = [
        node("Div", ["pixels", "white"], ["light"]),
        node("Reshape", ["light", "shape"], ["value_0"]),
    ]
    for at in (0, 2):
        reads = [f"value_{at}", f"{at}.weight", f"{at}.bias"]
        size = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
        nodes.append(node("Conv", reads, [f"value_{at + 1}"], **size))
        nodes.append(node("Relu", [f"value_{at + 1}"], [f"value_{at + 2}"]))
    nodes.append(node("Flatten", ["value_4"], ["value_5"]))
    for at in (5, 7, 9):
        reads = [f"value_{at}", f"{at}.weight", f"{at}.bias"]
        nodes.append(node("Gemm", reads, [f"value_{at + 1}"], transB=1))
        last = at == 9
        kind, writes = ("Softmax", "probabilities") if last else ("Relu", f"value_{at + 2}")
        nodes.append(node(kind, [f"value_{at + 1}"], [writes], **({"axis": 1} if last else {})))
    shape_in, shape_out = ["rows", len(NAMES)], ["rows", len(CLASSES)]
    graph = helper.make_graph(
        nodes,
        "mnist_network",
        [helper.make_tensor_value_info("pixels", TensorProto.FLOAT, shape_in)],
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, shape_out)],
        initializer=[numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    opset = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=8, producer_name="kdcal")
    says = {"classes": CLASSES, "feature_names": NAMES}
    helper.set_model_props(model, {key: json.dumps(value) for key, value in says.items()})
    checker.check_model(model, full_check=True)
    content: bytes = model.SerializeToString(deterministic=True)
    return content
