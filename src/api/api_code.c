/* Bound programs as machine code: compiled to keep, or to call from here. */
#define _GNU_SOURCE /* dladdr */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/api_call.h"
#include "api/handle.h"
#include "base/memory.h"
#include "emit/emit.h"
#include "run/cache.h"
#include "run/compiler.h"
#include "run/sealed.h"

enum { AGAIN = 3 }; /* times that an object is made which somebody removes before it is loaded */

API_VALUE(char *, canvas_compiler_name, (canvas_context * ctx), (ctx),
          (api_no_memory(ctx, &api_call), NULL)) {
  struct compiler *c;
  if (compiler_open(ctx, NULL, &c) != CANVAS_OK) return NULL;
  char *text = mem_strdup(compiler_text(c));
  compiler_close(c);
  return text;
}

API_VALUE(char *, canvas_program_function, (const canvas_program *program), (program), NULL) {
  if (!program) return NULL;
  return emit_c_function(program_of(program)->name);
}

/* ---- an object to keep ----------------------------------------------------------------------- */

static canvas_status compile_text(canvas_context *ctx, const struct source *source,
                                  const char *target, char **out) {
  const struct compiler_options options = {.target = target, .tried = true};
  struct compiler *c;
  struct object object;
  TRY(compiler_open(ctx, &options, &c));
  canvas_status status = compiler_build(ctx, c, source, 1, 1, 0, &object);
  compiler_close(c);
  if (status != CANVAS_OK) return status;
  if (!object.path) return fail(ctx, CANVAS_IO, "it does not compile: %.900s", object.message);
  *out = object.path;
  return CANVAS_OK;
}

/* The functions that the text has, and how many pointers each takes. */
static struct source source_of(const struct program *p, const canvas_prepared *prepared,
                               const char *text, const char *function, const char *prepare) {
  struct source s = {text, function, p->inputs.count + p->outputs.count, NULL, 0};
  if (!prepared->bytes) return s;
  s.prepare = prepare;
  s.pointers = p->outputs.count + 1;
  s.prepare_pointers = 1;
  for (int i = 0; i < p->inputs.count; i++) {
    s.pointers += prepared->rest[i];
    s.prepare_pointers += prepared->prepare[i];
  }
  return s;
}

static canvas_status compile_for(canvas_context *ctx, const canvas_bound *bound, const char *target,
                                 const canvas_emit_options *options, char **out) {
  const struct program *p = bound->tree->program;
  canvas_emit_options how = options ? *options : (canvas_emit_options){0};
  canvas_prepared prepared = {0};
  struct buf prepare = {0};
  char *text, *name = NULL;
  how.header = false;
  if (how.prepare) TRY(canvas_bound_prepared(ctx, bound, &prepared));
  if (!how.function) how.function = name = emit_c_function(p->name);
  buf_printf(&prepare, "%s_prepare", how.function);
  canvas_status status = canvas_bound_emit(ctx, bound, &how, &text);
  if (status == CANVAS_OK) {
    const struct source source = source_of(p, &prepared, text, how.function, prepare.text);
    status = compile_text(ctx, &source, target, out);
    mem_free(text);
  }
  buf_free(&prepare);
  mem_free(name);
  canvas_prepared_free(&prepared);
  return status;
}

API_STATUS(canvas_bound_compile,
           (canvas_context * ctx, const canvas_bound *bound, const canvas_emit_options *options,
            char **out),
           (ctx, bound, options, out)) {
  NEED(bound);
  NEED(out);
  return compile_for(ctx, bound, bound->tree->machine.target, options, out);
}

/* ---- code to call ---------------------------------------------------------------------------- */

struct canvas_code {
  void *object;
  int (*call)(void *const *); /* inputs, then outputs */
  int inputs, outputs;
};

static const char function[] = "canvas_code";

/* The threads of OpenMP wait for work in its library, which must not go with the code that began
 * them. */
void keep_openmp(void *object) {
  void *symbol = dlsym(object, "omp_get_max_threads");
  Dl_info library;
  if (!symbol || !dladdr(symbol, &library)) return;
  void *kept = dlopen(library.dli_fname, RTLD_NOW | RTLD_NODELETE);
  if (kept) dlclose(kept);
}

canvas_status load_file(canvas_context *ctx, int file, const char *path, void **out) {
  canvas_context inner = {.message = ""};
  *out = sealed_load(&inner, file, path);
  if (*out) return CANVAS_OK;
  cache_drop(path);
  return fail(ctx, CANVAS_IO, "what was compiled cannot be loaded: %.900s", inner.message);
}

API_STATUS(canvas_object_load, (canvas_context * ctx, const char *path, void **out),
           (ctx, path, out)) {
  NEED(path);
  NEED(out);
  int file = cache_open_object(path);
  if (file < 0)
    return fail(ctx, CANVAS_IO,
                "'%.800s' is not in the cache any more, or was damaged: compile it again", path);
  struct held_file held;
  file_hold(&held, file);
  canvas_status status = load_file(ctx, file, path, out);
  file_release(&held);
  return status;
}

static canvas_status compile_and_load(canvas_context *ctx, const canvas_bound *bound,
                                      const canvas_emit_options *options, void **out) {
  canvas_status status = CANVAS_IO;
  for (int again = 0; again < AGAIN && status != CANVAS_OK; again++) {
    char *path;
    TRY(compile_for(ctx, bound, "native", options, &path));
    status = canvas_object_load(ctx, path, out);
    mem_free(path);
  }
  return status;
}

API_STATUS(canvas_code_open, (canvas_context * ctx, const canvas_bound *bound, canvas_code **out),
           (ctx, bound, out)) {
  NEED(bound);
  NEED(out);
  const canvas_emit_options options = {.function = function};
  const struct program *p = bound->tree->program;
  struct canvas_code code = {.inputs = p->inputs.count, .outputs = p->outputs.count};
  char name[64];
  struct canvas_code *kept = mem_alloc(sizeof *kept);
  canvas_status status = compile_and_load(ctx, bound, &options, &code.object);
  if (status != CANVAS_OK) {
    mem_free(kept);
    return status;
  }
  snprintf(name, sizeof name, "%s%s", COMPILER_CALL, function);
  *(void **)&code.call = dlsym(code.object, name);
  if (!code.call) {
    fail(ctx, CANVAS_IO, "what was compiled cannot be loaded: %.900s", dlerror());
    dlclose(code.object);
    mem_free(kept);
    return CANVAS_IO;
  }
  keep_openmp(code.object);
  *kept = code;
  *out = kept;
  return CANVAS_OK;
}

API_STATUS(canvas_code_call,
           (canvas_context * ctx, const canvas_code *code, const void *const *inputs,
            void *const *outputs),
           (ctx, code, inputs, outputs)) {
  NEED(code);
  TRY(need_each(ctx, "inputs", inputs, code->inputs));
  TRY(need_each(ctx, "outputs", outputs, code->outputs));
  size_t each = sizeof *outputs;
  void **all = mem_alloc((size_t)(code->inputs + code->outputs + 1) * each);
  if (code->inputs) memcpy(all, inputs, (size_t)code->inputs * each);
  memcpy(all + code->inputs, outputs, (size_t)code->outputs * each);
  int answer = code->call(all);
  mem_free(all);
  return answer ? fail(ctx, CANVAS_IO, "no memory for the buffers of the code") : CANVAS_OK;
}

void canvas_code_close(canvas_code *code) {
  if (!code) return;
  dlclose(code->object);
  mem_free(code);
}
