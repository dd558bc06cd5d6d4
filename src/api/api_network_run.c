/* Compiled networks, loaded and run from C. */
#define _GNU_SOURCE /* madvise */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "api/api_call.h"
#include "api/handle.h"
#include "base/memory.h"
#include "program/program_cost.h"
#include "run/cache.h"

enum { HUGE_PAGE = 2 << 20 };

/* ---- what is given -------------------------------------------------------------------------------- */

static canvas_status check_element(canvas_context *ctx, const struct network_tensor *t, int64_t at,
                                   int32_t value, int32_t before, int64_t row) {
  const struct program_tensor *as = &t->as;
  if (value < as->least || value > as->most)
    return fail(ctx, CANVAS_BAD_INPUT,
                "element %lld of '%.40s' is %d, it has to be a whole number from %lld to %lld",
                (long long)at, t->name, value, (long long)as->least, (long long)as->most);
  if (!as->rising) return CANVAS_OK;
  int64_t place = at % row;
  bool good =
      (place ? value >= before : value == as->least) && (place < row - 1 || value == as->most);
  return good
             ? CANVAS_OK
             : fail(ctx, CANVAS_BAD_INPUT,
                    "'%.40s' has to rise along its last axis from %lld to %lld, element %lld is %d",
                    t->name, (long long)as->least, (long long)as->most, (long long)at, value);
}

static canvas_status check_indices(canvas_context *ctx, const struct network_tensor *t,
                                   const int32_t *data) {
  int64_t elements = 1, row = t->as.rank ? t->as.axes[t->as.rank - 1].size : 1;
  for (int i = 0; i < t->as.rank; i++) elements *= t->as.axes[i].size;
  for (int64_t i = 0; i < elements; i++)
    TRY(check_element(ctx, t, i, data[i], i ? data[i - 1] : 0, row));
  return CANVAS_OK;
}

static canvas_status check_tensors(canvas_context *ctx, const struct network_tensors *list,
                                   const void *const *given) {
  if (list->count && !given)
    return fail(ctx, CANVAS_BAD_INPUT, "the array of tensors is NULL, give one");
  for (int i = 0; i < list->count; i++) {
    const struct network_tensor *t = &list->data[i];
    size_t size = (size_t)program_dtype_bytes(t->as.dtype);
    if (!given[i] || (uintptr_t)given[i] % size)
      return fail(ctx, CANVAS_BAD_INPUT, "'%.40s' is given by a pointer to its elements, not by %s",
                  t->name, given[i] ? "one between two of them" : "NULL");
    if (t->as.dtype == PROGRAM_I32) TRY(check_indices(ctx, t, given[i]));
  }
  return CANVAS_OK;
}

/* ---- loading -------------------------------------------------------------------------------------- */

/* Much of it in large pages, where the system has them. */
static void *memory(int64_t bytes) {
  size_t unit = bytes < HUGE_PAGE ? 64 : HUGE_PAGE, size = ((size_t)bytes / unit + 1) * unit;
  void *place = aligned_alloc(unit, size);
#ifdef MADV_HUGEPAGE
  if (place && unit == HUGE_PAGE) madvise(place, size, MADV_HUGEPAGE);
#endif
  return place;
}

static void close_object(void *object) {
  if (object) dlclose(object);
}

static void *symbol(const canvas_network_code *code, void *object, const char *suffix) {
  struct buf name = {0};
  buf_printf(&name, "%s%s", code->function, suffix);
  void *found = dlsym(object, name.text);
  buf_free(&name);
  return found;
}

static canvas_status open_object(canvas_context *ctx, canvas_network_code *code) {
  void *object;
  TRY(load_file(ctx, code->file, code->path, &object));
  struct mem_deferred closing;
  mem_defer(&closing, close_object, object);
  *(void **)&code->load = symbol(code, object, "_load");
  *(void **)&code->run = symbol(code, object, "_run");
  *(void **)&code->call = symbol(code, object, "_call");
  mem_undefer(&closing);
  code->object = object;
  if (code->load && code->run && code->call) {
    keep_openmp(code->object);
    return CANVAS_OK;
  }
  const char *why = dlerror();
  fail(ctx, CANVAS_IO, "what was compiled cannot be loaded: %.900s", why ? why : code->path);
  cache_drop(code->path);
  network_code_unload(code);
  return CANVAS_IO;
}

