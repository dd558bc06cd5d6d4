/* See watch.h. Tensors are asked by their attributes, or by functions of PyTorch whose addresses are given:
 * nothing of it is linked, and nothing of it included. */
#include "watch.h"

#include "watch_sums.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* What is known of a tensor. `held` is what PyTorch's object holds in direct.place, or 0 where the tensor
 * is asked by its attributes. `layout` is a hash of its type, sizes and strides: what is given to `.data` may be the
 * same memory, turned. */
struct facts {
  uint64_t object, held, memory, version, layout;
};

/* Where PyTorch's own functions are: tensor_access.py finds and tries them. A tensor of C++ is one pointer,
 * which lies in Python's object: its place there is what these functions take. */
struct direct {
  uint64_t place;             /* in the object, in bytes */
  uint64_t version, data_ptr; /* addresses of functions ... */
  uint64_t dtype, dim, sizes, strides;
  uint64_t tensor, parameter; /* the types of objects that may be asked so */
};

/* Not 0: failed. */
typedef int64_t version_function(const void *tensor);
typedef int32_t data_ptr_function(const void *tensor, void **out);
typedef int32_t dtype_function(const void *tensor, int32_t *out);
typedef int32_t dim_function(const void *tensor, int64_t *out);
typedef int32_t sizes_function(const void *tensor, int64_t **out);

static bool number(PyObject *found, uint64_t *out) {
  if (!found) return false;
  *out = PyLong_AsUnsignedLongLong(found);
  Py_DECREF(found);
  return !PyErr_Occurred();
}

/* How tensors are asked: the names of their attributes, and directly where it is not NULL. */
struct way {
  PyObject *version, *data_ptr, *dtype, *shape, *stride;
  const struct direct *direct;
};

static bool way_open(PyObject *direct, struct way *out) {
  *out = (struct way){0};
  if (!PyBytes_Check(direct)) {
    PyErr_SetString(PyExc_TypeError, "expected bytes");
    return false;
  }
  if (PyBytes_Size(direct) == (Py_ssize_t)sizeof *out->direct)
    out->direct = (const struct direct *)(const void *)PyBytes_AsString(direct);
  out->version = PyUnicode_InternFromString("_version");
  out->data_ptr = PyUnicode_InternFromString("data_ptr");
  out->dtype = PyUnicode_InternFromString("dtype");
  out->shape = PyUnicode_InternFromString("shape");
  out->stride = PyUnicode_InternFromString("stride");
  return out->version && out->data_ptr && out->dtype && out->shape && out->stride;
}

static void way_close(struct way *w) {
  Py_XDECREF(w->version);
  Py_XDECREF(w->data_ptr);
  Py_XDECREF(w->dtype);
  Py_XDECREF(w->shape);
  Py_XDECREF(w->stride);
}

static uint64_t mixed(uint64_t hash, uint64_t value) {
  return (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15) + (hash >> 29);
}

static bool mix_object(PyObject *found, uint64_t *hash) {
  if (!found) return false;
  Py_hash_t own = PyObject_Hash(found);
  Py_DECREF(found);
  *hash = mixed(*hash, (uint64_t)own);
  return own != -1;
}

static bool ask_attributes(PyObject *tensor, const struct way *w, struct facts *out) {
  *out = (struct facts){.object = (uint64_t)(uintptr_t)tensor};
  return number(PyObject_CallMethodObjArgs(tensor, w->data_ptr, NULL), &out->memory) &&
         number(PyObject_GetAttr(tensor, w->version), &out->version) &&
         mix_object(PyObject_GetAttr(tensor, w->dtype), &out->layout) &&
         mix_object(PyObject_GetAttr(tensor, w->shape), &out->layout) &&
         mix_object(PyObject_CallMethodObjArgs(tensor, w->stride, NULL), &out->layout);
}

static const char *held_at(PyObject *tensor, const struct direct *d) {
  return (const char *)tensor + d->place;
}

static bool ask_layout(const char *held, const struct direct *d, uint64_t *out) {
  dtype_function *dtype = (dtype_function *)(uintptr_t)d->dtype;
  dim_function *dim = (dim_function *)(uintptr_t)d->dim;
  sizes_function *sizes = (sizes_function *)(uintptr_t)d->sizes;
  sizes_function *strides = (sizes_function *)(uintptr_t)d->strides;
  int32_t type;
  int64_t count, *size, *stride;
  if (dtype(held, &type) || dim(held, &count) || sizes(held, &size) || strides(held, &stride))
    return false;
  *out = (uint64_t)type;
  for (int64_t i = 0; i < count; i++)
    *out = mixed(mixed(*out, (uint64_t)size[i]), (uint64_t)stride[i]);
  return true;
}

static bool ask_directly(PyObject *tensor, const struct direct *d, struct facts *out) {
  data_ptr_function *data_ptr = (data_ptr_function *)(uintptr_t)d->data_ptr;
  version_function *version = (version_function *)(uintptr_t)d->version;
  void *memory;
  if (data_ptr(held_at(tensor, d), &memory)) return false;
  *out = (struct facts){.object = (uint64_t)(uintptr_t)tensor,
                        .memory = (uint64_t)(uintptr_t)memory,
                        .version = (uint64_t)version(held_at(tensor, d))};
  memcpy(&out->held, held_at(tensor, d), sizeof out->held);
  return ask_layout(held_at(tensor, d), d, &out->layout);
}

