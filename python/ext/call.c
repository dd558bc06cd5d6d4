/* See call.h. */
#include "call.h"

#include "tensors.h"

enum { FEW = 32 }; /* tensors whose addresses are kept on the stack */

static bool counts(Py_ssize_t count, Py_ssize_t wanted) {
  if (count == wanted) return true;
  PyErr_Format(PyExc_TypeError, "expected %zd arguments, not %zd", wanted, count);
  return false;
}

/* A list or a tuple, whose elements are borrowed. */
struct sequence {
  PyObject *held;
  Py_ssize_t count;
  PyObject *(*at)(PyObject *, Py_ssize_t);
};

static bool sequence_read(PyObject *given, struct sequence *out) {
  bool list = PyList_Check(given);
  if (!list && !PyTuple_Check(given)) {
    PyErr_SetString(PyExc_TypeError, "expected a list or tuple");
    return false;
  }
  *out = (struct sequence){given, list ? PyList_Size(given) : PyTuple_Size(given),
                           list ? PyList_GetItem : PyTuple_GetItem};
  return true;
}

/* ---- layouts ------------------------------------------------------------------------------------ */

/* A tensor's row: these, then sizes and strides. */
struct row {
  uint64_t type; /* the object's */
  int64_t dtype, dim;
};

/* Whether its elements are in memory of the CPU as they are: not with other signs, as a view of PyTorch may leave
 * them to who reads it, or none at all, as zeros that derivatives are made of. */
static bool tensor_is_dense(PyObject *tensor, const struct direct *d) {
  enum { CPU = 0, STRIDED = 0 }; /* of PyTorch's device types and layouts */
  kind_function *device = (kind_function *)(uintptr_t)d->device;
  kind_function *layout = (kind_function *)(uintptr_t)d->layout;
  flag_function *is_zero = (flag_function *)(uintptr_t)d->is_zero;
  const char *at = tensor_place(tensor, d);
  int32_t on, lies;
  return !device(at, &on) && !layout(at, &lies) && on == CPU && lies == STRIDED &&
         !tensor_is_negative(tensor, d) && !is_zero(at);
}

static bool row_of(PyObject *tensor, const struct direct *d, struct row *row,
                   struct tensor_form *form) {
  if (!tensor_is_plain(tensor, d) || !tensor_is_dense(tensor, d) || !tensor_form(tensor, d, form))
    return false;
  *row = (struct row){(uint64_t)(uintptr_t)Py_TYPE(tensor), form->dtype, form->dim};
  return true;
}

static size_t row_bytes(const struct row *row) {
  return sizeof *row + 2 * (size_t)row->dim * sizeof(int64_t);
}

/* Writes no more than `room` bytes; the bytes of the row, 0 where the tensor has none. */
static size_t row_write(PyObject *tensor, const struct direct *d, char *out, size_t room) {
  struct row row;
  struct tensor_form form;
  if (!row_of(tensor, d, &row, &form)) return 0;
  size_t half = (size_t)row.dim * sizeof(int64_t);
  if (row_bytes(&row) > room) return row_bytes(&row);
  memcpy(out, &row, sizeof row);
  memcpy(out + sizeof row, form.sizes, half);
  memcpy(out + sizeof row + half, form.strides, half);
  return row_bytes(&row);
}

/* The bytes of the row that starts at `held`, of which `room` are there; 0 where the tensor lies otherwise. */
static size_t row_same(PyObject *tensor, const struct direct *d, const char *held, size_t room) {
  struct row row;
  struct tensor_form form;
  if (!row_of(tensor, d, &row, &form) || row_bytes(&row) > room) return 0;
  size_t half = (size_t)row.dim * sizeof(int64_t);
  bool same = !memcmp(held, &row, sizeof row) && !memcmp(held + sizeof row, form.sizes, half) &&
              !memcmp(held + sizeof row + half, form.strides, half);
  return same ? row_bytes(&row) : 0;
}

