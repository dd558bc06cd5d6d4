/* canvas._core: the core for Python, functions from text to text.
 *
 * It uses CPython's limited API of 3.10, so that one binary serves every later version. A function
 * borrows its texts from the `str` objects of its arguments and releases the interpreter lock during
 * the work. It returns text, or raises Error (bad input) or NoSolution (there is none) with the core's
 * message. No object of the core outlives a call. methods.h lists the functions, _core.pyi describes
 * them. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdio.h>
#include <string.h>

#include "call.h"
#include "canvas.h"
#include "methods.h"
#include "watch.h"

/* What the module owns: its two exceptions. */
struct state {
  PyObject *error, *no_solution;
};

static struct state *state_of(PyObject *module) {
  return PyModule_GetState(module);
}

/* ---- from Python --------------------------------------------------------------------------- */

struct text {
  const char *bytes;
  size_t length;
};

/* The UTF-8 of a str, which must live as long. */
static bool get_text(PyObject *module, PyObject *str, struct text *out) {
  Py_ssize_t length;
  if (!PyUnicode_Check(str)) {
    PyErr_Format(PyExc_TypeError, "expected str, not %R", (PyObject *)Py_TYPE(str));
    return false;
  }
  out->bytes = PyUnicode_AsUTF8AndSize(str, &length);
  out->length = (size_t)length;
  if (out->bytes) return true;
  if (PyErr_ExceptionMatches(PyExc_UnicodeError)) {
    PyErr_Clear();
    PyErr_SetString(state_of(module)->error, "the text holds a lone surrogate, give plain text");
  }
  return false;
}

/* A whole number in [0, 2^63). */
static bool get_whole(PyObject *module, PyObject *number, const char *name, uint64_t *out) {
  long long value = PyLong_AsLongLong(number);
  if (value == -1 && PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_OverflowError)) return false;
  *out = (uint64_t)value;
  if (value >= 0) return true;
  PyErr_Clear();
  PyErr_Format(state_of(module)->error, "%s is a whole number from 0 to 2^63 - 1", name);
  return false;
}

/* ---- to Python ----------------------------------------------------------------------------- */

/* Raises what a status other than CANVAS_OK means; frees the context; answers NULL. CANVAS_IO without a message: a
 * function without a status had no memory. */
static PyObject *raise_status(PyObject *module, canvas_status status, canvas_context *ctx) {
  struct state *s = state_of(module);
  const char *message = canvas_context_message(ctx);
  bool memory = status == CANVAS_IO && (!*message || !strncmp(message, "out of memory", 13) ||
                                        strstr(message, "no memory "));
  if (memory)
    PyErr_SetString(PyExc_MemoryError, message);
  else
    PyErr_SetString(status == CANVAS_NONE ? s->no_solution : s->error, message);
  canvas_context_free(ctx);
  return NULL;
}

/* For raise_status, where the context has no message so far: a function without a status had no memory. */
static canvas_status no_memory(void) {
  return CANVAS_IO;
}

/* The text that a call made as str, or its exception; frees text and context. */
static PyObject *finish(PyObject *module, canvas_status status, canvas_context *ctx, char *text) {
  if (status != CANVAS_OK) return raise_status(module, status, ctx);
  PyObject *answer = text ? PyUnicode_FromString(text) : PyErr_NoMemory();
  canvas_string_free(text);
  canvas_context_free(ctx);
  return answer;
}

/* ---- one text in, one text out ------------------------------------------------------------- */

typedef canvas_status (*text_work)(canvas_context *ctx, struct text in, char **out);

static PyObject *call_text(PyObject *module, PyObject *str, text_work work) {
  struct text in;
  char *out = NULL;
  canvas_status status;
  if (!get_text(module, str, &in)) return NULL;
  canvas_context *ctx = canvas_context_new();
  if (!ctx) return PyErr_NoMemory(), NULL;
  Py_BEGIN_ALLOW_THREADS status = work(ctx, in, &out);
  Py_END_ALLOW_THREADS return finish(module, status, ctx, out);
}

static canvas_status print_kernels(canvas_context *ctx, struct text in, char **out) {
  return canvas_kernels_print(ctx, in.bytes, in.length, out);
}

static canvas_status print_pack(canvas_context *ctx, struct text in, char **out) {
  canvas_pack *pack;
  canvas_status status = canvas_pack_parse(ctx, in.bytes, in.length, &pack);
  if (status != CANVAS_OK) return status;
  *out = canvas_pack_print(pack);
  canvas_pack_free(pack);
  return CANVAS_OK;
}

static canvas_status pack_cost(canvas_context *ctx, struct text in, char **out) {
  canvas_pack *pack;
  canvas_status status = canvas_pack_parse(ctx, in.bytes, in.length, &pack);
  if (status != CANVAS_OK) return status;
  status = canvas_pack_cost_json(ctx, pack, out);
  canvas_pack_free(pack);
  return status;
}

static canvas_status targets_cost(canvas_context *ctx, struct text in, char **out) {
  canvas_targets *targets;
  canvas_status status = canvas_targets_parse(ctx, in.bytes, in.length, &targets);
  if (status != CANVAS_OK) return status;
  status = canvas_targets_cost_json(ctx, targets, out);
  canvas_targets_free(targets);
  return status;
}

static canvas_status draw_dot(canvas_context *ctx, struct text in, char **out) {
  canvas_kernel *kernel;
  canvas_status status = canvas_kernel_parse(ctx, in.bytes, in.length, &kernel);
  if (status != CANVAS_OK) return status;
  *out = canvas_kernel_dot(kernel);
  canvas_kernel_free(kernel);
  return CANVAS_OK;
}

static canvas_status draw_svg(canvas_context *ctx, struct text in, char **out) {
  canvas_pack *pack;
  canvas_status status = canvas_pack_parse(ctx, in.bytes, in.length, &pack);
  if (status != CANVAS_OK) return status;
  *out = canvas_pack_svg(pack);
  canvas_pack_free(pack);
  return CANVAS_OK;
}

static canvas_status simplify(canvas_context *ctx, struct text in, char **out) {
  canvas_kernel *kernel;
  canvas_status status = canvas_kernel_parse(ctx, in.bytes, in.length, &kernel);
  if (status != CANVAS_OK) return status;
  canvas_kernel *simple = canvas_kernel_simplify(kernel);
  *out = canvas_kernel_print(simple);
  canvas_kernel_free(simple);
  canvas_kernel_free(kernel);
  return CANVAS_OK;
}

/* Of the simplified kernel. */
static canvas_status value_key(canvas_context *ctx, struct text in, char **out) {
  canvas_kernel *kernel;
  canvas_status status = canvas_kernel_parse(ctx, in.bytes, in.length, &kernel);
  if (status != CANVAS_OK) return status;
  canvas_kernel *simple = canvas_kernel_simplify(kernel);
  canvas_hash value = canvas_kernel_value(simple);
  *out = strdup(value.decided ? value.hex : "");
  canvas_kernel_free(simple);
  canvas_kernel_free(kernel);
  return CANVAS_OK;
}

static canvas_status strided(canvas_context *ctx, struct text in, const char *mode, char **out) {
  canvas_kernel *kernel, *made;
  canvas_status status = canvas_kernel_parse(ctx, in.bytes, in.length, &kernel);
  if (status != CANVAS_OK) return status;
  status = canvas_kernel_stride(ctx, kernel, mode, &made);
  canvas_kernel_free(kernel);
  if (status != CANVAS_OK) return status;
  *out = canvas_kernel_print(made);
  canvas_kernel_free(made);
  return CANVAS_OK;
}

static PyObject *core_print_kernels(PyObject *module, PyObject *text) {
  return call_text(module, text, print_kernels);
}

static PyObject *core_print_pack(PyObject *module, PyObject *text) {
  return call_text(module, text, print_pack);
}

static PyObject *core_cost(PyObject *module, PyObject *text) {
  return call_text(module, text, pack_cost);
}

static PyObject *core_baseline(PyObject *module, PyObject *text) {
  return call_text(module, text, targets_cost);
}

static PyObject *core_simplify(PyObject *module, PyObject *text) {
  return call_text(module, text, simplify);
}

static PyObject *core_value_key(PyObject *module, PyObject *text) {
  return call_text(module, text, value_key);
}

static PyObject *core_dot(PyObject *module, PyObject *text) {
  return call_text(module, text, draw_dot);
}

static PyObject *core_svg(PyObject *module, PyObject *text) {
  return call_text(module, text, draw_svg);
}

/* ---- a pack in, a fact out ----------------------------------------------------------------- */

/* NULL with an exception set. */
static canvas_pack *get_pack(PyObject *module, PyObject *str) {
  struct text in;
  canvas_status status;
  canvas_pack *pack = NULL;
  if (!get_text(module, str, &in)) return NULL;
  canvas_context *ctx = canvas_context_new();
  if (!ctx) return PyErr_NoMemory(), NULL;
  Py_BEGIN_ALLOW_THREADS status = canvas_pack_parse(ctx, in.bytes, in.length, &pack);
  Py_END_ALLOW_THREADS if (status != CANVAS_OK) raise_status(module, status, ctx);
  else canvas_context_free(ctx);
  return pack;
}

static PyObject *core_hash(PyObject *module, PyObject *text) {
  canvas_pack *pack = get_pack(module, text);
  if (!pack) return NULL;
  canvas_hash hash;
  Py_BEGIN_ALLOW_THREADS hash = canvas_pack_hash(pack);
  Py_END_ALLOW_THREADS canvas_pack_free(pack);
  return *hash.hex ? PyUnicode_FromString(hash.hex) : PyErr_NoMemory();
}

/* The text of a part; NULL with an exception set. */
static PyObject *print_part(const canvas_pack *pack, int kernel) {
  canvas_pack *part = canvas_pack_part(pack, kernel);
  char *text = canvas_pack_print(part);
  PyObject *answer = text ? PyUnicode_FromString(text) : PyErr_NoMemory();
  canvas_string_free(text);
  canvas_pack_free(part);
  return answer;
}

static PyObject *core_parts(PyObject *module, PyObject *text) {
  canvas_pack *pack = get_pack(module, text);
  if (!pack) return NULL;
  int count = canvas_pack_kernels(pack);
  PyObject *list = PyList_New(count);
  for (int i = 0; list && i < count; i++) {
    PyObject *part = print_part(pack, i);
    if (part && !PyList_SetItem(list, i, part)) continue;
    Py_DecRef(list);
    list = NULL;
  }
  canvas_pack_free(pack);
  return list;
}

