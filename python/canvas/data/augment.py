"""What happens to the images of a training batch on their way into the network.

    crop    every image is shifted by up to `crop` pixels along both axes; what comes in is zero
            (the mean colour where images are normalised, black where they are not)
    flip    every other image, by chance, is mirrored left to right

All images of a batch are gathered at once by index, so a batch costs one copy.  The shifts follow
from the generator alone: the same generator gives the same images on every device.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

STREAM = 0x5CA1AB1E  # keeps these draws apart from the order of the images, seeded beside them


@dataclass(frozen=True)
class Augmentation:
    """Whether images are mirrored, and by how many pixels they are shifted at most; neither by
    default.
    """

    flip: bool = False
    crop: int = 0

    def __bool__(self) -> bool:
        return self.flip or self.crop > 0

    def words(self) -> list[str]:
        """What is done, for the description of the data."""
        done = ["flipped"] * self.flip + [f"shifted by up to {self.crop} pixels"] * (self.crop > 0)
        return [f"training images are {' and '.join(done)} by chance"] if done else []

    def apply(self, images: Tensor, random: torch.Generator) -> Tensor:
        """A changed copy of `images` [N, C, H, W]; `images` itself, and nothing drawn, when there
        is nothing to do.
        """
        if not self:
            return images
        count, channels, height, width = images.shape
        top, left = (_whole(count, 2 * self.crop + 1, random) for _ in range(2))
        mirrored = _whole(count, 2, random) * self.flip
        rows = top[:, None] + torch.arange(height)
        columns = torch.arange(width).expand(count, width)
        columns = left[:, None] + torch.where(mirrored[:, None] > 0, width - 1 - columns, columns)
        device = images.device
        return F.pad(images, (self.crop,) * 4)[
            torch.arange(count, device=device)[:, None, None, None],
            torch.arange(channels, device=device)[None, :, None, None],
            rows.to(device)[:, None, :, None],
            columns.to(device)[:, None, None, :],
        ]


def generator(seed: int) -> torch.Generator:
    """The generator of a training's augmentation; `seed` is the training's, 0 to 2**63 - 1."""
    return torch.Generator().manual_seed(seed ^ STREAM)


def _whole(count: int, below: int, random: torch.Generator) -> Tensor:
    """`count` whole numbers in 0..below-1."""
    return torch.randint(below, (count,), generator=random)
