"""Encoders of images with a dense ReLU head, and the ways to train them.

Losses that make a network doubt what it does not know (outlier exposure, ACET) or that calibrate it
while it learns (focal, dual focal), a supervised contrastive loss for an encoder of its own (Dey et
al., earlier version, section 5.2), and ODIN's score.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kdcal_core.data import FloatArray, IntArray

FOCUS = 3.0  # exponent of the focal losses
OUTSIDE = 0.5  # weight of the outliers' loss
REACH, STEPS = 0.3, 5  # of the adversary, in intensities, and its steps
ODIN_HEAT, ODIN_STEP = 1000.0, 0.0014
HEAT = 0.1  # temperature of the contrastive loss
SHIFT = 4  # most pixels by which an image is moved
_BLOCK = 500  # images whose slopes are held at once

Loss = Callable[[Any, Any, Any], Any]
"""(module, images, labels) -> loss of the batch."""


@dataclass(frozen=True)
class Training:
    """How a network learns: Adam on batches.

    Attributes
    ----------
    epochs, batch : int
    rate : float
    mirrored : bool or None
        Whether images are moved at random and also mirrored; None for neither.
    """

    epochs: int
    batch: int
    rate: float
    mirrored: bool | None = None


def small_convolutions(shape: tuple[int, int, int]) -> tuple[Any, int]:
    """Two convolutions, for images of one channel and 14 x 14 pixels, and their 256 outputs."""
    from torch import nn

    encoder = nn.Sequential(
        nn.Conv2d(shape[0], 8, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(8, 16, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Flatten(),
    )
    return encoder, 16 * (-(-shape[1] // 4)) * (-(-shape[2] // 4))


def residual(
    shape: tuple[int, int, int],
    *,
    widths: tuple[int, ...] = (64, 128, 256, 512),
    blocks: int = 2,
    latent: int = 256,
) -> tuple[Any, int]:
    """A residual network for small images whose outputs have length 1 (18 layers by default).

    Each width has so many blocks of two convolutions, and all but the first width halve the image.
    """
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self, before: int, after: int, stride: int) -> None:
            super().__init__()
            self.body = nn.Sequential(
                nn.Conv2d(before, after, 3, stride, 1, bias=False),
                nn.BatchNorm2d(after),
                nn.ReLU(),
                nn.Conv2d(after, after, 3, 1, 1, bias=False),
                nn.BatchNorm2d(after),
            )
            same = before == after and stride == 1
            self.skip = (
                nn.Identity()
                if same
                else nn.Sequential(
                    nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after)
                )
            )

        def forward(self, images: Any) -> Any:
            return torch.relu(self.body(images) + self.skip(images))

    class Unit(nn.Module):
        def forward(self, rows: Any) -> Any:
            return nn.functional.normalize(rows, dim=1)

    layers: list[Any] = [
        nn.Conv2d(shape[0], widths[0], 3, 1, 1, bias=False),
        nn.BatchNorm2d(widths[0]),
        nn.ReLU(),
    ]
    before = widths[0]
    for number, width in enumerate(widths):
        for at in range(blocks):
            layers.append(Block(before, width, 2 if number and not at else 1))
            before = width
    end = (nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, latent), Unit())
    return nn.Sequential(*layers, *end), latent


def dense_head(width: int, hidden: tuple[int, ...], n_classes: int) -> Any:
    """Dense ReLU layers and one output a class."""
    from torch import nn

    layers: list[Any] = []
    for units in hidden:
        layers += [nn.Linear(width, units), nn.ReLU()]
        width = units
    return nn.Sequential(*layers, nn.Linear(width, n_classes))


def learn(
    module: Any,
    images: Any,
    y: IntArray,
    training: Training,
    loss: Loss,
    *,
    frozen: Any = None,
) -> Any:
    """Train a module on float32 images (n, channels, side, side) and return it to be used.

    The part that is ``frozen`` keeps its weights and the statistics of its batch norm.
    """
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    module.to(device).train()
    if frozen is not None:
        frozen.eval().requires_grad_(False)
    labels = torch.tensor(y)
    learning = [one for one in module.parameters() if one.requires_grad]
    optimiser = torch.optim.Adam(learning, lr=training.rate)
    for _ in range(training.epochs):
        for batch in torch.randperm(len(labels)).split(training.batch):
            rows = torch.tensor(images[batch.numpy()])
            if training.mirrored is not None:
                rows = moved(rows, mirrored=training.mirrored)
            optimiser.zero_grad()
            loss(module, rows.to(device), labels[batch].to(device)).backward()
            optimiser.step()
    return module.cpu().eval()


def moved(images: Any, *, mirrored: bool) -> Any:
    """Each image moved by up to four pixels, black where it was not, and mirrored half the time."""
    import torch

    n, _, height, width = images.shape
    padded = torch.nn.functional.pad(images, (SHIFT,) * 4)
    down, right = torch.randint(0, 2 * SHIFT + 1, (2, n))
    rows = (down[:, None] + torch.arange(height))[:, None, :, None]
    columns = (right[:, None] + torch.arange(width))[:, None, None, :]
    channels = torch.arange(images.shape[1])[None, :, None, None]
    found = padded[torch.arange(n)[:, None, None, None], channels, rows, columns]
    if mirrored:
        turned = torch.rand(n) < 0.5
        found[turned] = found[turned].flip(3)
    return found


def contrastive(mirrored: bool) -> Loss:
    """The supervised contrastive loss of an encoder, on two further views of every image.

    Images of one class are drawn together and all others apart: the mean over an image's fellows of
    -log(exp(z z' / t) / the sum over all other images).
    """

    def loss(encoder: Any, images: Any, labels: Any) -> Any:
        import torch

        views = torch.cat([moved(images.cpu(), mirrored=mirrored) for _ in range(2)])
        z, y = encoder(views.to(images.device)), labels.repeat(2)
        own = torch.eye(len(y), dtype=torch.bool, device=y.device)
        close = (z @ z.T / HEAT).masked_fill(own, -torch.inf)
        log_share = torch.log_softmax(close, dim=1).masked_fill(own, 0.0)
        fellows = (y[:, None] == y[None]) & ~own
        return -((log_share * fellows).sum(dim=1) / fellows.sum(dim=1)).mean()

    return loss


def usual(module: Any, rows: Any, labels: Any) -> Any:
    """Cross-entropy."""
    import torch

    return torch.nn.functional.cross_entropy(module(rows), labels)


def focal(module: Any, rows: Any, labels: Any) -> Any:
    """Cross-entropy times (1 - p)^3: rows that are already certain count little."""
    log_p = _log_of(module(rows), labels)
    return (-((1.0 - log_p.exp()) ** FOCUS) * log_p).mean()


def dual_focal(module: Any, rows: Any, labels: Any) -> Any:
    """The same with (1 - p + q)^3, q the next smaller probability."""
    import torch

    logits = module(rows)
    p = torch.softmax(logits, dim=1)
    own = p.gather(1, labels[:, None])
    below = torch.where(p < own, p, torch.zeros_like(p)).max(dim=1).values
    log_p = _log_of(logits, labels)
    return (-((1.0 - log_p.exp() + below) ** FOCUS) * log_p).mean()


def outlier_exposure(module: Any, rows: Any, labels: Any) -> Any:
    """Cross-entropy, and on outliers the cross-entropy to equal probabilities.

    The outliers are the images of the batch with their pixels shuffled, so none of the foreign
    images that are judged is seen.
    """
    import torch

    outside = torch.log_softmax(module(shuffled(rows)), dim=1)
    return usual(module, rows, labels) - OUTSIDE * outside.mean()


def acet(module: Any, rows: Any, labels: Any) -> Any:
    """Cross-entropy, and the largest log probability on noise that an adversary has sharpened."""
    import torch

    start = shuffled(rows)
    found = start.clone()
    for _ in range(STEPS):
        found.requires_grad_(True)
        surest = torch.log_softmax(module(found), dim=1).max(dim=1).values.sum()
        (slope,) = torch.autograd.grad(surest, found)
        further = found.detach() + 2.0 * REACH / STEPS * slope.sign()
        found = torch.clamp(torch.clamp(further, start - REACH, start + REACH), 0.0, 1.0)
    sharpened = torch.log_softmax(module(found.detach()), dim=1).max(dim=1).values
    return usual(module, rows, labels) + sharpened.mean()


LOSSES: dict[str, Loss] = {
    "focal": focal,
    "dual_focal": dual_focal,
    "outlier_exposure": outlier_exposure,
    "acet": acet,
}


def shuffled(rows: Any) -> Any:
    """The pixels of each image in random order."""
    import torch

    flat = rows.reshape(len(rows), -1)
    return flat.gather(1, torch.rand_like(flat).argsort(dim=1)).reshape(rows.shape)


def odin(module: Any, images: Any) -> FloatArray:
    """The largest probability at a high temperature, after a small step that increases it."""
    import torch

    found = []
    for start in range(0, len(images), _BLOCK):
        given = torch.tensor(images[start : start + _BLOCK], requires_grad=True)
        surest = torch.log_softmax(module(given) / ODIN_HEAT, dim=1).max(dim=1).values.sum()
        (slope,) = torch.autograd.grad(surest, given)
        with torch.no_grad():
            further = module(given + ODIN_STEP * slope.sign()).double() / ODIN_HEAT
            found.append(torch.softmax(further, dim=1).max(dim=1).values.numpy())
    return np.concatenate(found)


def _log_of(logits: Any, labels: Any) -> Any:
    import torch

    return torch.log_softmax(logits, dim=1).gather(1, labels[:, None])[:, 0]