static PyObject *core_reach(PyObject *module, PyObject *text) {
  canvas_pack *pack = get_pack(module, text);
  if (!pack) return NULL;
  const char *why = canvas_pack_reach(pack);
  PyObject *answer = PyUnicode_FromString(why ? why : "");
  canvas_pack_free(pack);
  return answer;
}

/* ---- the pipeline -------------------------------------------------------------------------- */

static canvas_status open_sampler(canvas_context *ctx, struct text targets, struct text options,
                                  uint64_t seed, canvas_sampler **out) {
  canvas_targets *parsed;
  canvas_status status = canvas_targets_parse(ctx, targets.bytes, targets.length, &parsed);
  if (status != CANVAS_OK) return status;
  status = canvas_sampler_new(ctx, parsed, options.bytes, options.length, seed, out);
  canvas_targets_free(parsed);
  return status;
}

static canvas_status draw(canvas_context *ctx, struct text targets, struct text options,
                          uint64_t seed, uint64_t index, char **out, int64_t *groups) {
  canvas_sampler *sampler;
  canvas_kernel *kernel;
  canvas_status status = open_sampler(ctx, targets, options, seed, &sampler);
  if (status != CANVAS_OK) return status;
  status = canvas_sampler_draw(ctx, sampler, index, &kernel, groups);
  if (status == CANVAS_OK) {
    *out = canvas_kernel_print(kernel);
    canvas_kernel_free(kernel);
  }
  canvas_sampler_free(sampler);
  return status;
}

static PyObject *core_draw(PyObject *module, PyObject *args, PyObject *keywords) {
  static char *names[] = {"targets", "seed", "index", "options", NULL};
  PyObject *targets, *seed, *index, *options;
  struct text in, how;
  uint64_t s, i;
  int64_t groups = 0;
  char *out = NULL;
  canvas_status status;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "UOOU", names, &targets, &seed, &index,
                                   &options) ||
      !get_text(module, targets, &in) || !get_whole(module, seed, "seed", &s) ||
      !get_whole(module, index, "index", &i) || !get_text(module, options, &how))
    return NULL;
  canvas_context *ctx = canvas_context_new();
  if (!ctx) return PyErr_NoMemory(), NULL;
  Py_BEGIN_ALLOW_THREADS status = draw(ctx, in, how, s, i, &out, &groups);
  Py_END_ALLOW_THREADS if (status == CANVAS_NONE) {
    canvas_context_free(ctx);
    Py_RETURN_NONE;
  }
  PyObject *text = finish(module, status, ctx, out);
  return text ? Py_BuildValue("(NL)", text, (long long)groups) : NULL;
}

/* One or two (kernel, G); `held` keeps the texts alive, whatever becomes of the list. */
struct parents {
  PyObject *held;
  struct text text[CANVAS_PARENTS_MAX];
  int64_t groups[CANVAS_PARENTS_MAX];
  int count;
};

static bool get_parent(PyObject *module, PyObject *pair, struct text *text, int64_t *groups) {
  PyObject *str;
  long long g;
  if (!PyTuple_Check(pair) || !PyArg_ParseTuple(pair, "UL", &str, &g)) {
    PyErr_SetString(PyExc_TypeError, "a parent must be a tuple (kernel, groups): text and number");
    return false;
  }
  *groups = g;
  return get_text(module, str, text);
}

static bool get_parents(PyObject *module, PyObject *list, struct parents *out) {
  if (!PyList_Check(list) || PyList_Size(list) < 1 || PyList_Size(list) > CANVAS_PARENTS_MAX) {
    PyErr_SetString(PyExc_TypeError, "parents must be a list of one or two (kernel, groups)");
    return false;
  }
  *out = (struct parents){.held = PyList_AsTuple(list), .count = (int)PyList_Size(list)};
  for (int i = 0; i < out->count; i++)
    if (!get_parent(module, PyTuple_GetItem(out->held, i), &out->text[i], &out->groups[i])) {
      Py_DECREF(out->held);
      return false;
    }
  return true;
}

static canvas_status mutate(canvas_context *ctx, canvas_sampler *sampler, uint64_t index,
                            const struct parents *parents, char **out, int64_t *groups) {
  canvas_kernel *kernels[CANVAS_PARENTS_MAX] = {NULL}, *child;
  canvas_status status = CANVAS_OK;
  for (int i = 0; i < parents->count && status == CANVAS_OK; i++)
    status = canvas_kernel_parse(ctx, parents->text[i].bytes, parents->text[i].length, &kernels[i]);
  if (status == CANVAS_OK)
    status = canvas_sampler_mutate(ctx, sampler, index, (const canvas_kernel *const *)kernels,
                                   parents->groups, parents->count, &child, groups);
  if (status == CANVAS_OK) {
    *out = canvas_kernel_print(child);
    canvas_kernel_free(child);
  }
  for (int i = 0; i < parents->count; i++) canvas_kernel_free(kernels[i]);
  return status;
}

static PyObject *core_mutate(PyObject *module, PyObject *args, PyObject *keywords) {
  static char *names[] = {"targets", "seed", "index", "options", "parents", NULL};
  PyObject *targets, *seed, *index, *options, *list;
  struct text in, how;
  struct parents parents;
  uint64_t s, i;
  int64_t groups = 0;
  char *out = NULL;
  canvas_sampler *sampler = NULL;
  canvas_status status;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "UOOUO", names, &targets, &seed, &index,
                                   &options, &list) ||
      !get_text(module, targets, &in) || !get_whole(module, seed, "seed", &s) ||
      !get_whole(module, index, "index", &i) || !get_text(module, options, &how) ||
      !get_parents(module, list, &parents))
    return NULL;
  canvas_context *ctx = canvas_context_new();
  if (!ctx) return PyErr_NoMemory(), NULL;
  Py_BEGIN_ALLOW_THREADS status = open_sampler(ctx, in, how, s, &sampler);
  if (status == CANVAS_OK) status = mutate(ctx, sampler, i, &parents, &out, &groups);
  canvas_sampler_free(sampler);
  Py_END_ALLOW_THREADS Py_DECREF(parents.held);
  if (status == CANVAS_NONE) {
    canvas_context_free(ctx);
    Py_RETURN_NONE;
  }
  PyObject *text = finish(module, status, ctx, out);
  return text ? Py_BuildValue("(NL)", text, (long long)groups) : NULL;
}

static PyObject *core_draw_is_free(PyObject *module, PyObject *args, PyObject *keywords) {
  static char *names[] = {"seed", "index", "options", NULL};
  PyObject *seed, *index, *options;
  struct text how;
  uint64_t s, i;
  bool answer = false;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "OOU", names, &seed, &index, &options) ||
      !get_whole(module, seed, "seed", &s) || !get_whole(module, index, "index", &i) ||
      !get_text(module, options, &how))
    return NULL;
  canvas_context *ctx = canvas_context_new();
  if (!ctx) return PyErr_NoMemory(), NULL;
  canvas_status status = canvas_draw_is_free(ctx, how.bytes, how.length, s, i, &answer);
  if (status != CANVAS_OK) return raise_status(module, status, ctx);
  canvas_context_free(ctx);
  return PyBool_FromLong(answer);
}

static canvas_status probability(canvas_context *ctx, struct text kernel, struct text targets,
                                 struct text options, char **out) {
  canvas_sampler *sampler;
  canvas_kernel *k;
  canvas_status status = canvas_kernel_parse(ctx, kernel.bytes, kernel.length, &k);
  if (status != CANVAS_OK) return status;
  status = open_sampler(ctx, targets, options, 0, &sampler);
  if (status == CANVAS_OK) {
    status = canvas_sampler_probability(ctx, sampler, k, out);
    canvas_sampler_free(sampler);
  }
  canvas_kernel_free(k);
  return status;
}

static PyObject *core_probability(PyObject *module, PyObject *args, PyObject *keywords) {
  static char *names[] = {"kernel", "targets", "options", NULL};
  PyObject *kernel, *targets, *options;
  struct text in, layers, how;
  char *out = NULL;
  canvas_status status;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "UUU", names, &kernel, &targets, &options) ||
      !get_text(module, kernel, &in) || !get_text(module, targets, &layers) ||
      !get_text(module, options, &how))
    return NULL;
  canvas_context *ctx = canvas_context_new();
  if (!ctx) return PyErr_NoMemory(), NULL;
  Py_BEGIN_ALLOW_THREADS status = probability(ctx, in, layers, how, &out);
  Py_END_ALLOW_THREADS return finish(module, status, ctx, out);
}

static canvas_status successes(canvas_context *ctx, struct text targets, struct text options,
                               uint64_t seed, int64_t attempts, char **out) {
  canvas_sampler *sampler;
  canvas_status status = open_sampler(ctx, targets, options, seed, &sampler);
  if (status != CANVAS_OK) return status;
  status = canvas_sampler_successes(ctx, sampler, attempts, out);
  canvas_sampler_free(sampler);
  return status;
}

static PyObject *core_successes(PyObject *module, PyObject *args, PyObject *keywords) {
  static char *names[] = {"targets", "options", "seed", "attempts", NULL};
  PyObject *targets, *options, *seed;
  struct text layers, how;
  uint64_t s;
  long long attempts;
  char *out = NULL;
  canvas_status status;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "UUOL", names, &targets, &options, &seed,
                                   &attempts) ||
      !get_text(module, targets, &layers) || !get_text(module, options, &how) ||
      !get_whole(module, seed, "seed", &s))
    return NULL;
  canvas_context *ctx = canvas_context_new();
  if (!ctx) return PyErr_NoMemory(), NULL;
  Py_BEGIN_ALLOW_THREADS status = successes(ctx, layers, how, s, attempts, &out);
  Py_END_ALLOW_THREADS return finish(module, status, ctx, out);
}

static canvas_status broken_rules(canvas_context *ctx, struct text in, struct text options,
                                  char **out) {
  canvas_pack *pack;
  canvas_status status = canvas_pack_parse(ctx, in.bytes, in.length, &pack);
  if (status != CANVAS_OK) return status;
  status = canvas_pack_broken_rules(ctx, pack, options.bytes, options.length, out);
  canvas_pack_free(pack);
  return status;
}

