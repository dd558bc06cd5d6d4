/* What a compiled network looks at before every call: whether a model is what it was. */
#ifndef CANVAS_WATCH_H
#define CANVAS_WATCH_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* (tensors: list, places: bytes of pairs of uint64: an address and a number of bytes) -> bytes, equal as
 * long as the tensors are the same objects, of the same memory and version, with the same bytes there. */
PyObject *watch_states(PyObject *module, PyObject *args);

/* (tables: list of dict, values: list) -> whether the values of the tables, one after another, are these. */
PyObject *watch_values(PyObject *module, PyObject *args);

/* (tables: list of dict, key, value) -> whether each of them has this value, the object, for the key. */
PyObject *watch_key(PyObject *module, PyObject *args);

#endif
