/* Networks as machine code: compiled, described, written as files. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/api_call.h"
#include "api/handle.h"
#include "net/network_compile.h"
#include "program/program_cost.h"
#include "run/cache.h"
#include "run/processor.h"

enum { AGAIN = 3 }; /* times that an object is made which somebody removes before it is open */

/* ---- what it is for ------------------------------------------------------------------------------ */

/* Options of the core, and what they borrow. */
struct place {
  struct machine machine;
  struct record_filter filter;
  struct buf text;
  char *processor;
  struct compiler *compiler;
  struct network_options options;
};

static void place_filter(struct place *p, const canvas_log *log) {
  machine_print(&p->machine, &p->text);
  p->processor = processor_name();
  p->filter = (struct record_filter){.machine = p->text.text,
                                     .processor = p->processor,
                                     .compiler = compiler_text(p->compiler),
                                     .version = CANVAS_VERSION,
                                     .threads = p->options.threads,
                                     .exact = true};
  p->options.log = log_records(log);
  p->options.filter = &p->filter;
}

static canvas_status place_open(canvas_context *ctx, const canvas_network_options *o, bool local,
                                struct place *p) {
  static const canvas_network_options usual;
  if (!o) o = &usual;
  const struct option_number threads = {"threads", o->threads, THREADS_MOST};
  *p = (struct place){.machine = o->machine ? *machine_of(o->machine) : machine_here()};
  TRY(check_numbers(ctx, &threads, 1));
  p->options = (struct network_options){.machine = &p->machine,
                                        .threads = o->threads > 1 ? o->threads : 1,
                                        .name = o->name,
                                        .local = local};
  if (local && !o->log) return CANVAS_OK;
  const struct compiler_options compiler = {.target = p->machine.target, .tried = true};
  TRY(compiler_open(ctx, &compiler, &p->compiler));
  if (o->log) place_filter(p, o->log);
  return CANVAS_OK;
}

static void place_close(struct place *p) {
  compiler_close(p->compiler);
  buf_free(&p->text);
  mem_free(p->processor);
}

/* ---- compiled ------------------------------------------------------------------------------------ */

static int64_t bytes_of(const struct network *n, const int *tensors, int count) {
  int64_t bytes = 0;
  for (int i = 0; i < count; i++) bytes += network_bytes(&n->tensors.data[tensors[i]]);
  return bytes;
}

static const char *names_of(struct arena *arena, const struct network *n, const int *tensors,
                            int count) {
  struct buf text = {0};
  for (int i = 0; i < count; i++)
    buf_printf(&text, "%s%s", i ? ", " : "", n->tensors.data[tensors[i]].name);
  const char *kept = arena_strndup(arena, text.text, text.length);
  buf_free(&text);
  return kept;
}

static canvas_network_call call_of(struct canvas_network_code *out, const struct network_code *code,
                                   const struct net_step *step) {
  const struct network *n = code->network;
  const struct net_call *c = &n->calls.data[step->call];
  const struct program *p = n->programs.data[c->program];
  const struct net_form *form = &code->forms.data[code->form_of[step->call]];
  if (step->copied >= 0)
    return (canvas_network_call){.program = "",
                                 .index = -1,
                                 .results = names_of(&out->arena, n, &step->copied, 1),
                                 .bytes = 2 * bytes_of(n, &step->copied, 1)};
  return (canvas_network_call){
      .program = arena_strndup(&out->arena, p->name, strlen(p->name)),
      .index = c->program,
      .results = names_of(&out->arena, n, c->results.data, c->results.count),
      .flops = (int64_t)program_flops(p),
      .bytes = bytes_of(n, c->arguments.data, c->arguments.count) +
               bytes_of(n, c->results.data, c->results.count),
      .tuned = form->tuned,
      .parallel = form->parallel,
      .simpler = form->simpler};
}

/* Names are the code's own: a network may be freed before it. */
static void list_tensors(struct canvas_network_code *out, const struct network *n,
                         enum net_kind kind, struct network_tensors *list) {
  for (int i = 0; i < n->tensors.count; i++) {
    const struct net_tensor *t = &n->tensors.data[i];
    if (t->kind != kind) continue;
    struct network_tensor one = {.name = arena_strndup(&out->arena, t->name, strlen(t->name)),
                                 .as = {.dtype = t->dtype,
                                        .rank = t->rank,
                                        .least = t->least,
                                        .most = t->most,
                                        .rising = t->rising}};
    for (int k = 0; k < t->rank; k++) one.as.axes[k].size = t->sizes[k];
    VEC_PUSH(list, one);
  }
}

static void describe(struct canvas_network_code *out, const struct network_code *code) {
  struct net_step *steps;
  int count = network_steps(code, &steps);
  out->function = mem_strdup(code->name);
  out->packed_bytes = code->packed_bytes;
  out->arena_bytes = code->arena_bytes;
  out->outputs = code->network->outputs.count;
  list_tensors(out, code->network, NET_INPUT, &out->inputs);
  list_tensors(out, code->network, NET_WEIGHT, &out->weights);
  for (int i = 0; i < count; i++) VEC_PUSH(&out->calls, call_of(out, code, &steps[i]));
  mem_free(steps);
}