static canvas_status idle_weights(canvas_context *ctx, struct text in, char **out) {
  canvas_pack *pack;
  canvas_status status = canvas_pack_parse(ctx, in.bytes, in.length, &pack);
  if (status != CANVAS_OK) return status;
  status = canvas_pack_idle_weights(ctx, pack, out);
  canvas_pack_free(pack);
  return status;
}

static PyObject *core_idle_weights(PyObject *module, PyObject *pack) {
  struct text in;
  char *out = NULL;
  canvas_status status;
  if (!get_text(module, pack, &in)) return NULL;
  canvas_context *ctx = canvas_context_new();
  Py_BEGIN_ALLOW_THREADS status = idle_weights(ctx, in, &out);
  Py_END_ALLOW_THREADS return finish(module, status, ctx, out);
}

static PyObject *core_broken_rules(PyObject *module, PyObject *args, PyObject *keywords) {
  static char *names[] = {"pack", "options", NULL};
  PyObject *pack, *options;
  struct text in, how;
  char *out = NULL;
  canvas_status status;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "UU", names, &pack, &options) ||
      !get_text(module, pack, &in) || !get_text(module, options, &how))
    return NULL;
  canvas_context *ctx = canvas_context_new();
  if (!ctx) return PyErr_NoMemory(), NULL;
  Py_BEGIN_ALLOW_THREADS status = broken_rules(ctx, in, how, &out);
  Py_END_ALLOW_THREADS return finish(module, status, ctx, out);
}

struct problem {
  canvas_kernel *kernel;
  canvas_targets *targets;
  canvas_budget *budget;
  canvas_solve_options options;
};

static canvas_status read_problem(canvas_context *ctx, const struct text in[4], struct problem *p) {
  canvas_status status = canvas_kernel_parse(ctx, in[0].bytes, in[0].length, &p->kernel);
  if (status == CANVAS_OK)
    status = canvas_targets_parse(ctx, in[1].bytes, in[1].length, &p->targets);
  if (status == CANVAS_OK) status = canvas_budget_parse(ctx, in[2].bytes, in[2].length, &p->budget);
  if (status == CANVAS_OK)
    status = canvas_solve_options_parse(ctx, in[3].bytes, in[3].length, &p->options);
  return status;
}

static canvas_status solve(canvas_context *ctx, const struct text in[4], char **out) {
  struct problem p = {0};
  canvas_pack *pack;
  canvas_status status = read_problem(ctx, in, &p);
  if (status == CANVAS_OK)
    status = canvas_kernel_solve(ctx, p.kernel, p.targets, p.budget, &p.options, &pack);
  if (status == CANVAS_OK) {
    *out = canvas_pack_print(pack);
    canvas_pack_free(pack);
  }
  canvas_kernel_free(p.kernel);
  canvas_targets_free(p.targets);
  canvas_budget_free(p.budget);
  return status;
}

static PyObject *core_solve(PyObject *module, PyObject *args, PyObject *keywords) {
  static char *names[] = {"kernel", "targets", "budget", "options", NULL};
  PyObject *given[4];
  struct text in[4];
  char *out = NULL;
  canvas_status status;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "UUUU", names, &given[0], &given[1], &given[2],
                                   &given[3]))
    return NULL;
  for (int i = 0; i < 4; i++)
    if (!get_text(module, given[i], &in[i])) return NULL;
  canvas_context *ctx = canvas_context_new();
  if (!ctx) return PyErr_NoMemory(), NULL;
  Py_BEGIN_ALLOW_THREADS status = solve(ctx, in, &out);
  Py_END_ALLOW_THREADS return finish(module, status, ctx, out);
}

static canvas_status bind(canvas_context *ctx, struct text in, struct text at, char **out) {
  canvas_kernel *kernel;
  canvas_pack *pack;
  canvas_status status = canvas_kernel_parse(ctx, in.bytes, in.length, &kernel);
  if (status != CANVAS_OK) return status;
  status = canvas_kernel_bind(ctx, kernel, at.bytes, at.length, &pack);
  canvas_kernel_free(kernel);
  if (status != CANVAS_OK) return status;
  *out = canvas_pack_print(pack);
  canvas_pack_free(pack);
  return CANVAS_OK;
}

static PyObject *core_bind(PyObject *module, PyObject *args, PyObject *keywords) {
  static char *names[] = {"kernel", "at", NULL};
  PyObject *kernel, *sizes;
  struct text in, at;
  char *out = NULL;
  canvas_status status;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "UU", names, &kernel, &sizes) ||
      !get_text(module, kernel, &in) || !get_text(module, sizes, &at))
    return NULL;
  canvas_context *ctx = canvas_context_new();
  if (!ctx) return PyErr_NoMemory(), NULL;
  Py_BEGIN_ALLOW_THREADS status = bind(ctx, in, at, &out);
  Py_END_ALLOW_THREADS return finish(module, status, ctx, out);
}

static PyObject *core_strided(PyObject *module, PyObject *args, PyObject *keywords) {
  static char *names[] = {"kernel", "mode", NULL};
  PyObject *kernel;
  struct text in;
  const char *mode;
  char *out = NULL;
  canvas_status status;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "Us", names, &kernel, &mode) ||
      !get_text(module, kernel, &in))
    return NULL;
  canvas_context *ctx = canvas_context_new();
  if (!ctx) return PyErr_NoMemory(), NULL;
  Py_BEGIN_ALLOW_THREADS status = strided(ctx, in, mode, &out);
  Py_END_ALLOW_THREADS return finish(module, status, ctx, out);
}

static canvas_status spell(canvas_context *ctx, struct text in, bool patterns, char **out) {
  canvas_pack *pack;
  canvas_status status = canvas_pack_parse(ctx, in.bytes, in.length, &pack);
  if (status != CANVAS_OK) return status;
  status = canvas_pack_torch(ctx, pack, patterns, out);
  canvas_pack_free(pack);
  return status;
}

static PyObject *core_torch_code(PyObject *module, PyObject *args, PyObject *keywords) {
  static char *names[] = {"pack", "patterns", NULL};
  PyObject *pack;
  struct text in;
  int patterns = 1;
  char *out = NULL;
  canvas_status status;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "U|p", names, &pack, &patterns) ||
      !get_text(module, pack, &in))
    return NULL;
  canvas_context *ctx = canvas_context_new();
  if (!ctx) return PyErr_NoMemory(), NULL;
  Py_BEGIN_ALLOW_THREADS status = spell(ctx, in, patterns, &out);
  Py_END_ALLOW_THREADS return finish(module, status, ctx, out);
}

static canvas_status formula(canvas_context *ctx, struct text in, bool latex, char **out) {
  canvas_pack *pack;
  canvas_status status = canvas_pack_parse(ctx, in.bytes, in.length, &pack);
  if (status != CANVAS_OK) return status;
  *out = canvas_pack_formula(pack, latex);
  canvas_pack_free(pack);
  return CANVAS_OK;
}

static PyObject *core_formula(PyObject *module, PyObject *args, PyObject *keywords) {
  static char *names[] = {"pack", "latex", NULL};
  PyObject *pack;
  struct text in;
  int latex = 0;
  char *out = NULL;
  canvas_status status;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "U|p", names, &pack, &latex) ||
      !get_text(module, pack, &in))
    return NULL;
  canvas_context *ctx = canvas_context_new();
  if (!ctx) return PyErr_NoMemory(), NULL;
  Py_BEGIN_ALLOW_THREADS status = formula(ctx, in, latex, &out);
  Py_END_ALLOW_THREADS return finish(module, status, ctx, out);
}

static canvas_status tvm(canvas_context *ctx, struct text in, const char *name, char **out) {
  canvas_program *program;
  canvas_status status = canvas_program_parse(ctx, in.bytes, in.length, &program);
  if (status != CANVAS_OK) return status;
  status = canvas_program_tvm(ctx, program, name, out);
  canvas_program_free(program);
  return status;
}

static PyObject *core_tvm_code(PyObject *module, PyObject *args, PyObject *keywords) {
  static char *names[] = {"program", "name", NULL};
  PyObject *program;
  const char *name = "";
  struct text in;
  char *out = NULL;
  canvas_status status;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "U|s", names, &program, &name) ||
      !get_text(module, program, &in))
    return NULL;
  canvas_context *ctx = canvas_context_new();
  if (!ctx) return PyErr_NoMemory(), NULL;
  Py_BEGIN_ALLOW_THREADS status = tvm(ctx, in, name, &out);
  Py_END_ALLOW_THREADS return finish(module, status, ctx, out);
}

static canvas_status lower(canvas_context *ctx, struct text in, int target, int64_t batch,
                           char **out) {
  canvas_pack *pack;
  canvas_program *program;
  canvas_status status = canvas_pack_parse(ctx, in.bytes, in.length, &pack);
  if (status != CANVAS_OK) return status;
  status = canvas_pack_lower(ctx, pack, target, batch, &program);
  canvas_pack_free(pack);
  if (status != CANVAS_OK) return status;
  *out = canvas_program_print(program);
  canvas_program_free(program);
  return CANVAS_OK;
}

static PyObject *core_lower(PyObject *module, PyObject *args, PyObject *keywords) {
  static char *names[] = {"pack", "target", "batch", NULL};
  PyObject *pack, *number, *samples = NULL;
  struct text in;
  uint64_t target, batch = 1;
  char *out = NULL;
  canvas_status status;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "UO|O", names, &pack, &number, &samples) ||
      !get_text(module, pack, &in) || !get_whole(module, number, "target", &target) ||
      (samples && !get_whole(module, samples, "batch", &batch)))
    return NULL;
  int index = target < 1 << 30 ? (int)target : 1 << 30;
  if (batch < 1 || batch > 65536)
    return PyErr_Format(state_of(module)->error, "batch is a whole number from 1 to 65536");
  canvas_context *ctx = canvas_context_new();
  if (!ctx) return PyErr_NoMemory(), NULL;
  Py_BEGIN_ALLOW_THREADS status = lower(ctx, in, index, (int64_t)batch, &out);
  Py_END_ALLOW_THREADS return finish(module, status, ctx, out);
}

static canvas_status operator_program(canvas_context *ctx, const char *name, struct text arguments,
                                      char **out) {
  canvas_program *program;
  canvas_status status =
      canvas_operator_program(ctx, name, arguments.bytes, arguments.length, &program);
  if (status != CANVAS_OK) return status;
  *out = canvas_program_print(program);
  canvas_program_free(program);
  return CANVAS_OK;
}

