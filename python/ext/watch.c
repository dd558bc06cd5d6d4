/* See watch.h. Tensors are asked directly where they may be, else by their attributes. */
#include "watch.h"

#include "tensors.h"
#include "watch_sums.h"

/* What is known of a tensor. `held` is what PyTorch's object holds in direct.place, or 0 where the tensor
 * is asked by its attributes. `layout` is a hash of its type, sizes, strides and sign: what is given to `.data` may
 * be the same memory, turned. */
struct facts {
  uint64_t object, held, memory, version, layout;
};

#define MULTIPLIER UINT64_C(0x9e3779b97f4a7c15) /* of hashes */

static bool number(PyObject *found, uint64_t *out) {
  if (!found) return false;
  *out = PyLong_AsUnsignedLongLong(found);
  Py_DECREF(found);
  return !PyErr_Occurred();
}

static bool mix_object(PyObject *found, uint64_t *hash) {
  if (!found) return false;
  Py_hash_t own = PyObject_Hash(found);
  Py_DECREF(found);
  *hash = *hash * MULTIPLIER + (uint64_t)own;
  return own != -1;
}

static PyObject *called(PyObject *tensor, const char *method) {
  return PyObject_CallMethod(tensor, method, NULL);
}

static bool ask_attributes(PyObject *tensor, struct facts *out) {
  *out = (struct facts){.object = (uint64_t)(uintptr_t)tensor};
  return number(called(tensor, "data_ptr"), &out->memory) &&
         number(PyObject_GetAttrString(tensor, "_version"), &out->version) &&
         mix_object(PyObject_GetAttrString(tensor, "dtype"), &out->layout) &&
         mix_object(called(tensor, "is_neg"), &out->layout) &&
         mix_object(PyObject_GetAttrString(tensor, "shape"), &out->layout) &&
         mix_object(called(tensor, "stride"), &out->layout);
}

static bool ask_directly(PyObject *tensor, const struct direct *d, struct facts *out) {
  struct tensor_form form;
  void *memory;
  if (!tensor_memory(tensor, d, &memory) || !tensor_form(tensor, d, &form)) return false;
  *out = (struct facts){.object = (uint64_t)(uintptr_t)tensor,
                        .held = tensor_held(tensor, d),
                        .memory = (uint64_t)(uintptr_t)memory,
                        .version = tensor_version(tensor, d),
                        .layout = (uint64_t)form.dtype << 1 | tensor_is_negative(tensor, d)};
  for (int64_t i = 0; i < form.dim; i++) {
    uint64_t stride = (uint64_t)form.strides[i];
    out->layout =
        out->layout * MULTIPLIER + (uint64_t)form.sizes[i] + (stride << 32 | stride >> 32);
  }
  return true;
}

/* Its attributes come first: those of a tensor whose changes are not counted raise an exception here,
 * where PyTorch's function would throw one of C++. Directly it is asked later where the answers agree. */
static bool first_facts(PyObject *tensor, const struct direct *d, struct facts *out) {
  struct facts other;
  if (!ask_attributes(tensor, out)) return false;
  if (d && tensor_is_plain(tensor, d) && ask_directly(tensor, d, &other) &&
      other.memory == out->memory && other.version == out->version)
    *out = other;
  return true;
}

/* 1: the tensor is as it was; 0: it is not; -1: an exception. PyTorch is asked only while the object holds
 * what it did, so that nothing is read that another one has freed or that has no version. */
static int facts_hold(PyObject *tensor, const struct direct *d, const struct facts *was) {
  struct facts now;
  if ((uint64_t)(uintptr_t)tensor != was->object) return 0;
  bool directly = d && was->held;
  if (directly && tensor_held(tensor, d) != was->held) return 0;
  if (!(directly && ask_directly(tensor, d, &now)) && !ask_attributes(tensor, &now)) return -1;
  return now.memory == was->memory && now.version == was->version && now.layout == was->layout;
}

static bool is_list(PyObject *tensors) {
  if (PyList_Check(tensors)) return true;
  PyErr_SetString(PyExc_TypeError, "expected a list");
  return false;
}

PyObject *watch_states(PyObject *module, PyObject *args) {
  PyObject *tensors, *direct;
  const struct direct *d;
  (void)module;
  if (!PyArg_ParseTuple(args, "OO", &tensors, &direct) || !is_list(tensors) ||
      !direct_read(direct, &d))
    return NULL;
  Py_ssize_t count = PyList_Size(tensors);
  PyObject *out = PyBytes_FromStringAndSize(NULL, count * (Py_ssize_t)sizeof(struct facts));
  struct facts *facts = out ? (struct facts *)(void *)PyBytes_AsString(out) : NULL;
  for (Py_ssize_t i = 0; out && i < count; i++)
    if (!first_facts(PyList_GetItem(tensors, i), d, &facts[i])) Py_CLEAR(out);
  return out;
}

/* As facts_hold, of all of them. */
static int states_hold(PyObject *tensors, const struct direct *d, PyObject *states) {
  const struct facts *was = (const struct facts *)(const void *)PyBytes_AsString(states);
  Py_ssize_t count = PyBytes_Size(states) / (Py_ssize_t)sizeof *was;
  int hold = PyList_Size(tensors) == count;
  for (Py_ssize_t i = 0; hold == 1 && i < count; i++)
    hold = i < PyList_Size(tensors) ? facts_hold(PyList_GetItem(tensors, i), d, &was[i]) : 0;
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
  const struct direct *d;
  Py_ssize_t turn, window;
  struct blocks always, others;
  (void)module;
  if (!PyArg_ParseTuple(args, "OOOOOnn", &tensors, &direct, &states, &fixed, &turning, &turn,
                        &window) ||
      !is_list(tensors) || !direct_read(direct, &d))
    return NULL;
  if (!PyBytes_Check(states) || !read_blocks(fixed, &always) || !read_blocks(turning, &others)) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "expected bytes");
    return NULL;
  }
  /* Memory is read only where it still belongs to the tensors. */
  int hold = states_hold(tensors, d, states);
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
    if (PyDict_GetItemWithError(table, key) != value)
      return PyErr_Occurred() ? NULL : PyBool_FromLong(0);
  }
  Py_RETURN_TRUE;
}