/* Its attributes come first: those of a tensor whose changes are not counted raise an exception here,
 * where PyTorch's function would throw one of C++. Directly it is asked later where the answers agree. */
static bool first_facts(PyObject *tensor, const struct way *w, struct facts *out) {
  const struct direct *d = w->direct;
  if (!ask_attributes(tensor, w, out)) return false;
  uint64_t type = (uint64_t)(uintptr_t)Py_TYPE(tensor);
  struct facts other;
  if (d && (type == d->tensor || type == d->parameter) && ask_directly(tensor, d, &other) &&
      other.memory == out->memory && other.version == out->version)
    *out = other;
  return true;
}

/* 1: the tensor is as it was; 0: it is not; -1: an exception. PyTorch is asked only while the object holds
 * what it did, so that nothing is read that another one has freed or that has no version. */
static int facts_hold(PyObject *tensor, const struct way *w, const struct facts *was) {
  const struct direct *d = w->direct;
  struct facts now;
  if ((uint64_t)(uintptr_t)tensor != was->object) return 0;
  bool directly = d && was->held;
  if (directly && memcmp(held_at(tensor, d), &was->held, sizeof was->held)) return 0;
  if (!(directly && ask_directly(tensor, d, &now)) && !ask_attributes(tensor, w, &now)) return -1;
  return now.memory == was->memory && now.version == was->version && now.layout == was->layout;
}

static bool is_list(PyObject *tensors) {
  if (PyList_Check(tensors)) return true;
  PyErr_SetString(PyExc_TypeError, "expected a list");
  return false;
}

PyObject *watch_states(PyObject *module, PyObject *args) {
  PyObject *tensors, *direct, *out = NULL;
  struct way w;
  (void)module;
  if (!PyArg_ParseTuple(args, "OO", &tensors, &direct) || !is_list(tensors)) return NULL;
  Py_ssize_t count = PyList_Size(tensors);
  if (way_open(direct, &w))
    out = PyBytes_FromStringAndSize(NULL, count * (Py_ssize_t)sizeof(struct facts));
  struct facts *facts = out ? (struct facts *)(void *)PyBytes_AsString(out) : NULL;
  for (Py_ssize_t i = 0; out && i < count; i++)
    if (!first_facts(PyList_GetItem(tensors, i), &w, &facts[i])) Py_CLEAR(out);
  way_close(&w);
  return out;
}

/* As facts_hold, of all of them. */
static int states_hold(PyObject *tensors, PyObject *direct, PyObject *states) {
  struct way w;
  const struct facts *was = (const struct facts *)(const void *)PyBytes_AsString(states);
  Py_ssize_t count = PyBytes_Size(states) / (Py_ssize_t)sizeof *was;
  int hold = way_open(direct, &w) ? PyList_Size(tensors) == count : -1;
  for (Py_ssize_t i = 0; hold == 1 && i < count; i++)
    hold = i < PyList_Size(tensors) ? facts_hold(PyList_GetItem(tensors, i), &w, &was[i]) : 0;
  way_close(&w);
  return hold;
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
  PyObject *tensors, *direct, *states, *fixed, *turning;
  Py_ssize_t turn, window;
  struct blocks always, others;
  (void)module;
  if (!PyArg_ParseTuple(args, "OOOOOnn", &tensors, &direct, &states, &fixed, &turning, &turn,
                        &window) ||
      !is_list(tensors))
    return NULL;
  if (!PyBytes_Check(states) || !read_blocks(fixed, &always) || !read_blocks(turning, &others)) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "expected bytes");
    return NULL;
  }
  /* Memory is read only where it still belongs to the tensors. */
  int hold = states_hold(tensors, direct, states);
  if (hold < 0) return NULL;
  bool same = hold;
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

/* An element of the list that has to be a dict; NULL with an exception where it is not. */
static PyObject *table_at(PyObject *tables, Py_ssize_t i) {
  PyObject *table = PyList_GetItem(tables, i);
  if (table && PyDict_Check(table)) return table;
  PyErr_SetString(PyExc_TypeError, "expected a list of dict");
  return NULL;
}

PyObject *watch_values(PyObject *module, PyObject *args) {
  PyObject *tables, *values;
  Py_ssize_t at = 0;
  (void)module;
  if (!PyArg_ParseTuple(args, "OO", &tables, &values) || !is_list(tables) || !is_list(values))
    return NULL;
  for (Py_ssize_t i = 0; i < PyList_Size(tables); i++) {
    PyObject *table = table_at(tables, i);
    if (!table) return NULL;
    if (!table_holds(table, values, &at)) Py_RETURN_FALSE;
  }
  return PyBool_FromLong(at == PyList_Size(values));
}

PyObject *watch_key(PyObject *module, PyObject *args) {
  PyObject *tables, *key, *value;
  (void)module;
  if (!PyArg_ParseTuple(args, "OOO", &tables, &key, &value) || !is_list(tables)) return NULL;
  for (Py_ssize_t i = 0; i < PyList_Size(tables); i++) {
    PyObject *table = table_at(tables, i);
    if (!table) return NULL;
    if (PyDict_GetItem(table, key) != value) Py_RETURN_FALSE;
  }
  Py_RETURN_TRUE;
}