static PyObject *core_operator_program(PyObject *module, PyObject *args, PyObject *keywords) {
  static char *names[] = {"name", "arguments", NULL};
  PyObject *name, *arguments;
  struct text called, in;
  char *out = NULL;
  canvas_status status;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "UU", names, &name, &arguments) ||
      !get_text(module, name, &called) || !get_text(module, arguments, &in))
    return NULL;
  canvas_context *ctx = canvas_context_new();
  if (!ctx) return PyErr_NoMemory(), NULL;
  Py_BEGIN_ALLOW_THREADS status = operator_program(ctx, called.bytes, in, &out);
  Py_END_ALLOW_THREADS return finish(module, status, ctx, out);
}

/* ---- the interpreter ----------------------------------------------------------------------- */

enum { ANSWER_LIMIT = 1 << 28 }; /* elements: 2 GiB */

/* A program with its inputs, which the list `inputs` keeps alive. */
struct evaluation {
  canvas_program *program;
  const double **input;
  const int64_t *elements;
  int64_t count;
};

static canvas_program *parse_program(PyObject *module, PyObject *str) {
  struct text in;
  canvas_status status;
  canvas_program *program = NULL;
  if (!get_text(module, str, &in)) return NULL;
  canvas_context *ctx = canvas_context_new();
  if (!ctx) return PyErr_NoMemory(), NULL;
  Py_BEGIN_ALLOW_THREADS status = canvas_program_parse(ctx, in.bytes, in.length, &program);
  Py_END_ALLOW_THREADS if (status != CANVAS_OK) raise_status(module, status, ctx);
  else canvas_context_free(ctx);
  return program;
}

/* One input: bytes of as many float64 as the program's line says. */
static const double *get_input(PyObject *module, PyObject *bytes, canvas_tensor tensor) {
  char *data;
  Py_ssize_t length;
  if (PyBytes_AsStringAndSize(bytes, &data, &length) < 0) return NULL;
  if (length % 8 == 0 && length / 8 == tensor.elements) return (const double *)data;
  PyErr_Format(state_of(module)->error,
               "input '%s' has %lld elements of 8 bytes each, not %lld bytes", tensor.name,
               (long long)tensor.elements, (long long)length);
  return NULL;
}

static bool get_inputs(PyObject *module, PyObject *list, struct evaluation *e) {
  int count = canvas_program_inputs(e->program);
  if (PyList_Size(list) != count) {
    PyErr_Format(state_of(module)->error, "the program has %d inputs, not %zd", count,
                 PyList_Size(list));
    return false;
  }
  e->input = PyMem_Calloc((size_t)count + 1, sizeof *e->input);
  if (!e->input) return PyErr_NoMemory(), false;
  for (int i = 0; i < count; i++) {
    canvas_tensor tensor = canvas_program_input(e->program, i);
    e->input[i] = get_input(module, PyList_GetItem(list, i), tensor);
    if (!e->input[i]) return false;
  }
  return true;
}

/* Which elements of the first output; NULL pointer and all of them where `bytes` is None. */
static bool get_elements(PyObject *module, PyObject *bytes, struct evaluation *e) {
  char *data;
  Py_ssize_t length;
  e->count = canvas_program_output(e->program, 0).elements;
  if (bytes == Py_None) return true;
  if (PyBytes_AsStringAndSize(bytes, &data, &length) < 0) return false;
  e->elements = (const int64_t *)data;
  e->count = length / 8;
  if (length % 8 == 0) return true;
  PyErr_Format(state_of(module)->error, "elements are int64 of 8 bytes each, not %lld bytes",
               (long long)length);
  return false;
}

static PyObject *run_evaluation(PyObject *module, const struct evaluation *e) {
  canvas_status status;
  if (e->count > ANSWER_LIMIT)
    return PyErr_Format(state_of(module)->error,
                        "%lld elements are over the limit of %d, name fewer in 'elements'",
                        (long long)e->count, ANSWER_LIMIT);
  PyObject *answer = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)e->count * 8);
  if (!answer) return NULL;
  double *out = (double *)PyBytes_AsString(answer);
  canvas_context *ctx = canvas_context_new();
  if (!ctx) return PyErr_NoMemory(), NULL;
  Py_BEGIN_ALLOW_THREADS status =
      canvas_program_evaluate(ctx, e->program, e->input, 0, e->count, e->elements, out);
  Py_END_ALLOW_THREADS if (status != CANVAS_OK) {
    Py_DecRef(answer);
    return raise_status(module, status, ctx);
  }
  canvas_context_free(ctx);
  return answer;
}

/* The list that is given may change while the lock is free: a copy keeps the bytes. */
static PyObject *core_evaluate(PyObject *module, PyObject *args, PyObject *keywords) {
  static char *names[] = {"program", "inputs", "elements", NULL};
  PyObject *text, *inputs, *elements = Py_None, *answer = NULL;
  struct evaluation e = {0};
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "UO|O", names, &text, &inputs, &elements))
    return NULL;
  PyObject *list = PySequence_List(inputs);
  if (!list) return NULL;
  e.program = parse_program(module, text);
  if (e.program && get_inputs(module, list, &e) && get_elements(module, elements, &e))
    answer = run_evaluation(module, &e);
  PyMem_Free(e.input);
  canvas_program_free(e.program);
  Py_DecRef(list);
  return answer;
}

/* ---- machine code -------------------------------------------------------------------------- */

/* (name, dtype, shape, least, most, rising) */
static PyObject *describe_tensor(canvas_tensor t) {
  static const char *const dtypes[] = {"f32", "f64", "bf16", "i32"};
  PyObject *shape = PyTuple_New(t.rank);
  for (int i = 0; shape && i < t.rank; i++) {
    PyObject *size = PyLong_FromLongLong((long long)t.sizes[i]);
    if (!size || PyTuple_SetItem(shape, i, size) < 0) {
      Py_DecRef(shape);
      return NULL;
    }
  }
  return shape ? Py_BuildValue("(ssNLLN)", t.name, dtypes[t.dtype], shape, (long long)t.least,
                               (long long)t.most, PyBool_FromLong(t.rising))
               : NULL;
}

static PyObject *describe_tensors(const canvas_program *program, int count,
                                  canvas_tensor (*tensor)(const canvas_program *, int)) {
  PyObject *list = PyList_New(count);
  for (int i = 0; list && i < count; i++) {
    PyObject *row = describe_tensor(tensor(program, i));
    if (row && !PyList_SetItem(list, i, row)) continue;
    Py_DecRef(list);
    return NULL;
  }
  return list;
}

static PyObject *core_signature(PyObject *module, PyObject *text) {
  canvas_program *program = parse_program(module, text);
  if (!program) return NULL;
  PyObject *inputs =
      describe_tensors(program, canvas_program_inputs(program), canvas_program_input);
  PyObject *outputs =
      inputs ? describe_tensors(program, canvas_program_outputs(program), canvas_program_output)
             : NULL;
  canvas_program_free(program);
  if (inputs && outputs) return Py_BuildValue("(NN)", inputs, outputs);
  if (inputs) Py_DecRef(inputs);
  return NULL;
}

/* A text, or none where the object is None; false with an exception. */
static bool get_optional(PyObject *module, PyObject *given, struct text *out) {
  *out = (struct text){0};
  return given == Py_None || get_text(module, given, out);
}

/* What is compiled; to be freed where all went well. */
struct compiled {
  char *path, *function;
  canvas_prepared prepared;
};

static canvas_status compile_bound(canvas_context *ctx, const canvas_program *program,
                                   const canvas_schedule *schedule, const canvas_machine *machine,
                                   struct compiled *out) {
  const canvas_emit_options options = {.prepare = true};
  canvas_bound *bound = NULL;
  canvas_status status = canvas_bound_new(ctx, program, schedule, machine, &bound);
  if (status == CANVAS_OK) status = canvas_bound_compile(ctx, bound, &options, &out->path);
  if (status == CANVAS_OK) status = canvas_bound_prepared(ctx, bound, &out->prepared);
  if (status == CANVAS_OK && !(out->function = canvas_program_function(program)))
    status = no_memory();
  canvas_bound_free(bound);
  return status;
}

static canvas_status compile_texts(canvas_context *ctx, const canvas_program *program,
                                   const struct text *schedule, const struct text *machine,
                                   struct compiled *out) {
  canvas_schedule *s = NULL;
  canvas_machine *m = NULL;
  canvas_status status = CANVAS_OK;
  if (machine->bytes)
    status = canvas_machine_parse(ctx, machine->bytes, machine->length, &m);
  else
    status = (m = canvas_machine_here()) ? CANVAS_OK : no_memory();
  if (status == CANVAS_OK && schedule->bytes)
    status = canvas_schedule_parse(ctx, schedule->bytes, schedule->length, &s);
  if (status == CANVAS_OK) status = compile_bound(ctx, program, s, m, out);
  canvas_schedule_free(s);
  canvas_machine_free(m);
  return status;
}

/* Which inputs a function takes: all of them where `takes` is NULL. */
static PyObject *inputs_taken(int inputs, const bool *takes) {
  PyObject *list = PyList_New(inputs);
  for (int i = 0; list && i < inputs; i++) {
    PyObject *one = PyBool_FromLong(!takes || takes[i]);
    if (one && !PyList_SetItem(list, i, one)) continue;
    Py_DecRef(list);
    return NULL;
  }
  return list;
}

static PyObject *core_compile(PyObject *module, PyObject *args, PyObject *keywords) {
  static char *names[] = {"program", "schedule", "machine", NULL};
  PyObject *text, *given = Py_None, *on = Py_None;
  struct text schedule, machine;
  struct compiled made = {0};
  canvas_status status;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "U|OO", names, &text, &given, &on)) return NULL;
  if (!get_optional(module, given, &schedule) || !get_optional(module, on, &machine)) return NULL;
  canvas_program *program = parse_program(module, text);
  if (!program) return NULL;
  canvas_context *ctx = canvas_context_new();
  if (!ctx) return PyErr_NoMemory(), NULL;
  int inputs = canvas_program_inputs(program);
  Py_BEGIN_ALLOW_THREADS status = compile_texts(ctx, program, &schedule, &machine, &made);
  canvas_program_free(program);
  Py_END_ALLOW_THREADS if (status != CANVAS_OK) return raise_status(module, status, ctx);
  canvas_context_free(ctx);
  PyObject *answer =
      Py_BuildValue("(NsLNN)", PyUnicode_DecodeFSDefault(made.path), made.function,
                    (long long)made.prepared.bytes, inputs_taken(inputs, made.prepared.prepare),
                    inputs_taken(inputs, made.prepared.rest));
  canvas_string_free(made.path);
  canvas_string_free(made.function);
  canvas_prepared_free(&made.prepared);
  return answer;
}