/* Compiles it until nobody removes the object before it is open. */
static canvas_status compile_and_open(canvas_context *ctx, const struct network_code *code,
                                      const struct place *p, struct network_object *object,
                                      int *file) {
  for (int again = 0; again < AGAIN; again++) {
    TRY(network_compile(ctx, code, p->compiler, object));
    *file = cache_open_object(object->path);
    if (*file >= 0) return CANVAS_OK;
    mem_free(object->path);
  }
  return fail(ctx, CANVAS_IO,
              "'%.800s' is not in the cache any more, or was damaged: compile it again",
              code->name);
}

static canvas_status compile_once(canvas_context *ctx, const struct network *n,
                                  const struct network_options *options, const struct place *p,
                                  canvas_network_code **out, bool **failed) {
  struct network_code *code;
  struct network_object object = {0};
  int file = -1;
  TRY(network_code_new(ctx, n, options, &code));
  canvas_status status = compile_and_open(ctx, code, p, &object, &file);
  if (status == CANVAS_OK) {
    struct held_file held;
    file_hold(&held, file);
    struct canvas_network_code *made = mem_alloc(sizeof *made);
    made->path = object.path;
    made->made = object.made;
    made->found = object.found;
    describe(made, code);
    made->file = file_take(&held);
    *out = made;
  }
  *failed = object.failed;
  network_code_free(code);
  return status;
}

/* Each program that failed gets a simpler schedule; false: some has had the simplest. */
static bool simplify(const struct network *n, const struct network_options *o, const bool *failed,
                     unsigned char *simpler) {
  for (int i = 0; i < n->programs.count; i++) {
    if (!failed[i]) continue;
    if (simpler[i] == NET_NAIVE) return false;
    simpler[i] = simpler[i] == NET_BEST && o->log ? NET_DEFAULT : NET_NAIVE;
  }
  return true;
}

static canvas_status compile(canvas_context *ctx, const struct network *n, const struct place *p,
                             canvas_network_code **out) {
  unsigned char *simpler = mem_alloc((size_t)n->programs.count + 1);
  struct network_options options = p->options;
  canvas_status status;
  bool more = true;
  options.simpler = simpler;
  do {
    bool *failed = NULL;
    status = compile_once(ctx, n, &options, p, out, &failed);
    more = failed && simplify(n, &options, failed, simpler);
    mem_free(failed);
  } while (status != CANVAS_OK && more);
  mem_free(simpler);
  return status;
}

API_STATUS(canvas_network_compile,
           (canvas_context * ctx, const canvas_network *network,
            const canvas_network_options *options, canvas_network_code **out),
           (ctx, network, options, out)) {
  NEED(network);
  NEED(out);
  struct place p;
  canvas_status status = place_open(ctx, options, false, &p);
  if (status == CANVAS_OK) status = compile(ctx, (const struct network *)network, &p, out);
  place_close(&p);
  return status;
}

void canvas_network_code_free(canvas_network_code *code) {
  if (!code) return;
  network_code_unload(code);
  if (code->file >= 0) close(code->file);
  mem_free(code->path);
  mem_free(code->function);
  mem_free(code->calls.data);
  mem_free(code->inputs.data);
  mem_free(code->weights.data);
  arena_free(&code->arena);
  mem_free(code);
}

canvas_network_facts canvas_network_code_describe(const canvas_network_code *code) {
  if (!code) return (canvas_network_facts){0};
  return (canvas_network_facts){.path = code->path,
                                .function = code->function,
                                .packed_bytes = code->packed_bytes,
                                .arena_bytes = code->arena_bytes,
                                .calls = code->calls.count,
                                .made = code->made,
                                .found = code->found};
}

canvas_network_call canvas_network_code_call(const canvas_network_code *code, int call) {
  if (!code) return (canvas_network_call){0};
  if (!is_index(call, code->calls.count)) return (canvas_network_call){0};
  return code->calls.data[call];
}

/* ---- files --------------------------------------------------------------------------------------- */

enum { FILES = 3 };

static canvas_status write_files(canvas_context *ctx, const struct network *n,
                                 const struct place *p, canvas_network_file **out) {
  struct network_code *code;
  struct buf name = {0}, text = {0};
  TRY(network_code_new(ctx, n, &p->options, &code));
  canvas_network_file *files = mem_alloc((FILES + 1) * sizeof *files);
  buf_printf(&name, "%s.c", code->name);
  network_text(code, NETWORK_FILE, &text);
  files[0] = (canvas_network_file){buf_take(&name), buf_take(&text)};
  buf_printf(&name, "%s.h", code->name);
  network_header(code, &text);
  files[1] = (canvas_network_file){buf_take(&name), buf_take(&text)};
  network_example(code, &text);
  files[2] = (canvas_network_file){mem_strdup("main.c"), buf_take(&text)};
  network_code_free(code);
  *out = files;
  return CANVAS_OK;
}

API_STATUS(canvas_network_files,
           (canvas_context * ctx, const canvas_network *network,
            const canvas_network_options *options, canvas_network_file **out),
           (ctx, network, options, out)) {
  NEED(network);
  NEED(out);
  struct place p;
  canvas_status status = place_open(ctx, options, true, &p);
  if (status == CANVAS_OK) status = write_files(ctx, (const struct network *)network, &p, out);
  place_close(&p);
  return status;
}

void canvas_network_files_free(canvas_network_file *files) {
  if (!files) return;
  for (int i = 0; files[i].name; i++) {
    mem_free(files[i].name);
    mem_free(files[i].text);
  }
  mem_free(files);
}