void network_code_unload(canvas_network_code *code) {
  if (code->object) dlclose(code->object);
  mem_free(code->weight);
  mem_free(code->packed);
  mem_free(code->kept);
  code->object = code->packed = code->kept = NULL;
  code->weight = NULL;
}

static canvas_status no_memory(canvas_context *ctx, const canvas_network_code *code) {
  return fail(ctx, CANVAS_IO, "no memory for network '%.40s'", code->function);
}

API_STATUS(canvas_network_code_load,
           (canvas_context * ctx, canvas_network_code *code, const void *const *weights),
           (ctx, code, weights)) {
  NEED(code);
  TRY(check_tensors(ctx, &code->weights, weights));
  if (!code->object) TRY(open_object(ctx, code));
  size_t count = (size_t)code->weights.count;
  if (!code->weight) code->weight = mem_keep(mem_alloc((count + 1) * sizeof *code->weight));
  if (count) memcpy(code->weight, weights, count * sizeof *code->weight);
  if (!code->packed) code->packed = memory(code->packed_bytes);
  if (code->packed && !code->load(code->weight, code->packed)) return CANVAS_OK;
  mem_free(code->packed);
  code->packed = NULL;
  return no_memory(ctx, code);
}

/* ---- running -------------------------------------------------------------------------------------- */

/* A run leaves its arena to the next one; each of several at the same time has its own. */
static void *take_arena(canvas_network_code *code) {
  void *arena = __atomic_exchange_n(&code->kept, NULL, __ATOMIC_ACQ_REL);
  return arena ? arena : memory(code->arena_bytes);
}

static void leave_arena(canvas_network_code *code, void *arena) {
  mem_free(__atomic_exchange_n(&code->kept, arena, __ATOMIC_ACQ_REL));
}

static canvas_status check_outputs(canvas_context *ctx, const canvas_network_code *code,
                                   void *const *outputs) {
  if (!code->packed)
    return fail(ctx, CANVAS_BAD_INPUT, "network '%.40s' has no weights, load it first",
                code->function);
  for (int i = 0; i < code->outputs; i++)
    if (!outputs || !outputs[i])
      return fail(ctx, CANVAS_BAD_INPUT,
                  "output %d is given by a pointer to its elements, not by NULL", i);
  return CANVAS_OK;
}

API_STATUS(canvas_network_code_run,
           (canvas_context * ctx, canvas_network_code *code, const void *const *inputs,
            void *const *outputs),
           (ctx, code, inputs, outputs)) {
  NEED(code);
  TRY(check_outputs(ctx, code, outputs));
  TRY(check_tensors(ctx, &code->inputs, inputs));
  void *arena = take_arena(code);
  int failed = !arena || code->run(code->weight, code->packed, inputs, outputs, arena);
  leave_arena(code, arena);
  return failed ? no_memory(ctx, code) : CANVAS_OK;
}

API_STATUS(canvas_network_code_step,
           (canvas_context * ctx, canvas_network_code *code, int call, const void *const *inputs,
            void *const *outputs),
           (ctx, code, call, inputs, outputs)) {
  NEED(code);
  TRY(check_outputs(ctx, code, outputs));
  if (call < 0 || call >= code->calls.count)
    return fail(ctx, CANVAS_BAD_INPUT, "network '%.40s' has no call %d, it has %d", code->function,
                call, code->calls.count);
  TRY(need_each(ctx, "inputs", inputs, code->inputs.count));
  void *arena = take_arena(code);
  int failed = !arena || code->call(call, code->weight, code->packed, inputs, outputs, arena);
  leave_arena(code, arena);
  return failed ? no_memory(ctx, code) : CANVAS_OK;
}