static PyObject *core_load_object(PyObject *module, PyObject *path) {
  PyObject *bytes;
  void *handle;
  canvas_status status;
  if (!PyUnicode_FSConverter(path, &bytes)) return NULL;
  canvas_context *ctx = canvas_context_new();
  Py_BEGIN_ALLOW_THREADS status = canvas_object_load(ctx, PyBytes_AsString(bytes), &handle);
  Py_END_ALLOW_THREADS Py_DecRef(bytes);
  if (status != CANVAS_OK) return raise_status(module, status, ctx);
  canvas_context_free(ctx);
  return PyLong_FromVoidPtr(handle);
}

/* ---- programs and schedules ------------------------------------------------------------------ */

static canvas_status print_program(canvas_context *ctx, struct text in, char **out) {
  canvas_program *program;
  canvas_status status = canvas_program_parse(ctx, in.bytes, in.length, &program);
  if (status != CANVAS_OK) return status;
  *out = canvas_program_print(program);
  canvas_program_free(program);
  return CANVAS_OK;
}

static PyObject *core_print_program(PyObject *module, PyObject *program) {
  return call_text(module, program, print_program);
}

static PyObject *core_edit_program(PyObject *module, PyObject *args, PyObject *keywords) {
  static char *names[] = {"program", "edit", NULL};
  PyObject *text, *change;
  struct text edit;
  canvas_program *edited = NULL;
  canvas_status status;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "UU", names, &text, &change)) return NULL;
  if (!get_text(module, change, &edit)) return NULL;
  canvas_program *program = parse_program(module, text);
  if (!program) return NULL;
  canvas_context *ctx = canvas_context_new();
  if (!ctx) return PyErr_NoMemory(), NULL;
  Py_BEGIN_ALLOW_THREADS status =
      canvas_program_edit(ctx, program, edit.bytes, edit.length, &edited);
  canvas_program_free(program);
  Py_END_ALLOW_THREADS char *out = status == CANVAS_OK ? canvas_program_print(edited) : NULL;
  canvas_program_free(edited);
  return finish(module, status, ctx, out);
}

static PyObject *core_replay_edits(PyObject *module, PyObject *args, PyObject *keywords) {
  static char *names[] = {"program", "edits", "winograd", NULL};
  PyObject *text, *given;
  struct text edits;
  int winograd = 0;
  canvas_program *edited = NULL;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "UU|i", names, &text, &given, &winograd))
    return NULL;
  if (!get_text(module, given, &edits)) return NULL;
  canvas_program *program = parse_program(module, text);
  if (!program) return NULL;
  canvas_context *ctx = canvas_context_new();
  canvas_status status = canvas_program_replay(ctx, program, edits.bytes, winograd, &edited);
  char *out = status == CANVAS_OK ? canvas_program_print(edited) : NULL;
  canvas_program_free(program);
  canvas_program_free(edited);
  return finish(module, status, ctx, out);
}

/* At most two texts that are made of a bound schedule. */
struct bound_texts {
  char *first, *second;
};
typedef canvas_status (*bound_work)(canvas_context *ctx, const canvas_bound *bound,
                                    struct bound_texts *out);

static canvas_status bound_texts(canvas_context *ctx, const canvas_bound *bound,
                                 struct bound_texts *out) {
  (void)ctx;
  out->first = canvas_bound_program_print(bound);
  out->second = canvas_schedule_print(canvas_bound_schedule(bound));
  return CANVAS_OK;
}

static canvas_status bound_code(canvas_context *ctx, const canvas_bound *bound,
                                struct bound_texts *out) {
  return canvas_bound_emit(ctx, bound, NULL, &out->first);
}

static canvas_status work_bound(canvas_context *ctx, const canvas_program *program,
                                const struct text *schedule, const struct text *machine,
                                bound_work work, struct bound_texts *out) {
  canvas_schedule *s = NULL;
  canvas_machine *m = NULL;
  canvas_bound *bound = NULL;
  canvas_status status = CANVAS_OK;
  if (machine->bytes)
    status = canvas_machine_parse(ctx, machine->bytes, machine->length, &m);
  else
    status = (m = canvas_machine_here()) ? CANVAS_OK : no_memory();
  if (status == CANVAS_OK && schedule->bytes)
    status = canvas_schedule_parse(ctx, schedule->bytes, schedule->length, &s);
  if (status == CANVAS_OK) status = canvas_bound_new(ctx, program, s, m, &bound);
  if (status == CANVAS_OK) status = work(ctx, bound, out);
  canvas_bound_free(bound);
  canvas_schedule_free(s);
  canvas_machine_free(m);
  return status;
}

static PyObject *call_bound(PyObject *module, PyObject *text, PyObject *schedule_given,
                            PyObject *machine_given, bound_work work) {
  struct text schedule, machine;
  struct bound_texts out = {0};
  canvas_status status;
  if (!get_optional(module, schedule_given, &schedule) ||
      !get_optional(module, machine_given, &machine))
    return NULL;
  canvas_program *program = parse_program(module, text);
  if (!program) return NULL;
  canvas_context *ctx = canvas_context_new();
  if (!ctx) return PyErr_NoMemory(), NULL;
  Py_BEGIN_ALLOW_THREADS status = work_bound(ctx, program, &schedule, &machine, work, &out);
  canvas_program_free(program);
  Py_END_ALLOW_THREADS if (!out.second) return finish(module, status, ctx, out.first);
  canvas_context_free(ctx);
  PyObject *answer = out.first ? Py_BuildValue("(ss)", out.first, out.second) : PyErr_NoMemory();
  canvas_string_free(out.first);
  canvas_string_free(out.second);
  return answer;
}

static PyObject *core_bind_schedule(PyObject *module, PyObject *args, PyObject *keywords) {
  static char *names[] = {"program", "schedule", "machine", NULL};
  PyObject *text, *schedule = Py_None, *machine = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "U|OO", names, &text, &schedule, &machine))
    return NULL;
  return call_bound(module, text, schedule, machine, bound_texts);
}

static PyObject *core_emit(PyObject *module, PyObject *args, PyObject *keywords) {
  static char *names[] = {"program", "schedule", "machine", NULL};
  PyObject *text, *schedule = Py_None, *machine = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "U|OO", names, &text, &schedule, &machine))
    return NULL;
  return call_bound(module, text, schedule, machine, bound_code);
}

static canvas_status bound_cost(canvas_context *ctx, const canvas_bound *bound,
                                struct bound_texts *out) {
  return canvas_bound_cost_json(ctx, bound, &out->first);
}

static PyObject *core_predict_program(PyObject *module, PyObject *args, PyObject *keywords) {
  static char *names[] = {"program", "schedule", "machine", NULL};
  PyObject *text, *schedule = Py_None, *machine = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "U|OO", names, &text, &schedule, &machine))
    return NULL;
  return call_bound(module, text, schedule, machine, bound_cost);
}

static canvas_status count_program(canvas_context *ctx, struct text in, char **out) {
  canvas_program *program = NULL;
  canvas_status status = canvas_program_parse(ctx, in.bytes, in.length, &program);
  if (status == CANVAS_OK) status = canvas_program_count_json(ctx, program, out);
  canvas_program_free(program);
  return status;
}

static PyObject *core_count_program(PyObject *module, PyObject *text) {
  return call_text(module, text, count_program);
}

/* ---- networks -------------------------------------------------------------------------------- */

/* `passes` without bytes: all of them. */
static canvas_status optimize_network(canvas_context *ctx, struct text in, struct text passes,
                                      struct text machine, char **out) {
  canvas_network *network = NULL;
  canvas_machine *m = NULL;
  canvas_status status = canvas_network_parse(ctx, in.bytes, in.length, &network);
  if (status == CANVAS_OK && machine.bytes)
    status = canvas_machine_parse(ctx, machine.bytes, machine.length, &m);
  if (status == CANVAS_OK) status = canvas_network_optimize(ctx, network, passes.bytes, m);
  if (status == CANVAS_OK) *out = canvas_network_print(network);
  canvas_machine_free(m);
  canvas_network_free(network);
  return status;
}

static PyObject *core_network_optimize(PyObject *module, PyObject *args, PyObject *keywords) {
  static char *names[] = {"network", "passes", "machine", NULL};
  PyObject *network, *chosen = Py_None, *machine = Py_None;
  struct text in, passes = {0}, bound = {0};
  char *out = NULL;
  canvas_status status;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "U|OO", names, &network, &chosen, &machine))
    return NULL;
  if (!get_text(module, network, &in) || !get_optional(module, chosen, &passes) ||
      !get_optional(module, machine, &bound))
    return NULL;
  canvas_context *ctx = canvas_context_new();
  if (!ctx) return PyErr_NoMemory(), NULL;
  Py_BEGIN_ALLOW_THREADS status = optimize_network(ctx, in, passes, bound, &out);
  Py_END_ALLOW_THREADS return finish(module, status, ctx, out);
}

/* A network evaluated: what it is given, inputs before weights, and what it computes. */
struct network_evaluation {
  canvas_network *network;
  const double **given;
  double **outputs;
};

static canvas_network *parse_network(PyObject *module, PyObject *str) {
  struct text in;
  canvas_status status;
  canvas_network *network = NULL;
  if (!get_text(module, str, &in)) return NULL;
  canvas_context *ctx = canvas_context_new();
  if (!ctx) return PyErr_NoMemory(), NULL;
  Py_BEGIN_ALLOW_THREADS status = canvas_network_parse(ctx, in.bytes, in.length, &network);
  Py_END_ALLOW_THREADS if (status != CANVAS_OK) raise_status(module, status, ctx);
  else canvas_context_free(ctx);
  return network;
}

