"""Kernels in networks of PyTorch: a layer is replaced by a kernel's module, checked and timed.

    pack -> placeholder -> convert -> network     a kernel's text, a layer, a model, a candidate

Nothing is imported here, so that pack and controls are there without torch.
"""
