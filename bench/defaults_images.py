"""Convolutions of 16 images, which come from memory: with few products of an element, as those
that make fewer channels of many, groups of them and windows of one channel each, and with many.
"""

from __future__ import annotations

from defaults_cases import Case, conv
from defaults_long import product


def many_images() -> list[Case]:
    return [
        conv("1x1 144->24@56 b16", 144, 24, 56, 1, batch=16),
        conv("1x1 96->24@56 b16", 96, 24, 56, 1, batch=16),
        conv("1x1 32->16@112 b16", 32, 16, 112, 1, batch=16),
        conv("1x1 192->32@28 b16", 192, 32, 28, 1, batch=16),
        conv("1x1 512->128@28 b16", 512, 128, 28, 1, batch=16),
        conv("1x1 256->64@56 b16", 256, 64, 56, 1, batch=16),
        conv("1x1 128->128@56 b16", 128, 128, 56, 1, batch=16),
        conv("1x1 64->64@56 b16", 64, 64, 56, 1, batch=16),
        conv("1x1 64->256@56 b16", 64, 256, 56, 1, batch=16),
        conv("1x1 24->144@56 b16", 24, 144, 56, 1, batch=16),
        conv("1x1 64->128 s2@56 b16", 64, 128, 56, 1, 2, batch=16),
        conv("3x3 64@56 b16", 64, 64, 56, batch=16),
        conv("grouped 4 64@56 b16", 64, 64, 56, groups=4, batch=16),
        conv("grouped 32 128@56 b16", 128, 128, 56, groups=32, batch=16),
        conv("depth-wise 144@56 b16", 144, 144, 56, groups=144, batch=16),
        product(50176, 24, 144),
        product(12544, 64, 512),
    ]
