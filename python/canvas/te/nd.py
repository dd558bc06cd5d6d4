"""Arrays as TVM's programs make them: ``nd.array(values, dev)``, which are NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import CanvasError


class NDArray(np.ndarray[Any, Any]):
    """A NumPy array with TVM's words for getting at it."""

    def numpy(self) -> np.ndarray[Any, Any]:
        return np.array(self, copy=True, subok=False)

    def asnumpy(self) -> np.ndarray[Any, Any]:
        return self.numpy()

    def copyfrom(self, source: Any) -> NDArray:
        self[...] = np.asarray(source)
        return self

    def copyto(self, target: Any) -> Any:
        target[...] = self
        return target


def array(values: Any, device: Any = None) -> NDArray:
    """A copy, contiguous in C order.  Raises CanvasError for masked arrays: code reads all."""
    if isinstance(values, np.ma.MaskedArray):
        raise CanvasError(
            "a masked array has elements that do not count, give it through .filled()"
        )
    return np.array(values, order="C", copy=True).view(NDArray)


def empty(shape: Any, dtype: Any = "float32", device: Any = None) -> NDArray:
    return np.empty(shape, dtype).view(NDArray)