PyObject *call_layouts(PyObject *module, PyObject *const *args, Py_ssize_t count) {
  const struct direct *d;
  struct sequence inputs;
  (void)module;
  if (!counts(count, 2) || !sequence_read(args[0], &inputs) || !direct_read(args[1], &d))
    return NULL;
  size_t size = 0, at = 0;
  for (Py_ssize_t i = 0; i < inputs.count; i++) {
    size_t row = d ? row_write(inputs.at(args[0], i), d, NULL, 0) : 0;
    if (!row) return PyBytes_FromStringAndSize(NULL, 0);
    size += row;
  }
  PyObject *out = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
  char *bytes = out ? PyBytes_AsString(out) : NULL;
  for (Py_ssize_t i = 0; bytes && i < inputs.count; i++)
    at += row_write(inputs.at(args[0], i), d, bytes + at, size - at);
  return out;
}

PyObject *call_same_layouts(PyObject *module, PyObject *const *args, Py_ssize_t count) {
  const struct direct *d;
  struct sequence inputs;
  char *held;
  Py_ssize_t size;
  (void)module;
  if (!counts(count, 3) || !sequence_read(args[0], &inputs) || !direct_read(args[1], &d) ||
      PyBytes_AsStringAndSize(args[2], &held, &size) < 0)
    return NULL;
  size_t rest = d ? (size_t)size : 0;
  if (!rest) Py_RETURN_FALSE;
  for (Py_ssize_t i = 0; i < inputs.count; i++) {
    size_t row = row_same(inputs.at(args[0], i), d, held, rest);
    if (!row) Py_RETURN_FALSE;
    held += row;
    rest -= row;
  }
  return PyBool_FromLong(!rest);
}

/* ---- code --------------------------------------------------------------------------------------- */

typedef int run_function(const void *const *weights, const void *packed, const void *const *inputs,
                         void *const *outputs, void *arena);

static bool address(PyObject *given, void **out) {
  *out = PyLong_AsVoidPtr(given);
  return !PyErr_Occurred();
}

static bool memory_of(PyObject *tensor, const struct direct *d, void **out) {
  if (d && tensor_is_plain(tensor, d) && tensor_memory(tensor, d, out)) return true;
  PyObject *found = PyObject_CallMethod(tensor, "data_ptr", NULL);
  if (!found) return false;
  bool known = address(found, out);
  Py_DECREF(found);
  return known;
}

static bool memories_of(const struct sequence *tensors, const struct direct *d, void **out) {
  for (Py_ssize_t i = 0; i < tensors->count; i++) {
    if (!memory_of(tensors->at(tensors->held, i), d, &out[i])) return false;
    if (out[i]) continue;
    PyErr_SetString(PyExc_ValueError, "a tensor has no memory");
    return false;
  }
  return true;
}

PyObject *call_run(PyObject *module, PyObject *const *args, Py_ssize_t count) {
  const struct direct *d;
  struct sequence inputs, outputs;
  void *given[4], *few[FEW], *function;
  (void)module;
  if (!counts(count, 7)) return NULL;
  for (int i = 0; i < 4; i++)
    if (!address(args[i], &given[i])) return NULL;
  if (!sequence_read(args[4], &inputs) || !sequence_read(args[5], &outputs) ||
      !direct_read(args[6], &d))
    return NULL;
  size_t tensors = (size_t)(inputs.count + outputs.count);
  void **memory = tensors <= FEW ? few : PyMem_Malloc(tensors * sizeof *memory);
  if (!memory) return PyErr_NoMemory();
  void **results = memory + inputs.count;
  int answer = 0;
  bool known = memories_of(&inputs, d, memory) && memories_of(&outputs, d, results);
  if (known) {
    function = given[0];
    Py_BEGIN_ALLOW_THREADS;
    answer = ((run_function *)(uintptr_t)function)((const void *const *)given[1], given[2],
                                                   (const void *const *)memory, results, given[3]);
    Py_END_ALLOW_THREADS;
  }
  if (memory != few) PyMem_Free(memory);
  return known ? PyLong_FromLong(answer) : NULL;
}
