"""A graph of PyTorch as the text of a network (docs/aten.md): `export` a model, `import_graph`."""

from .exporting import decompositions, export, export_with_buffers, transforms
from .graph import Imported, import_graph, where
from .supported import constant, unsupported

__all__ = ["Imported", "constant", "decompositions", "export", "export_with_buffers",
           "import_graph", "transforms", "unsupported", "where"]  # fmt: skip