static bool get_given(PyObject *module, PyObject *list, struct network_evaluation *e) {
  int inputs = canvas_network_count(e->network, CANVAS_INPUT);
  int weights = canvas_network_count(e->network, CANVAS_WEIGHT);
  if (PyList_Size(list) != inputs + weights) {
    PyErr_Format(state_of(module)->error, "the network has %d inputs and %d weights, not %zd",
                 inputs, weights, PyList_Size(list));
    return false;
  }
  e->given = PyMem_Calloc((size_t)(inputs + weights) + 1, sizeof *e->given);
  if (!e->given) return PyErr_NoMemory(), false;
  for (int i = 0; i < inputs + weights; i++) {
    canvas_tensor tensor = i < inputs
                               ? canvas_network_tensor(e->network, CANVAS_INPUT, i)
                               : canvas_network_tensor(e->network, CANVAS_WEIGHT, i - inputs);
    e->given[i] = get_input(module, PyList_GetItem(list, i), tensor);
    if (!e->given[i]) return false;
  }
  return true;
}

/* A list of bytes, into which e->outputs lead. */
static PyObject *make_outputs(PyObject *module, struct network_evaluation *e) {
  int count = canvas_network_count(e->network, CANVAS_OUTPUT);
  PyObject *list = PyList_New(count);
  e->outputs = PyMem_Calloc((size_t)count + 1, sizeof *e->outputs);
  if (list && !e->outputs) PyErr_NoMemory();
  for (int i = 0; list && e->outputs && i < count; i++) {
    int64_t elements = canvas_network_tensor(e->network, CANVAS_OUTPUT, i).elements;
    PyObject *bytes = NULL;
    if (elements > ANSWER_LIMIT)
      PyErr_Format(state_of(module)->error, "an output has %lld elements, the limit is %d",
                   (long long)elements, ANSWER_LIMIT);
    else
      bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)elements * 8);
    if (bytes) e->outputs[i] = (double *)PyBytes_AsString(bytes);
    if (!bytes || PyList_SetItem(list, i, bytes) < 0) break;
  }
  if (!PyErr_Occurred()) return list;
  if (list) Py_DecRef(list);
  return NULL;
}

static PyObject *evaluate_network(PyObject *module, struct network_evaluation *e) {
  canvas_status status;
  PyObject *list = make_outputs(module, e);
  if (!list) return NULL;
  const double **weights = e->given + canvas_network_count(e->network, CANVAS_INPUT);
  canvas_context *ctx = canvas_context_new();
  if (!ctx) return PyErr_NoMemory(), NULL;
  Py_BEGIN_ALLOW_THREADS status =
      canvas_network_evaluate(ctx, e->network, e->given, weights, e->outputs);
  Py_END_ALLOW_THREADS if (status != CANVAS_OK) {
    Py_DecRef(list);
    return raise_status(module, status, ctx);
  }
  canvas_context_free(ctx);
  return list;
}

static PyObject *core_network_evaluate(PyObject *module, PyObject *args, PyObject *keywords) {
  static char *names[] = {"network", "arrays", NULL};
  PyObject *text, *arrays, *answer = NULL;
  struct network_evaluation e = {0};
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "UO", names, &text, &arrays)) return NULL;
  PyObject *list = PySequence_List(arrays);
  if (!list) return NULL;
  e.network = parse_network(module, text);
  if (e.network && get_given(module, list, &e)) answer = evaluate_network(module, &e);
  PyMem_Free(e.given);
  PyMem_Free(e.outputs);
  canvas_network_free(e.network);
  Py_DecRef(list);
  return answer;
}

/* ---- networks as code ------------------------------------------------------------------------ */

/* What network_compile and network_source are asked for. */
struct network_wanted {
  struct text network, machine;
  PyObject *log_path; /* bytes; NULL: no log */
  int threads, optimize;
  const char *name;
};

/* What they make of it; `code` or `files`. */
struct network_made {
  canvas_network *network;
  canvas_network_code *code;
  canvas_network_file *files;
};

static bool get_network_wanted(PyObject *module, PyObject *args, PyObject *keywords,
                               struct network_wanted *out) {
  static char *names[] = {"network", "log", "threads", "machine", "optimize", "name", NULL};
  PyObject *network, *log = Py_None, *machine = Py_None;
  *out = (struct network_wanted){.threads = 1, .optimize = 1};
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "U|OiOpz", names, &network, &log, &out->threads,
                                   &machine, &out->optimize, &out->name))
    return false;
  if (out->threads < 1 || out->threads > 1024) {
    PyErr_SetString(state_of(module)->error, "threads is a whole number from 1 to 1024");
    return false;
  }
  return get_text(module, network, &out->network) && get_optional(module, machine, &out->machine) &&
         (log == Py_None || PyUnicode_FSConverter(log, &out->log_path));
}

static canvas_status make_network(canvas_context *ctx, const struct network_wanted *w, bool files,
                                  struct network_made *out) {
  canvas_network_options o = {.threads = w->threads, .name = w->name};
  canvas_machine *machine = NULL;
  canvas_log *log = NULL;
  canvas_status status =
      canvas_network_parse(ctx, w->network.bytes, w->network.length, &out->network);
  if (status == CANVAS_OK && w->machine.bytes)
    status = canvas_machine_parse(ctx, w->machine.bytes, w->machine.length, &machine);
  if (status == CANVAS_OK && w->log_path)
    status = canvas_log_read(ctx, PyBytes_AsString(w->log_path), &log);
  if (status == CANVAS_OK && w->optimize)
    status = canvas_network_optimize(ctx, out->network, NULL, machine);
  o.machine = machine;
  o.log = log;
  if (status == CANVAS_OK)
    status = files ? canvas_network_files(ctx, out->network, &o, &out->files)
                   : canvas_network_compile(ctx, out->network, &o, &out->code);
  canvas_log_free(log);
  canvas_machine_free(machine);
  return status;
}

static void network_made_free(struct network_made *m) {
  canvas_network_files_free(m->files);
  canvas_network_code_free(m->code);
  canvas_network_free(m->network);
}

/* (name, dtype, shape), of a weight (name, source, dtype, shape). */
static PyObject *describe_network_tensor(const canvas_network *network, canvas_role role,
                                         int index) {
  PyObject *row = describe_tensor(canvas_network_tensor(network, role, index));
  if (!row) return NULL;
  PyObject *name = PyTuple_GetItem(row, 0), *dtype = PyTuple_GetItem(row, 1);
  PyObject *shape = PyTuple_GetItem(row, 2);
  PyObject *answer =
      role == CANVAS_WEIGHT
          ? Py_BuildValue("(OzOO)", name, canvas_network_source(network, index), dtype, shape)
          : Py_BuildValue("(OOO)", name, dtype, shape);
  Py_DecRef(row);
  return answer;
}

static PyObject *describe_network_tensors(const canvas_network *network, canvas_role role) {
  int count = canvas_network_count(network, role);
  PyObject *list = PyList_New(count);
  for (int i = 0; list && i < count; i++) {
    PyObject *row = describe_network_tensor(network, role, i);
    if (row && !PyList_SetItem(list, i, row)) continue;
    Py_DecRef(list);
    return NULL;
  }
  return list;
}

/* Programs whose schedule is a simpler one. */
static PyObject *describe_simpler(const canvas_network_code *code, int count) {
  PyObject *list = PyList_New(0);
  for (int i = 0; list && i < count; i++) {
    canvas_network_call c = canvas_network_code_call(code, i);
    PyObject *name = c.simpler ? PyUnicode_FromString(c.program) : NULL;
    bool bad = c.simpler && (!name || PyList_Append(list, name));
    if (name) Py_DecRef(name);
    if (!bad) continue;
    Py_DecRef(list);
    return NULL;
  }
  return list;
}

/* (program, results, macs, bytes) */
static PyObject *describe_network_calls(const canvas_network_code *code, int count) {
  PyObject *list = PyList_New(count);
  for (int i = 0; list && i < count; i++) {
    canvas_network_call c = canvas_network_code_call(code, i);
    PyObject *row =
        Py_BuildValue("(ssLL)", c.program, c.results, (long long)c.flops / 2, (long long)c.bytes);
    if (row && !PyList_SetItem(list, i, row)) continue;
    Py_DecRef(list);
    return NULL;
  }
  return list;
}

static PyObject *describe_network(const struct network_made *m) {
  canvas_network_facts f = canvas_network_code_describe(m->code);
  char *text = canvas_network_print(m->network);
  if (!text) return PyErr_NoMemory();
  PyObject *answer = Py_BuildValue(
      "{sNsssLsLsssNsNsNsNsNsisi}", "path", PyUnicode_DecodeFSDefault(f.path), "function",
      f.function, "packed", (long long)f.packed_bytes, "arena", (long long)f.arena_bytes, "text",
      text, "weights", describe_network_tensors(m->network, CANVAS_WEIGHT), "inputs",
      describe_network_tensors(m->network, CANVAS_INPUT), "outputs",
      describe_network_tensors(m->network, CANVAS_OUTPUT), "calls",
      describe_network_calls(m->code, f.calls), "simpler", describe_simpler(m->code, f.calls),
      "made", f.made, "found", f.found);
  canvas_string_free(text);
  return answer;
}

static PyObject *describe_files(const canvas_network_file *files) {
  PyObject *answer = PyDict_New();
  for (int i = 0; answer && files[i].name; i++) {
    PyObject *text = PyUnicode_FromString(files[i].text);
    bool good = text && !PyDict_SetItemString(answer, files[i].name, text);
    if (text) Py_DecRef(text);
    if (good) continue;
    Py_DecRef(answer);
    return NULL;
  }
  return answer;
}

static PyObject *network_code(PyObject *module, PyObject *args, PyObject *keywords, bool files) {
  struct network_wanted wanted;
  struct network_made made = {0};
  canvas_status status;
  if (!get_network_wanted(module, args, keywords, &wanted)) return NULL;
  canvas_context *ctx = canvas_context_new();
  if (!ctx) return PyErr_NoMemory(), NULL;
  Py_BEGIN_ALLOW_THREADS status = make_network(ctx, &wanted, files, &made);
  Py_END_ALLOW_THREADS if (wanted.log_path) Py_DecRef(wanted.log_path);
  PyObject *answer = NULL;
  if (status == CANVAS_OK) answer = files ? describe_files(made.files) : describe_network(&made);
  network_made_free(&made);
  if (status != CANVAS_OK) return raise_status(module, status, ctx);
  canvas_context_free(ctx);
  return answer;
}

static PyObject *core_network_compile(PyObject *module, PyObject *args, PyObject *keywords) {
  return network_code(module, args, keywords, false);
}

