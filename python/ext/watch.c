/* See watch.h. Tensors are asked by their attributes: the core knows nothing of PyTorch. */
#include "watch.h"

#include "watch_sums.h"

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

PyObject *watch_states(PyObject *module, PyObject *tensors) {
  (void)module;
  if (!PyList_Check(tensors)) {
    PyErr_SetString(PyExc_TypeError, "expected a list");
    return NULL;
  }
  Py_ssize_t size = (Py_ssize_t)(FACTS * sizeof(uint64_t)) * PyList_Size(tensors);
  PyObject *out = PyBytes_FromStringAndSize(NULL, size);
  if (!out || tensor_states(tensors, (uint64_t *)(void *)PyBytes_AsString(out))) return out;
  Py_DECREF(out);
  return NULL;
}

/* ---- bytes -------------------------------------------------------------------------------------- */

struct blocks {
  const struct watch_block *at;
  Py_ssize_t count;
};

static bool read_blocks(PyObject *bytes, struct blocks *out) {
  *out = (struct blocks){0};
  if (!PyBytes_Check(bytes)) {
    PyErr_SetString(PyExc_TypeError, "expected bytes");
    return false;
  }
  out->at = (const struct watch_block *)(const void *)PyBytes_AsString(bytes);
  out->count = PyBytes_Size(bytes) / (Py_ssize_t)sizeof *out->at;
  return true;
}

static uint64_t block_sum(const struct watch_block *b) {
  return watch_sum((const void *)(uintptr_t)b->address, (size_t)b->bytes);
}

PyObject *watch_blocks(PyObject *module, PyObject *ranges) {
  (void)module;
  if (!PyBytes_Check(ranges)) {
    PyErr_SetString(PyExc_TypeError, "expected bytes");
    return NULL;
  }
  const uint64_t *range = (const uint64_t *)(const void *)PyBytes_AsString(ranges);
  Py_ssize_t ends = PyBytes_Size(ranges) / (Py_ssize_t)sizeof *range, count = 0;
  for (Py_ssize_t i = 1; i < ends; i += 2)
    count += (Py_ssize_t)((range[i] + WATCH_BLOCK - 1) / WATCH_BLOCK);
  PyObject *out = PyBytes_FromStringAndSize(NULL, count * (Py_ssize_t)sizeof(struct watch_block));
  if (!out) return NULL;
  struct watch_block *b = (struct watch_block *)(void *)PyBytes_AsString(out);
  for (Py_ssize_t i = 1; i < ends; i += 2)
    for (uint64_t done = 0; done < range[i]; done += WATCH_BLOCK, b++) {
      uint64_t rest = range[i] - done;
      *b = (struct watch_block){range[i - 1] + done, rest < WATCH_BLOCK ? rest : WATCH_BLOCK, 0};
      b->sum = block_sum(b);
    }
  return out;
}

/* Of `window` bytes of blocks from the turn on, at least one; moves the turn. */
static bool turn_same(const struct blocks *b, Py_ssize_t *turn, Py_ssize_t window) {
  Py_ssize_t at = *turn < b->count ? *turn : 0;
  for (Py_ssize_t i = 0; i < b->count && window > 0; i++) {
    if (block_sum(&b->at[at]) != b->at[at].sum) return false;
    window -= (Py_ssize_t)b->at[at].bytes;
    at = at + 1 < b->count ? at + 1 : 0;
  }
  *turn = at;
  return true;
}

PyObject *watch_same(PyObject *module, PyObject *args) {
  PyObject *tensors, *states, *fixed, *turning;
  Py_ssize_t turn, window;
  struct blocks always, others;
  if (!PyArg_ParseTuple(args, "OOOOnn", &tensors, &states, &fixed, &turning, &turn, &window))
    return NULL;
  if (!PyBytes_Check(states) || !read_blocks(fixed, &always) || !read_blocks(turning, &others)) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "expected bytes");
    return NULL;
  }
  PyObject *now = watch_states(module, tensors);
  if (!now) return NULL;
  /* Memory is read only where it still belongs to the tensors. */
  bool same = PyBytes_Size(now) == PyBytes_Size(states) &&
              !memcmp(PyBytes_AsString(now), PyBytes_AsString(states), (size_t)PyBytes_Size(now));
  Py_DECREF(now);
  for (Py_ssize_t i = 0; same && i < always.count; i++)
    same = block_sum(&always.at[i]) == always.at[i].sum;
  same = same && turn_same(&others, &turn, window);
  return PyLong_FromSsize_t(same ? turn : -1);
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
