"""Whole networks as native code: canvas.compile, and the backend of torch.compile.

A module is exported by PyTorch, its graph cut where an operator is not known (cut_graph), each
part written as a network's text (canvas.aten) and compiled by the core (docs/networks.md).
"""
