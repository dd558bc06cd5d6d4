/* Compiles and runs a reference. See reference.h. */
#include "run/reference.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "bind/loop_tree.h"
#include "code/pipeline.h"
#include "emit/emit.h"
#include "run/cache.h"
#include "run/child.h"
#include "run/sealed.h"
#include "run/widened.h"

static const char function[] = "canvas_reference";

enum { AGAIN = 3 }; /* attempts to compile an object that others remove before it is open */

/* Exit status of a child that fails. */
enum { NO_OBJECT = 1, NO_MEMORY, NO_RESULT };

struct run {
  const struct rounding *rounding;
  const double *const *inputs;
  const struct compiler *compiler;
  const struct reference_limits *limits;
  struct program program; /* program of values and bounds; both are its outputs */
  struct widened widened;
  int *outputs, count; /* output tensors: values, then existing bounds */
  struct object object;
  int file; /* descriptor of the object */
  struct held_file held;
  const struct block *known; /* by output of the program under test: its values and bounds */
  int known_count;
};

/* ---- in the child ---------------------------------------------------------------------------- */

static void *permuted_input(const struct run *r, int input) {
  int tensor = r->program.inputs.data[input];
  size_t count = (size_t)program_elements(&r->program, tensor);
  void *values = mem_try(count, sizeof(double));
  if (!values) return NULL;
  if (r->program.tensors.data[tensor].dtype == PROGRAM_I32)
    for (size_t i = 0; i < count; i++) ((int32_t *)values)[i] = (int32_t)r->inputs[input][i];
  else
    widened_put(&r->widened, &r->program, tensor, r->inputs[input], values);
  return values;
}

/* Copies an output, row-major, to memory shared with the parent. */
static void keep_output(const struct run *r, int tensor, const double *made) {
  for (int i = 0; i < r->known_count; i++) {
    double *values = (double *)(void *)r->known[i].data;
    int64_t elements = program_elements(&r->program, r->rounding->value[i]);
    if (r->rounding->value[i] == tensor)
      widened_get(&r->widened, &r->program, tensor, made, values);
    if (r->rounding->error[i] == tensor)
      widened_get(&r->widened, &r->program, tensor, made, values + elements);
  }
}

static int fill_and_call(const struct run *r, int (*call)(void *const *)) {
  int inputs = r->program.inputs.count;
  void **pointers = mem_alloc((size_t)(inputs + r->count) * sizeof *pointers);
  for (int i = 0; i < inputs + r->count; i++) {
    size_t elements =
        i < inputs ? 0 : (size_t)program_elements(&r->program, r->outputs[i - inputs]);
    pointers[i] = i < inputs ? permuted_input(r, i) : mem_try(elements, sizeof(double));
    if (!pointers[i]) return NO_MEMORY;
  }
  if (call(pointers)) return NO_RESULT;
  for (int i = 0; i < r->count; i++) keep_output(r, r->outputs[i], pointers[inputs + i]);
  return 0; /* memory is freed with the process */
}

static int work(void *data) {
  const struct run *r = data;
  char name[64] = COMPILER_CALL;
  int (*call)(void *const *);
  canvas_context ctx;
  void *object = sealed_load(&ctx, r->file, r->object.path);
  if (!object) return NO_OBJECT;
  strncat(name, function, sizeof name - sizeof COMPILER_CALL);
  *(void **)&call = dlsym(object, name);
  return call ? fill_and_call(r, call) : NO_OBJECT;
}

/* ---- in the parent --------------------------------------------------------------------------- */

static canvas_status run_child(canvas_context *ctx, struct run *r) {
  const struct child_files files = {.data = &r->file, .count = 1};
  const struct child_limits limits = {
      .seconds = r->limits->seconds, .memory = 3 * r->limits->memory, .files = &files};
  struct child_end end;
  char how[256];
  TRY(child_call(ctx, work, r, &limits, &end));
  if (end.how == CHILD_EXITED && !end.code) return CANVAS_OK;
  cache_drop(r->object.path);
  child_describe(&end, &limits, how, sizeof how);
  return fail(ctx, CANVAS_IO, "the compiled reference %s", how);
}

static canvas_status compile(canvas_context *ctx, struct run *r, const struct machine *machine) {
  const struct emit_options options = {.function = function};
  struct loop_tree *tree;
  struct code *code = NULL;
  struct buf text = {0};
  TRY(loop_tree_bind(ctx, r->widened.program, r->widened.schedule, machine, &tree));
  canvas_status status = pipeline_run(ctx, tree, NULL, &code);
  if (status == CANVAS_OK) status = emit_c(ctx, code, tree, &options, &text);
  code_free(code);
  loop_tree_free(tree);
  const struct source source = {text.text, function, r->program.inputs.count + r->count, NULL, 0};
  for (int again = 0; status == CANVAS_OK && r->file < 0 && again < AGAIN; again++) {
    objects_free(&r->object, 1);
    status = compiler_build(ctx, r->compiler, &source, 1, 1, 0, &r->object);
    if (status != CANVAS_OK || !r->object.path) break;
    r->file = cache_open_object(r->object.path);
    file_take(&r->held);
    file_hold(&r->held, r->file);
  }
  buf_free(&text);
  if (status != CANVAS_OK || r->object.path) return status;
  return fail(ctx, CANVAS_IO, "the reference does not compile: %.800s", r->object.message);
}

/* Lists the outputs of the compiled program: values and bounds. */
static void list_outputs(struct run *r) {
  r->known_count = r->program.outputs.count;
  r->outputs = mem_alloc(2 * (size_t)r->known_count * sizeof *r->outputs);
  for (int i = 0; i < r->known_count; i++) r->outputs[r->count++] = r->rounding->value[i];
  for (int i = 0; i < r->known_count; i++)
    if (r->rounding->error[i] >= 0) r->outputs[r->count++] = r->rounding->error[i];
  r->program.outputs.data = r->outputs;
  r->program.outputs.count = r->count;
}

static canvas_status make(canvas_context *ctx, struct run *r) {
  struct machine machine = machine_here();
  TRY(widened_new(ctx, &r->program, &machine, &r->widened));
  if (r->widened.bytes > r->limits->memory)
    return fail(ctx, CANVAS_IO, "its tensors take %lld MiB in fp64",
                (long long)(r->widened.bytes >> 20));
  TRY(compile(ctx, r, &machine));
  return run_child(ctx, r);
}

canvas_status reference_new(canvas_context *ctx, const struct compiler *c,
                            const struct rounding *rounding, const double *const *inputs,
                            const struct reference_limits *limits, const struct block *known) {
  struct run r = {.rounding = rounding,
                  .inputs = inputs,
                  .compiler = c,
                  .limits = limits,
                  .file = -1,
                  .program = *rounding->program,
                  .known = known};
  file_hold(&r.held, -1);
  list_outputs(&r);
  canvas_status status = make(ctx, &r);
  file_release(&r.held);
  objects_free(&r.object, 1);
  widened_free(&r.widened);
  mem_free(r.outputs);
  return status;
}
