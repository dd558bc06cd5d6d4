/* See watch.h. Tensors are asked by their attributes: the core knows nothing of PyTorch. */
#include "watch.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { FACTS = 3 }; /* of a tensor: the object, its memory, its version */

struct names {
  PyObject *version, *data_ptr;
};

static bool number(PyObject *found, uint64_t *out) {
  if (!found) return false;
  *out = PyLong_AsUnsignedLongLong(found);
  Py_DECREF(found);
  return !PyErr_Occurred();
}

static bool tensor_state(PyObject *tensor, const struct names *names, uint64_t *out) {
  out[0] = (uint64_t)(uintptr_t)tensor;
  return number(PyObject_CallMethodObjArgs(tensor, names->data_ptr, NULL), &out[1]) &&
         number(PyObject_GetAttr(tensor, names->version), &out[2]);
}

static bool tensor_states(PyObject *tensors, uint64_t *out) {
  struct names names = {PyUnicode_InternFromString("_version"),
                        PyUnicode_InternFromString("data_ptr")};
  bool ok = names.version && names.data_ptr;
  for (Py_ssize_t i = 0; ok && i < PyList_Size(tensors); i++)
    ok = tensor_state(PyList_GetItem(tensors, i), &names, out + FACTS * i);
  Py_XDECREF(names.version);
  Py_XDECREF(names.data_ptr);
  return ok;
}

static size_t bytes_of(const uint64_t *places, Py_ssize_t count) {
  size_t sum = 0;
  for (Py_ssize_t i = 0; i < count; i++) sum += (size_t)places[2 * i + 1];
  return sum;
}

static void read_places(const uint64_t *places, Py_ssize_t count, char *out) {
  for (Py_ssize_t i = 0; i < count; i++) {
    if (places[2 * i + 1])
      memcpy(out, (const void *)(uintptr_t)places[2 * i], (size_t)places[2 * i + 1]);
    out += places[2 * i + 1];
  }
}

PyObject *watch_states(PyObject *module, PyObject *args) {
  PyObject *tensors, *places;
  (void)module;
  if (!PyArg_ParseTuple(args, "OO", &tensors, &places)) return NULL;
  if (!PyList_Check(tensors) || !PyBytes_Check(places)) {
    PyErr_SetString(PyExc_TypeError, "expected a list and bytes");
    return NULL;
  }
  const uint64_t *pairs = (const uint64_t *)(const void *)PyBytes_AsString(places);
  Py_ssize_t count = PyBytes_Size(places) / (Py_ssize_t)(2 * sizeof *pairs);
  size_t head = FACTS * sizeof(uint64_t) * (size_t)PyList_Size(tensors);
  size_t size = head + bytes_of(pairs, count);
  PyObject *out = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
  if (!out) return NULL;
  char *bytes = PyBytes_AsString(out);
  if (tensor_states(tensors, (uint64_t *)(void *)bytes)) {
    read_places(pairs, count, bytes + head);
    return out;
  }
  Py_DECREF(out);
  return NULL;
}

/* The value of the next element of `values` for each value of the table; false where they differ. */
static bool table_holds(PyObject *table, PyObject *values, Py_ssize_t *at) {
  PyObject *key, *value;
  Py_ssize_t place = 0, count = PyList_Size(values);
  while (PyDict_Next(table, &place, &key, &value))
    if (*at >= count || PyList_GetItem(values, (*at)++) != value) return false;
  return true;
}

static bool is_list_of_dicts(PyObject *tables) {
  bool ok = PyList_Check(tables);
  for (Py_ssize_t i = 0; ok && i < PyList_Size(tables); i++)
    ok = PyDict_Check(PyList_GetItem(tables, i));
  if (!ok) PyErr_SetString(PyExc_TypeError, "expected a list of dict");
  return ok;
}

PyObject *watch_values(PyObject *module, PyObject *args) {
  PyObject *tables, *values;
  Py_ssize_t at = 0;
  (void)module;
  if (!PyArg_ParseTuple(args, "OO", &tables, &values) || !is_list_of_dicts(tables)) return NULL;
  if (!PyList_Check(values)) {
    PyErr_SetString(PyExc_TypeError, "expected a list");
    return NULL;
  }
  for (Py_ssize_t i = 0; i < PyList_Size(tables); i++)
    if (!table_holds(PyList_GetItem(tables, i), values, &at)) Py_RETURN_FALSE;
  return PyBool_FromLong(at == PyList_Size(values));
}

PyObject *watch_key(PyObject *module, PyObject *args) {
  PyObject *tables, *key, *value;
  (void)module;
  if (!PyArg_ParseTuple(args, "OOO", &tables, &key, &value) || !is_list_of_dicts(tables))
    return NULL;
  for (Py_ssize_t i = 0; i < PyList_Size(tables); i++)
    if (PyDict_GetItem(PyList_GetItem(tables, i), key) != value) Py_RETURN_FALSE;
  Py_RETURN_TRUE;
}
