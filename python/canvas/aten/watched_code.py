"""What the code of a model calls while it is exported that a graph does not hold: PyTorch loses
it, or fails in words that name nothing of the model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import Generator, Tensor
from torch.overrides import TorchFunctionMode

from ..errors import CanvasError

SET_DATA = Tensor.data.__set__
OF_SIZES = ("as_strided_", "resize_", "resize_as_", "squeeze_", "swapaxes_", "swapdims_",
            "t_", "transpose_", "unsqueeze_")  # fmt: skip


DATA = (
    "its code uses .data or .set_() of a tensor, which a graph does not hold: read .detach(), and "
    "write to the tensor itself, as .copy_() does"
)
# Words of errors of PyTorch.
OF_DATA = ("fake tensor in the exported program constant", "set_ on a graph input",
           "in aten.set_")  # fmt: skip


class WatchedCode(TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self._resized = ""  # what changed the sizes of a tensor last

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        named = kwargs or {}
        name = getattr(function, "__name__", "")
        if function == SET_DATA:
            raise CanvasError(f"PyTorch cannot export the model: {DATA}")
        if isinstance(named.get("generator"), Generator):
            raise CanvasError(
                f"PyTorch cannot export the model: its code gives '{name}' a torch.Generator, "
                "which a graph does not hold: draw with PyTorch's own, after torch.manual_seed"
            )
        if name in OF_SIZES:
            self._resized = name
        return function(*args, **named)

    def reason(self, error: Exception) -> str:
        """Why an export failed with this error, if what was called shows it; else ""."""
        if any(words in str(error) for words in OF_DATA):
            return DATA
        if "expected compiled_fn to be GraphModule" in str(error):
            return (
                "its code changes a tensor in place that shares memory with another one of the "
                "model, as tied weights do"
            )
        if self._resized and isinstance(error, (AssertionError, IndexError)):
            return (
                f"its code calls '{self._resized}', which changes the sizes of a tensor in place: "
                "take a new tensor, as .reshape() gives"
            )
        return ""
