"""A graph of PyTorch as the text of a network (docs/aten.md): `export` a model, `import_graph`."""

from .exporting import decompositions, export, export_with_buffers, transforms
from .graph import Imported, import_graph, import_part, where
from .supported import constant, unsupported

__all__ = ["Imported", "constant", "decompositions", "export", "export_with_buffers",
           "import_graph", "import_part", "transforms", "unsupported", "where"]  # fmt: skip