static PyObject *core_network_source(PyObject *module, PyObject *args, PyObject *keywords) {
  return network_code(module, args, keywords, true);
}

/* ---- measuring ------------------------------------------------------------------------------- */

#define MEASURER "canvas measurer"

/* What a capsule holds. */
struct measuring {
  canvas_program *program;
  canvas_measurer *measurer;
};

static void measuring_free(PyObject *capsule) {
  struct measuring *m = PyCapsule_GetPointer(capsule, MEASURER);
  canvas_measurer_free(m->measurer);
  canvas_program_free(m->program);
  PyMem_Free(m);
}

static PyObject *core_measurer(PyObject *module, PyObject *args, PyObject *keywords) {
  static char *names[] = {"program", "repeats", "seconds", "threads",
                          "seed",    "screen",  "cold",    NULL};
  PyObject *text;
  canvas_run_options options = {.threads = 1};
  unsigned long long seed = 1;
  int screen = 0, cold = 0;
  canvas_status status;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "U|idiKpp", names, &text, &options.repeats,
                                   &options.seconds, &options.threads, &seed, &screen, &cold))
    return NULL;
  options.seed = seed, options.screen = screen, options.cold = cold;
  struct measuring *m = PyMem_Calloc(1, sizeof *m);
  if (!m) return PyErr_NoMemory();
  m->program = parse_program(module, text);
  if (!m->program) return PyMem_Free(m), NULL;
  canvas_context *ctx = canvas_context_new();
  if (!ctx) return PyErr_NoMemory(), NULL;
  Py_BEGIN_ALLOW_THREADS status = canvas_measurer_new(ctx, m->program, &options, &m->measurer);
  Py_END_ALLOW_THREADS if (status != CANVAS_OK) {
    canvas_program_free(m->program);
    PyMem_Free(m);
    return raise_status(module, status, ctx);
  }
  canvas_context_free(ctx);
  return PyCapsule_New(m, MEASURER, measuring_free);
}

/* Candidates: of each its program and its schedule, and both bound. */
struct candidates {
  int count;
  struct text *texts; /* two of each */
  canvas_program **programs;
  canvas_schedule **schedules;
  canvas_bound **bound;
  const canvas_bound **legal;          /* those that could be bound, ... */
  canvas_verdict *verdicts, *of_legal; /* ... and the verdicts on them */
};

static bool candidates_new(struct candidates *c, Py_ssize_t count) {
  size_t n = (size_t)count;
  *c = (struct candidates){.count = (int)count,
                           .texts = PyMem_Calloc(2 * n + 1, sizeof *c->texts),
                           .programs = PyMem_Calloc(n + 1, sizeof(canvas_program *)),
                           .schedules = PyMem_Calloc(n + 1, sizeof(canvas_schedule *)),
                           .bound = PyMem_Calloc(n + 1, sizeof(canvas_bound *)),
                           .legal = PyMem_Calloc(n + 1, sizeof(canvas_bound *)),
                           .verdicts = PyMem_Calloc(n + 1, sizeof(canvas_verdict)),
                           .of_legal = PyMem_Calloc(n + 1, sizeof(canvas_verdict))};
  return c->texts && c->programs && c->schedules && c->bound && c->legal && c->verdicts &&
         c->of_legal;
}

static void candidates_free(struct candidates *c) {
  for (int i = 0; i < c->count; i++) {
    if (c->bound) canvas_bound_free(c->bound[i]);
    if (c->schedules) canvas_schedule_free(c->schedules[i]);
    if (c->programs) canvas_program_free(c->programs[i]);
  }
  PyMem_Free(c->texts), PyMem_Free(c->programs), PyMem_Free(c->schedules);
  PyMem_Free(c->bound), PyMem_Free(c->legal);
  PyMem_Free(c->verdicts), PyMem_Free(c->of_legal);
}

static bool get_candidates(PyObject *module, PyObject *list, struct candidates *c) {
  for (int i = 0; i < c->count; i++) {
    PyObject *pair = PyList_GetItem(list, i), *program, *schedule;
    if (!PyTuple_Check(pair) || !PyArg_ParseTuple(pair, "UO", &program, &schedule)) {
      if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "a candidate is (program, schedule)");
      return false;
    }
    if (!get_text(module, program, &c->texts[2 * i]) ||
        !get_optional(module, schedule, &c->texts[2 * i + 1]))
      return false;
  }
  return true;
}

/* One candidate bound for a machine; what is wrong with it is its verdict. Fails where there is no memory. */
static canvas_status bind_candidate(canvas_context *ctx, struct candidates *c, int i,
                                    const canvas_machine *machine) {
  const struct text *program = &c->texts[2 * i], *schedule = &c->texts[2 * i + 1];
  canvas_status status =
      canvas_program_parse(ctx, program->bytes, program->length, &c->programs[i]);
  if (status == CANVAS_OK && schedule->bytes)
    status = canvas_schedule_parse(ctx, schedule->bytes, schedule->length, &c->schedules[i]);
  if (status == CANVAS_OK)
    status = canvas_bound_new(ctx, c->programs[i], c->schedules[i], machine, &c->bound[i]);
  if (status == CANVAS_OK || status == CANVAS_IO) return status;
  c->verdicts[i].failure = CANVAS_FAILED_CHECK;
  snprintf(c->verdicts[i].message, sizeof c->verdicts[i].message, "%s",
           canvas_context_message(ctx));
  return CANVAS_OK;
}

/* Ctrl-C: in the main thread, what a signal raises is seen while a child is waited for. */
static bool is_interrupted(void *data) {
  PyGILState_STATE state = PyGILState_Ensure();
  bool raised = PyErr_Occurred() || PyErr_CheckSignals() != 0;
  (void)data;
  PyGILState_Release(state);
  return raised;
}

struct raised {
  PyObject *type, *value, *trace;
};

static struct raised take_raised(void) {
  struct raised r;
  PyErr_Fetch(&r.type, &r.value, &r.trace);
  PyErr_NormalizeException(&r.type, &r.value, &r.trace);
  return r;
}

/* With what was found until then as its attribute `name`. Takes `found`. */
static void raise_again(struct raised r, const char *name, PyObject *found) {
  if (!found || PyObject_SetAttrString(r.value, name, found)) PyErr_Clear();
  Py_XDECREF(found);
  PyErr_Restore(r.type, r.value, r.trace);
}

/* Those that are legal are measured together. */
static canvas_status measure_bound(canvas_context *ctx, canvas_measurer *measurer,
                                   struct candidates *c) {
  canvas_machine *machine = canvas_machine_here();
  canvas_status status = machine ? CANVAS_OK : no_memory();
  int count = 0;
  for (int i = 0; status == CANVAS_OK && i < c->count; i++) {
    status = bind_candidate(ctx, c, i, machine);
    if (c->bound[i]) c->legal[count++] = c->bound[i];
  }
  if (status == CANVAS_OK)
    status = canvas_measurer_run(ctx, measurer, c->legal, count, c->of_legal);
  for (int i = 0, next = 0; status == CANVAS_OK && i < c->count; i++)
    if (c->bound[i]) c->verdicts[i] = c->of_legal[next++];
  canvas_machine_free(machine);
  return status;
}

static PyObject *verdict_answer(const canvas_verdict *v) {
  return Py_BuildValue("{s:s,s:s,s:d,s:d,s:d,s:d,s:i}", "failure", canvas_failure_name(v->failure),
                       "message", v->message, "median", v->median, "lower", v->lower, "upper",
                       v->upper, "cold", v->cold, "repeats", v->repeats);
}

/* `cut`: it was interrupted, and what it did not come to has None. */
static PyObject *verdicts_answer(const struct candidates *c, bool cut) {
  PyObject *answer = PyList_New(c->count);
  for (int i = 0; answer && i < c->count; i++) {
    bool none = cut && c->verdicts[i].failure == CANVAS_FAILED_TIMEOUT;
    PyObject *one = none ? Py_NewRef(Py_None) : verdict_answer(&c->verdicts[i]);
    if (one && !PyList_SetItem(answer, i, one)) continue;
    Py_DecRef(answer);
    return NULL;
  }
  return answer;
}

static PyObject *core_measure(PyObject *module, PyObject *args) {
  PyObject *capsule, *given, *answer = NULL;
  struct candidates c;
  if (!PyArg_ParseTuple(args, "OO", &capsule, &given)) return NULL;
  struct measuring *m = PyCapsule_GetPointer(capsule, MEASURER);
  PyObject *list = m ? PySequence_List(given) : NULL;
  if (!list) return NULL;
  if (!candidates_new(&c, PyList_Size(list))) {
    PyErr_NoMemory();
  } else if (get_candidates(module, list, &c)) {
    canvas_status status;
    canvas_context *ctx = canvas_context_new();
    if (!ctx) return PyErr_NoMemory(), NULL;
    canvas_stop_when(is_interrupted, NULL);
    Py_BEGIN_ALLOW_THREADS status = measure_bound(ctx, m->measurer, &c);
    Py_END_ALLOW_THREADS canvas_stop_when(NULL, NULL);
    if (PyErr_Occurred()) {
      struct raised interrupt = take_raised();
      raise_again(interrupt, "verdicts", status == CANVAS_OK ? verdicts_answer(&c, true) : NULL);
      canvas_context_free(ctx);
    } else if (status != CANVAS_OK) {
      raise_status(module, status, ctx);
    } else {
      canvas_context_free(ctx);
      answer = verdicts_answer(&c, false);
    }
  }
  candidates_free(&c);
  Py_DecRef(list);
  return answer;
}

/* ---- tuning -------------------------------------------------------------------------------- */

/* What a search is asked for, and what it came to. */
struct tuning {
  canvas_tune_options options;
  canvas_tuned facts;
  char *program, *edits, *schedule;
};

static canvas_status tune_texts(canvas_context *ctx, const canvas_program *program,
                                const struct text *machine, struct tuning *t) {
  canvas_machine *m = NULL;
  canvas_bound *bound = NULL;
  canvas_status status = CANVAS_OK;
  if (machine->bytes)
    status = canvas_machine_parse(ctx, machine->bytes, machine->length, &m);
  else
    status = (m = canvas_machine_here()) ? CANVAS_OK : no_memory();
  if (status == CANVAS_OK) status = canvas_tune(ctx, program, m, &t->options, &bound, &t->facts);
  if (status == CANVAS_OK) {
    t->program = canvas_bound_program_print(bound);
    t->edits = canvas_bound_edits(bound);
    t->schedule = canvas_schedule_print(canvas_bound_schedule(bound));
    if (!t->program || !t->schedule) status = no_memory();
  }
  canvas_bound_free(bound);
  canvas_machine_free(m);
  return status;
}

