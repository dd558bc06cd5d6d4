/* The call of a compiled network: whether its inputs lie as those of the last one, and its code run on them. */
#ifndef CANVAS_CALL_H
#define CANVAS_CALL_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* (inputs: list or tuple, direct: bytes) -> how they lie: types, sizes and strides. Empty where there are others
 * than dense tensors on the CPU that may be asked directly, as struct direct in tensors.h. */
PyObject *call_layouts(PyObject *module, PyObject *const *args, Py_ssize_t count);

/* (inputs, direct, layouts) -> whether inputs lie so; never where `layouts` is empty. */
PyObject *call_same_layouts(PyObject *module, PyObject *const *args, Py_ssize_t count);

/* (function, weights, packed, arena: addresses, inputs, outputs, direct) -> what the function answers that runs a
 * network (docs/deploy.md), 0: done. The interpreter lock is free meanwhile. */
PyObject *call_run(PyObject *module, PyObject *const *args, Py_ssize_t count);

#endif
