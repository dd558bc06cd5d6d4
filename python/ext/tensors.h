/* PyTorch's tensors asked without Python in between: nothing of PyTorch is linked, and nothing of it included. */
#ifndef CANVAS_TENSORS_H
#define CANVAS_TENSORS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Where PyTorch's own functions are, those of its C interface and some of C++ (version, is_neg, is_zero):
 * tensor_access.py finds and tries them. A tensor of C++ is one pointer, which lies in Python's object: its place
 * there is what these functions take. */
struct direct {
  uint64_t place;             /* in the object, in bytes */
  uint64_t version, data_ptr; /* addresses of functions ... */
  uint64_t is_neg, is_zero;
  uint64_t dtype, dim, sizes, strides, device, layout;
  uint64_t tensor, parameter; /* the types of objects that may be asked so */
};

/* Not 0: failed. */
typedef int64_t version_function(const void *tensor);
typedef bool flag_function(const void *tensor);
typedef int32_t pointer_function(const void *tensor, void **out);
typedef int32_t kind_function(const void *tensor, int32_t *out);
typedef int32_t number_function(const void *tensor, int64_t *out);
typedef int32_t numbers_function(const void *tensor, const int64_t **out);

/* How elements lie; sizes and strides are the tensor's own, to be read at once. */
struct tensor_form {
  int32_t dtype;
  int64_t dim;
  const int64_t *sizes, *strides;
};

/* *out is NULL where the bytes, which it points into, are empty; false with an exception for what is none. */
static inline bool direct_read(PyObject *bytes, const struct direct **out) {
  *out = NULL;
  if (!PyBytes_Check(bytes)) {
    PyErr_SetString(PyExc_TypeError, "expected bytes");
    return false;
  }
  if (PyBytes_Size(bytes) == (Py_ssize_t)sizeof **out)
    *out = (const struct direct *)(const void *)PyBytes_AsString(bytes);
  return true;
}

static inline const char *tensor_place(PyObject *tensor, const struct direct *d) {
  return (const char *)tensor + d->place;
}

/* What the object holds: the pointer to what PyTorch calls the implementation. */
static inline uint64_t tensor_held(PyObject *tensor, const struct direct *d) {
  uint64_t held;
  memcpy(&held, tensor_place(tensor, d), sizeof held);
  return held;
}

/* Whether the object is of a type that may be asked, and holds a tensor. Nothing else may be asked of others. */
static inline bool tensor_is_plain(PyObject *tensor, const struct direct *d) {
  uint64_t type = (uint64_t)(uintptr_t)Py_TYPE(tensor);
  return (type == d->tensor || type == d->parameter) && tensor_held(tensor, d);
}

/* Not for a tensor whose changes are not counted: PyTorch's function throws an exception of C++. */
static inline uint64_t tensor_version(PyObject *tensor, const struct direct *d) {
  version_function *version = (version_function *)(uintptr_t)d->version;
  return (uint64_t)version(tensor_place(tensor, d));
}

/* Its signs are left to who reads it, as of the imaginary part of what is conjugated. */
static inline bool tensor_is_negative(PyObject *tensor, const struct direct *d) {
  flag_function *is_neg = (flag_function *)(uintptr_t)d->is_neg;
  return is_neg(tensor_place(tensor, d));
}

/* False, without an exception of Python, for a tensor that has none. */
static inline bool tensor_memory(PyObject *tensor, const struct direct *d, void **out) {
  pointer_function *data_ptr = (pointer_function *)(uintptr_t)d->data_ptr;
  return !data_ptr(tensor_place(tensor, d), out);
}

/* As tensor_memory. */
static inline bool tensor_form(PyObject *tensor, const struct direct *d, struct tensor_form *out) {
  kind_function *dtype = (kind_function *)(uintptr_t)d->dtype;
  number_function *dim = (number_function *)(uintptr_t)d->dim;
  numbers_function *sizes = (numbers_function *)(uintptr_t)d->sizes;
  numbers_function *strides = (numbers_function *)(uintptr_t)d->strides;
  const char *at = tensor_place(tensor, d);
  return !dtype(at, &out->dtype) && !dim(at, &out->dim) && !sizes(at, &out->sizes) &&
         !strides(at, &out->strides);
}

#endif
