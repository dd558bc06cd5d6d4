/* What a compiled network looks at before every call: whether a model is what it was. */
#ifndef CANVAS_WATCH_H
#define CANVAS_WATCH_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* (tensors: list, direct: bytes) -> what they are now: objects, memory, versions and layouts. `direct` says how PyTorch
 * is asked without Python in between, as struct direct in tensors.h; empty: by attributes. */
PyObject *watch_states(PyObject *module, PyObject *args);

/* (ranges: bytes of pairs of uint64: an address and a number of bytes) -> that memory in blocks, each with
 * the sum of what it holds now. */
PyObject *watch_blocks(PyObject *module, PyObject *ranges);

/* (tensors: list, direct, states, always, turning: blocks, turn, window) -> -1 where tensors are no longer in
 * these states or a block that is looked at holds something else: each of `always`, and of `turning` as many
 * as hold `window` bytes, from the turn on; else the next turn. */
PyObject *watch_same(PyObject *module, PyObject *args);

/* (tables: list of dict, values: list) -> whether the values of the tables, one after another, are these. */
PyObject *watch_values(PyObject *module, PyObject *args);

/* (tables: list of dict, key, value) -> whether each of them has this value, the object, for the key. */
PyObject *watch_key(PyObject *module, PyObject *args);

#endif