static PyObject *tuning_answer(const struct tuning *t) {
  const canvas_tuned *f = &t->facts;
  PyObject *failures = PyDict_New();
  for (int i = 0; failures && i < CANVAS_FAILURES; i++) {
    PyObject *count = PyLong_FromLong(f->failures[i]);
    if (!count || PyDict_SetItemString(failures, canvas_failure_name((canvas_failure)i), count)) {
      Py_DecRef(failures);
      return NULL;
    }
    Py_DecRef(count);
  }
  return Py_BuildValue(
      "{s:s,s:s,s:s,s:s,s:s,s:s,s:d,s:d,s:d,s:d,s:d,s:i,s:L,s:i,s:d,s:N}", "program", t->program,
      "edits", t->edits, "schedule", t->schedule, "rule", f->rule, "failure",
      canvas_failure_name(f->verdict.failure), "message", f->verdict.message, "predicted",
      f->predicted, "median", f->verdict.repeats ? f->verdict.median : 0.0, "before", f->before,
      "after", f->after, "first", f->first, "sketches", f->sketches, "points", (long long)f->points,
      "trials", f->trials, "seconds", f->seconds, "failures", failures);
}

static PyObject *core_tune(PyObject *module, PyObject *args, PyObject *keywords) {
  static char *names[] = {"program",  "method", "trials",  "seconds",  "seed",    "threads",  "log",
                          "winograd", "sketch", "machine", "patience", "timeout", "together", NULL};
  PyObject *text, *sketch_given = Py_None, *on = Py_None, *log = Py_None, *path = NULL;
  struct text sketch, machine;
  struct tuning t = {0};
  canvas_tune_options *o = &t.options;
  unsigned long long seed = 1;
  int winograd = 0;
  canvas_status status;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "U|sidKiOpOOidi", names, &text, &o->method,
                                   &o->trials, &o->seconds, &seed, &o->threads, &log, &winograd,
                                   &sketch_given, &on, &o->patience, &o->timeout, &o->together))
    return NULL;
  if (!get_optional(module, sketch_given, &sketch) || !get_optional(module, on, &machine))
    return NULL;
  if (log != Py_None && !PyUnicode_FSConverter(log, &path)) return NULL;
  canvas_program *program = parse_program(module, text);
  if (!program) {
    Py_XDECREF(path);
    return NULL;
  }
  o->seed = seed;
  o->winograd = winograd;
  o->sketch = sketch.bytes;
  o->log = path ? PyBytes_AsString(path) : NULL;
  canvas_context *ctx = canvas_context_new();
  if (!ctx) return PyErr_NoMemory(), NULL;
  canvas_stop_when(is_interrupted, NULL);
  Py_BEGIN_ALLOW_THREADS status = tune_texts(ctx, program, &machine, &t);
  canvas_program_free(program);
  Py_END_ALLOW_THREADS canvas_stop_when(NULL, NULL);
  Py_XDECREF(path);
  bool interrupted = PyErr_Occurred() != NULL;
  if (status != CANVAS_OK && !interrupted) return raise_status(module, status, ctx);
  canvas_context_free(ctx);
  struct raised interrupt = {0};
  if (interrupted) interrupt = take_raised();
  PyObject *answer = status == CANVAS_OK ? tuning_answer(&t) : NULL;
  canvas_string_free(t.program);
  canvas_string_free(t.edits);
  canvas_string_free(t.schedule);
  if (!interrupted) return answer;
  raise_again(interrupt, "found", answer);
  return NULL;
}

/* (program, schedule) of the best record, None where there is none. */
static PyObject *core_logged(PyObject *module, PyObject *args) {
  PyObject *text, *path, *answer = NULL;
  canvas_log *log = NULL;
  canvas_bound *bound = NULL;
  canvas_status status;
  canvas_log_taken taken;
  if (!PyArg_ParseTuple(args, "UO&", &text, PyUnicode_FSConverter, &path)) return NULL;
  canvas_program *program = parse_program(module, text);
  if (!program) {
    Py_DecRef(path);
    return NULL;
  }
  canvas_context *ctx = canvas_context_new();
  if (!ctx) return PyErr_NoMemory(), NULL;
  canvas_machine *machine = canvas_machine_here();
  char *compiler = canvas_compiler_name(ctx);
  const canvas_log_place here = {.machine = machine, .compiler = compiler, .threads = 1};
  status = !machine   ? no_memory()
           : compiler ? canvas_log_read(ctx, PyBytes_AsString(path), &log)
                      : CANVAS_IO;
  if (status == CANVAS_OK) status = canvas_log_take(ctx, log, program, &here, &bound, &taken);
  if (status == CANVAS_OK) {
    char *edited = canvas_bound_program_print(bound);
    char *schedule = canvas_schedule_print(canvas_bound_schedule(bound));
    answer = edited && schedule ? Py_BuildValue("(ss)", edited, schedule) : PyErr_NoMemory();
    canvas_string_free(edited);
    canvas_string_free(schedule);
  }
  canvas_bound_free(bound);
  canvas_log_free(log);
  canvas_string_free(compiler);
  canvas_machine_free(machine);
  canvas_program_free(program);
  Py_DecRef(path);
  if (status != CANVAS_OK && status != CANVAS_NONE) return raise_status(module, status, ctx);
  canvas_context_free(ctx);
  return status == CANVAS_OK ? answer : Py_NewRef(Py_None);
}

/* ---- the command and facts ----------------------------------------------------------------- */

static PyObject *core_version(PyObject *module, PyObject *unused) {
  (void)module, (void)unused;
  return PyUnicode_FromString(canvas_version());
}

static PyObject *core_primitives(PyObject *module, PyObject *unused) {
  (void)module, (void)unused;
  char *text = canvas_primitives_print(CANVAS_JSON);
  PyObject *answer = text ? PyUnicode_FromString(text) : PyErr_NoMemory();
  canvas_string_free(text);
  return answer;
}

/* Words as the file system writes them; `words` keeps them alive. */
static bool get_words(PyObject *list, PyObject *words, char **argv) {
  for (Py_ssize_t i = 0; i < PyList_Size(list); i++) {
    PyObject *word;
    if (!PyUnicode_FSConverter(PyList_GetItem(list, i), &word)) return false;
    if (PyList_SetItem(words, i, word) < 0) return false;
    argv[i] = PyBytes_AsString(word);
  }
  return true;
}

static PyObject *core_main(PyObject *module, PyObject *sequence) {
  if (PyUnicode_Check(sequence)) /* a sequence of letters, but never meant so */
    return PyErr_Format(PyExc_TypeError, "expected a list of str, not str");
  PyObject *list = PySequence_List(sequence), *answer = NULL;
  if (!list) return NULL;
  Py_ssize_t count = PyList_Size(list);
  PyObject *words = PyList_New(count);
  char **argv = PyMem_Calloc((size_t)count + 1, sizeof *argv);
  if (words && argv && count < 1 << 20 && get_words(list, words, argv)) {
    int status;
    Py_BEGIN_ALLOW_THREADS status = canvas_main((int)count, argv);
    Py_END_ALLOW_THREADS answer = PyLong_FromLong(status);
  }
  if (!answer && !PyErr_Occurred()) PyErr_NoMemory();
  if (!answer && PyErr_ExceptionMatches(PyExc_ValueError)) {
    PyErr_Clear();
    PyErr_SetString(state_of(module)->error, "a word of the command line holds a NUL");
  }
  PyMem_Free(argv);
  if (words) Py_DecRef(words);
  Py_DecRef(list);
  return answer;
}

/* ---- the module ---------------------------------------------------------------------------- */

static PyMethodDef methods[] = {CORE_METHODS(METHOD){NULL, NULL, 0, NULL}};
static PyMethodDef testing_methods[] = {TESTING_METHODS(METHOD){NULL, NULL, 0, NULL}};

/* Adds the module `_testing`, whose functions get `module` as theirs: its state has the exceptions. */
static int add_testing(PyObject *module) {
  PyObject *testing = PyModule_New("canvas._core._testing");
  if (!testing) return -1;
  for (PyMethodDef *row = testing_methods; row->ml_name; row++) {
    PyObject *function = PyCFunction_NewEx(row, module, NULL);
    int failed = function ? PyModule_AddObjectRef(testing, row->ml_name, function) : -1;
    Py_XDECREF(function);
    if (failed < 0) {
      Py_DECREF(testing);
      return -1;
    }
  }
  int status = PyModule_AddObjectRef(module, "_testing", testing);
  Py_DECREF(testing);
  return status;
}

static int execute(PyObject *module) {
  struct state *s = state_of(module);
  s->error = PyErr_NewExceptionWithDoc("canvas.CanvasError", "Bad input, in one message.",
                                       PyExc_ValueError, NULL);
  if (!s->error || PyModule_AddObjectRef(module, "Error", s->error) < 0) return -1;
  s->no_solution = PyErr_NewExceptionWithDoc(
      "canvas.NoSolution", "There is no solution; the message says why.", s->error, NULL);
  if (!s->no_solution || PyModule_AddObjectRef(module, "NoSolution", s->no_solution) < 0) return -1;
  if (PyModule_AddIntConstant(module, "SAMPLER_VERSION", CANVAS_SAMPLER_VERSION) < 0) return -1;
  return add_testing(module);
}

static int traverse(PyObject *module, visitproc visit, void *arg) {
  struct state *s = state_of(module);
  Py_VISIT(s->error);
  Py_VISIT(s->no_solution);
  return 0;
}

static int clear(PyObject *module) {
  struct state *s = state_of(module);
  Py_CLEAR(s->error);
  Py_CLEAR(s->no_solution);
  return 0;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, (void *)execute}, {0, NULL}};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "canvas._core",
    .m_doc = "The core of Canvas: kernels, draws, sizes, costs, code; text in, text out.",
    .m_size = sizeof(struct state),
    .m_methods = methods,
    .m_slots = slots,
    .m_traverse = traverse,
    .m_clear = clear,
};

PyMODINIT_FUNC PyInit__core(void);

PyMODINIT_FUNC PyInit__core(void) {
  return PyModuleDef_Init(&definition);
}
