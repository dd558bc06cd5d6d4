// Every function of canvas.h where memory is short: the n-th allocation fails, for n = 1, 2, .. until the function
// succeeds. It returns CANVAS_IO and leaves a message, or returns nothing; it writes no result, loses no memory (the
// sanitizers look), and does its work when it is called again. Functions with many allocations try all of them
// under CANVAS_TEST_ALL only.
#include "api_objects.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <time.h>

#include "sanitized.h"

#include "base/memory_call.h"

static long armed;       // the allocation that fails in the call at hand; 0: none
static bool reached;     // it was asked for
static uint64_t digest;  // of the result

static void add(const char *text) {
  for (; *text; text++) digest = (digest ^ (unsigned char)*text) * UINT64_C(0x100000001B3);
}

static void add_text(char *text) {
  if (text) add(text);
  canvas_string_free(text);
}

static void add_number(double number) {
  char text[64];
  snprintf(text, sizeof text, "%.17g ", number);
  add(text);
}

static void disarm(void) {
  reached = armed && !mem_fails_left();
  mem_fail_at(0);
}

// The call whose allocation fails: the value is in `out`.
#define UNDER(out, call) (api_note(#call), mem_fail_at(armed), (out) = (call), disarm())

// ---- functions of each form ---------------------------------------------------------------------

#define TEXT_CALL(name, call)        \
  static canvas_status name(void) {  \
    char *text = NULL;               \
    canvas_status status;            \
    UNDER(status, call);             \
    CHECK(!status == !!text, #call); \
    add_text(text);                  \
    return status;                   \
  }
#define VALUE_CALL(name, call)      \
  static canvas_status name(void) { \
    char *text;                     \
    UNDER(text, call);              \
    if (!text) return CANVAS_IO;    \
    add_text(text);                 \
    return CANVAS_OK;               \
  }
#define OBJECT_CALL(name, type, call, print, free) \
  static canvas_status name(void) {                \
    type *o = NULL;                                \
    canvas_status status;                          \
    UNDER(status, call);                           \
    CHECK(!status == !!o, #call);                  \
    if (o) add_text(print(o));                     \
    free(o);                                       \
    return status;                                 \
  }
#define CTX         api.ctx
#define BYTES(text) text, strlen(text)

TEXT_CALL(targets_cost_json, canvas_targets_cost_json(CTX, api.targets, &text))
TEXT_CALL(kernels_print, canvas_kernels_print(CTX, BYTES(KERNEL_TEXT), &text))
TEXT_CALL(sampler_probability, canvas_sampler_probability(CTX, api.sampler, api.kernel, &text))
TEXT_CALL(sampler_successes, canvas_sampler_successes(CTX, api.sampler, 2, &text))
TEXT_CALL(broken_rules, canvas_pack_broken_rules(CTX, api.pack, "", 0, &text))
TEXT_CALL(pack_cost_json, canvas_pack_cost_json(CTX, api.pack, &text))
TEXT_CALL(pack_idle_weights, canvas_pack_idle_weights(CTX, api.pack, &text))
TEXT_CALL(pack_compare, canvas_pack_compare(CTX, api.pack, api.pack, &text))
TEXT_CALL(pack_torch, canvas_pack_torch(CTX, api.pack, true, &text))
TEXT_CALL(program_tvm, canvas_program_tvm(CTX, api.program, NULL, &text))
TEXT_CALL(operator_describe, canvas_operator_describe(CTX, "gemm", &text))
TEXT_CALL(program_count_json, canvas_program_count_json(CTX, api.program, &text))
TEXT_CALL(bound_explain, canvas_bound_explain(CTX, api.bound, &text))
TEXT_CALL(bound_cost_json, canvas_bound_cost_json(CTX, api.bound, &text))
TEXT_CALL(bound_emit,
          canvas_bound_emit(CTX, api.bound, &(canvas_emit_options){.prepare = true}, &text))
TEXT_CALL(bound_statements, canvas_bound_statements(CTX, api.bound, NULL, &text))
TEXT_CALL(bound_compile, canvas_bound_compile(CTX, api.bound, NULL, &text))
TEXT_CALL(tune_space, canvas_tune_space(CTX, api.program, api.machine, NULL, 2, &text))

VALUE_CALL(primitives_print, canvas_primitives_print(CANVAS_JSON))
VALUE_CALL(operators_print, canvas_operators_print(CANVAS_MARKDOWN))
VALUE_CALL(targets_print, canvas_targets_print(api.targets))
VALUE_CALL(kernel_print, canvas_kernel_print(api.kernel))
VALUE_CALL(kernel_dot, canvas_kernel_dot(api.kernel))
VALUE_CALL(kernel_svg, canvas_kernel_svg(api.kernel))
VALUE_CALL(pack_print, canvas_pack_print(api.pack))
VALUE_CALL(pack_svg, canvas_pack_svg(api.pack))
VALUE_CALL(pack_formula, canvas_pack_formula(api.pack, true))
VALUE_CALL(program_print, canvas_program_print(api.program))
VALUE_CALL(program_function, canvas_program_function(api.program))
VALUE_CALL(network_print, canvas_network_print(api.network))
VALUE_CALL(network_plan, canvas_network_plan(api.network))
VALUE_CALL(network_plan_json, canvas_network_plan_json(api.network))
VALUE_CALL(machine_print, canvas_machine_print(api.machine))
VALUE_CALL(schedule_print, canvas_schedule_print(api.schedule))
VALUE_CALL(bound_holes, canvas_bound_holes(api.bound))
VALUE_CALL(bound_warnings, canvas_bound_warnings(api.bound))
VALUE_CALL(bound_dot, canvas_bound_dot(api.bound))
VALUE_CALL(bound_program_print, canvas_bound_program_print(api.bound))
VALUE_CALL(bound_edits, canvas_bound_edits(api.bound))
VALUE_CALL(compiler_name, canvas_compiler_name(CTX))
VALUE_CALL(log_line, canvas_log_line(api.log, 0))

static char *bound_text(const canvas_bound *b) {
  return canvas_schedule_print(canvas_bound_schedule(b));
}
static char *budget_text(const canvas_budget *b) {
  return NULL;
}

OBJECT_CALL(targets_parse, canvas_targets, canvas_targets_parse(CTX, "8,6,6;16,4,4", 12, &o),
            canvas_targets_print, canvas_targets_free)
OBJECT_CALL(kernel_parse, canvas_kernel, canvas_kernel_parse(CTX, BYTES(KERNEL_TEXT), &o),
            canvas_kernel_print, canvas_kernel_free)
OBJECT_CALL(kernel_bind, canvas_pack,
            canvas_kernel_bind(CTX, api.kernel, "C=4,H=5,W=3,x0=2", 16, &o), canvas_pack_print,
            canvas_pack_free)
OBJECT_CALL(kernel_solve, canvas_pack,
            canvas_kernel_solve(CTX, api.kernel, api.targets, api.budget, NULL, &o),
            canvas_pack_print, canvas_pack_free)
OBJECT_CALL(pack_parse, canvas_pack, canvas_pack_parse(CTX, BYTES(KERNEL_TEXT), &o),
            canvas_pack_print, canvas_pack_free)
OBJECT_CALL(pack_lower, canvas_program, canvas_pack_lower(CTX, api.pack, 0, 1, &o),
            canvas_program_print, canvas_program_free)
OBJECT_CALL(budget_parse, canvas_budget, canvas_budget_parse(CTX, "macs=2x", 7, &o), budget_text,
            canvas_budget_free)
OBJECT_CALL(program_parse, canvas_program, canvas_program_parse(CTX, BYTES(PROGRAM_TEXT), &o),
            canvas_program_print, canvas_program_free)
OBJECT_CALL(operator_program, canvas_program,
            canvas_operator_program(CTX, "gemm", "m=8 n=8 k=8", 11, &o), canvas_program_print,
            canvas_program_free)
OBJECT_CALL(program_edit, canvas_program, canvas_program_edit(CTX, api.program, "inline P", 8, &o),
            canvas_program_print, canvas_program_free)
OBJECT_CALL(program_replay, canvas_program,
            canvas_program_replay(CTX, api.program, "inline P\n", 0, &o), canvas_program_print,
            canvas_program_free)
OBJECT_CALL(program_winograd, canvas_program, canvas_program_winograd(CTX, api.convolution, 2, &o),
            canvas_program_print, canvas_program_free)
OBJECT_CALL(network_parse, canvas_network, canvas_network_parse(CTX, BYTES(NETWORK_TEXT), &o),
            canvas_network_print, canvas_network_free)
OBJECT_CALL(machine_parse, canvas_machine, canvas_machine_parse(CTX, BYTES(api.machine_text), &o),
            canvas_machine_print, canvas_machine_free)
OBJECT_CALL(schedule_parse, canvas_schedule, canvas_schedule_parse(CTX, BYTES(SCHEDULE_TEXT), &o),
            canvas_schedule_print, canvas_schedule_free)
OBJECT_CALL(schedule_default, canvas_schedule,
            canvas_schedule_default(CTX, api.program, api.machine, &o), canvas_schedule_print,
            canvas_schedule_free)
OBJECT_CALL(bound_new, canvas_bound,
            canvas_bound_new(CTX, api.program, api.schedule, api.machine, &o), bound_text,
            canvas_bound_free)
OBJECT_CALL(bound_default, canvas_bound,
            canvas_bound_new(CTX, api.convolution, NULL, api.machine, &o), bound_text,
            canvas_bound_free)
OBJECT_CALL(bound_edit, canvas_bound, canvas_bound_edit(CTX, api.bound, "mark m unroll", 13, &o),
            bound_text, canvas_bound_free)
OBJECT_CALL(bound_follow, canvas_schedule, canvas_bound_follow(CTX, api.bound, "inline P", 8, &o),
            canvas_schedule_print, canvas_schedule_free)
OBJECT_CALL(log_bind, canvas_bound, canvas_log_bind(CTX, api.log, 0, NULL, &o), bound_text,
            canvas_bound_free)

static char *log_text(const canvas_log *log) {
  return canvas_log_line(log, 0);
}
static char *nothing(const void *object) {
  return NULL;
}
OBJECT_CALL(log_read, canvas_log, canvas_log_read(CTX, api.path, &o), log_text, canvas_log_free)
OBJECT_CALL(code_open, canvas_code, canvas_code_open(CTX, api.bound, &o), nothing,
            canvas_code_close)
OBJECT_CALL(network_compile, canvas_network_code,
            canvas_network_compile(CTX, api.network, NULL, &o), nothing, canvas_network_code_free)
OBJECT_CALL(measurer_new, canvas_measurer, canvas_measurer_new(CTX, api.program, NULL, &o), nothing,
            canvas_measurer_free)

// ---- functions of their own -----------------------------------------------------------------------

static canvas_status context_new(void) {
  canvas_context *o;
  UNDER(o, canvas_context_new());
  canvas_context_free(o);
  return o ? CANVAS_OK : CANVAS_IO;
}

static canvas_status machine_of_here(void) {
  canvas_machine *o;
  UNDER(o, canvas_machine_here());
  if (o) add_text(canvas_machine_print(o));
  canvas_machine_free(o);
  return o ? CANVAS_OK : CANVAS_IO;
}

static canvas_status targets_cost(void) {
  canvas_cost cost;
  canvas_status status;
  UNDER(status, canvas_targets_cost(CTX, api.targets, -1, &cost));
  return status;
}

static canvas_status pack_cost(void) {
  canvas_cost cost;
  canvas_status status;
  UNDER(status, canvas_pack_cost(CTX, api.pack, -1, &cost));
  return status;
}

static canvas_status kernel_hash(void) {
  canvas_hash hash;
  UNDER(hash, canvas_kernel_hash(api.kernel));
  add(hash.hex);
  return *hash.hex ? CANVAS_OK : CANVAS_IO;
}

static canvas_status kernel_value(void) {
  canvas_hash hash;
  UNDER(hash, canvas_kernel_value(api.kernel));
  add(hash.hex);
  return *hash.hex ? CANVAS_OK : CANVAS_IO;
}

static canvas_status kernel_simplify(void) {
  canvas_kernel *o;
  UNDER(o, canvas_kernel_simplify(api.kernel));
  if (o) add_text(canvas_kernel_print(o));
  canvas_kernel_free(o);
  return o ? CANVAS_OK : CANVAS_IO;
}

static canvas_status kernel_stride(void) {
  canvas_kernel *o;
  canvas_status status;
  UNDER(status, canvas_kernel_stride(api.ctx, api.kernel, "window", &o));
  if (status != CANVAS_OK) return status;
  add_text(canvas_kernel_print(o));
  canvas_kernel_free(o);
  return CANVAS_OK;
}

// No allocation is known in it; its NULL has another meaning, too.
static canvas_status kernel_reach(void) {
  const char *why;
  UNDER(why, canvas_kernel_reach(api.kernel));
  CHECK(!why, "it reaches");
  return reached ? CANVAS_IO : CANVAS_OK;
}

static canvas_status pack_reach(void) {
  const char *why;
  UNDER(why, canvas_pack_reach(api.pack));
  CHECK(!why, "it reaches");
  return reached ? CANVAS_IO : CANVAS_OK;
}

static canvas_status pack_hash(void) {
  canvas_hash hash;
  UNDER(hash, canvas_pack_hash(api.pack));
  if (*hash.hex) add_text(strdup(hash.hex));
  return *hash.hex ? CANVAS_OK : CANVAS_IO;
}

static canvas_status pack_part(void) {
  canvas_pack *o;
  UNDER(o, canvas_pack_part(api.pack, 0));
  if (o) add_text(canvas_pack_print(o));
  canvas_pack_free(o);
  return o ? CANVAS_OK : CANVAS_IO;
}

static canvas_status object_load(void) {
  canvas_status status;
  void *object = NULL;
  char *path;
  MUST(canvas_bound_compile(CTX, api.bound, NULL, &path));
  UNDER(status, canvas_object_load(CTX, path, &object));
  CHECK(!status == !!object, "a handle");
  if (object) dlclose(object);
  canvas_string_free(path);
  return status;
}

static canvas_status kernel_describe(void) {
  canvas_kernel_facts facts;
  UNDER(facts, canvas_kernel_describe(api.kernel));
  return facts.primitives ? CANVAS_OK : CANVAS_IO;
}

static canvas_status reader_open(void) {
  canvas_reader *o = NULL;
  canvas_status status;
  UNDER(status, canvas_reader_open(CTX, BYTES(KERNEL_TEXT), &o));
  CHECK(!status == !!o, "a reader");
  canvas_reader_close(o);
  return status;
}

// What was not read is read by the next call.
static canvas_status reader_next(void) {
  canvas_reader *reader;
  canvas_pack *pack = NULL;
  canvas_status status;
  MUST(canvas_reader_open(CTX, BYTES(KERNEL_TEXT), &reader));
  UNDER(status, canvas_reader_next(CTX, reader, &pack));
  if (status != CANVAS_OK) {
    char message[1024];
    snprintf(message, sizeof message, "%s", canvas_context_message(CTX));
    MUST(canvas_reader_next(CTX, reader, &pack));
    CHECK(strstr(message, "out of memory"), message);
  } else {
    add_text(canvas_pack_print(pack));
  }
  canvas_pack_free(pack);
  canvas_reader_close(reader);
  return status;
}

static canvas_status sampler_new(void) {
  canvas_sampler *o = NULL;
  canvas_status status;
  UNDER(status, canvas_sampler_new(CTX, api.targets, "groups=4", 8, 1, &o));
  CHECK(!status == !!o, "a sampler");
  canvas_sampler_free(o);
  return status;
}

static canvas_status sampler_draw(void) {
  canvas_kernel *o = NULL;
  canvas_status status;
  int64_t g;
  UNDER(status, canvas_sampler_draw(CTX, api.sampler, 3, &o, &g));
  CHECK(!status == !!o, "a kernel");
  if (o) add_text(canvas_kernel_print(o));
  canvas_kernel_free(o);
  return status;
}

static canvas_status sampler_mutate(void) {
  canvas_kernel *o = NULL;
  canvas_status status;
  int64_t g;
  UNDER(status, canvas_sampler_mutate(CTX, api.sampler, 1, (const canvas_kernel *[]){api.kernel},
                                      (int64_t[]){4}, 1, &o, &g));
  CHECK(!status == !!o, "a child");
  if (o) add_text(canvas_kernel_print(o));
  canvas_kernel_free(o);
  return status;
}

static canvas_status draw_is_free(void) {
  bool is_free;
  canvas_status status;
  UNDER(status, canvas_draw_is_free(CTX, "", 0, 1, 0, &is_free));
  return status;
}

static canvas_status solve_options_parse(void) {
  canvas_solve_options options;
  canvas_status status;
  UNDER(status, canvas_solve_options_parse(CTX, "G=4", 3, &options));
  return status;
}

static canvas_status program_count(void) {
  canvas_count count;
  canvas_status status;
  UNDER(status, canvas_program_count(CTX, api.program, -1, &count));
  return status;
}

// Indices in compressed rows are drawn with an array beside them; without it all are 0.
static canvas_status program_fill(void) {
  double values[4] = {7, 7, 7, 7};
  int nothing_left;
  UNDER(nothing_left, (canvas_program_fill(api.sparse, 2, 1, values), 0));
  api_note("canvas_program_fill(");
  (void)nothing_left;
  for (int i = 0; i < 4; i++) {
    if (reached) CHECK_NEAR(values[i], 0, 0, "without memory");
    add_number(values[i]);
  }
  return reached ? CANVAS_IO : CANVAS_OK;
}

static canvas_status program_evaluate(void) {
  const double x[12] = {1, 2, 3, 4, 5}, *in[] = {x, x};
  double y[8] = {0};
  canvas_status status;
  UNDER(status, canvas_program_evaluate(CTX, api.program, in, 0, 8, NULL, y));
  for (int i = 0; i < 8; i++) add_number(y[i]);
  return status;
}

static canvas_status network_evaluate(void) {
  const double x[12] = {1, 2, 3, 4, 5}, *in[] = {x};
  double y[8] = {0};
  canvas_status status;
  UNDER(status, canvas_network_evaluate(CTX, api.network, in, in, (double *[]){y}));
  for (int i = 0; i < 8; i++) add_number(y[i]);
  return status;
}

static canvas_status network_reference(void) {
  const double x[12] = {1, 2, 3, 4, 5}, *in[] = {x};
  double y[8] = {0};
  canvas_status status;
  UNDER(status, canvas_network_reference(CTX, api.network, in, in, (double *[]){y}));
  for (int i = 0; i < 8; i++) add_number(y[i]);
  return status;
}

// A network that could not be changed is as it was, and names of its tensors stay.
static canvas_status network_optimize(void) {
  static const char text[] =
      "network two\nprogram product\nin X f32 [n:4, k:3]\nin W f32 [k:3, m:2] const\n"
      "Y[n:4, m:2] = X[n, k] * W[k, m] // sum k:3\nout Y\nend\n"
      "program relu\nin X f32 [n:4, m:2]\nY[n:4, m:2] = max(X[n, m], 0)\nout Y\nend\n"
      "in x f32 [4, 3]\nweight w f32 [3, 2]\ny f32 [4, 2] = product(x, w)\n"
      "again f32 [4, 2] = product(x, w)\nz f32 [4, 2] = relu(again)\nout z\n";
  canvas_network *n;
  canvas_status status;
  MUST(canvas_network_parse(CTX, BYTES(text), &n));
  char *before = canvas_network_print(n);
  const char *name = canvas_network_tensor(n, CANVAS_INPUT, 0).name;
  UNDER(status, canvas_network_optimize(CTX, n, NULL, api.machine));
  char *after = canvas_network_print(n);
  if (status) CHECK_TEXT(after, before, "a call that failed");
  CHECK_TEXT(name, "x", "a name that was asked for before");
  add_text(after);
  canvas_string_free(before);
  canvas_network_free(n);
  return status;
}

static canvas_status network_program(void) {
  canvas_program *o;
  int calls;
  UNDER(o, canvas_network_program(api.network, 0, &calls));
  if (o) add_text(canvas_program_print(o));
  canvas_program_free(o);
  return o ? CANVAS_OK : CANVAS_IO;
}

static canvas_status network_files(void) {
  canvas_network_file *files = NULL;
  canvas_status status;
  UNDER(status, canvas_network_files(CTX, api.network, NULL, &files));
  CHECK(!status == !!files, "files");
  for (int i = 0; files && files[i].name; i++) add(files[i].text);
  canvas_network_files_free(files);
  return status;
}

static canvas_status network_code_load(void) {
  canvas_network_code *code;
  float w[6] = {1, 2, 3, 4, 5, 6}, x[12] = {1}, y[8];
  const void *weights[] = {w}, *inputs[] = {x};
  canvas_status status;
  MUST(canvas_network_compile(CTX, api.network, NULL, &code));
  UNDER(status, canvas_network_code_load(CTX, code, weights));
  if (status) MUST(canvas_network_code_load(CTX, code, weights));
  MUST(canvas_network_code_run(CTX, code, inputs, (void *[]){y}));
  add_number((double)y[0]);
  canvas_network_code_free(code);
  return status;
}

static canvas_status network_code_run(void) {
  float w[6] = {1, 2, 3, 4, 5, 6}, x[12] = {1}, y[8];
  canvas_status status;
  MUST(canvas_network_code_load(CTX, api.network_code, (const void *[]){w}));
  UNDER(status, canvas_network_code_run(CTX, api.network_code, (const void *[]){x}, (void *[]){y}));
  return status;
}

static canvas_status network_code_step(void) {
  float w[6] = {1, 2, 3, 4, 5, 6}, x[12] = {1}, y[8];
  canvas_status status;
  MUST(canvas_network_code_load(CTX, api.network_code, (const void *[]){w}));
  UNDER(status,
        canvas_network_code_step(CTX, api.network_code, 0, (const void *[]){x}, (void *[]){y}));
  return status;
}

static canvas_status code_call(void) {
  float x[12] = {1, 2, 3}, w[6] = {1, 2, 3}, y[8];
  canvas_status status;
  UNDER(status, canvas_code_call(CTX, api.code, (const void *[]){x, w}, (void *[]){y}));
  return status;
}

static canvas_status schedule_set(void) {
  canvas_schedule *s;
  canvas_status status;
  MUST(canvas_schedule_parse(CTX, BYTES("canvas 1\nschedule s\nn:?, k => @P = n, k\n"), &s));
  UNDER(status, canvas_schedule_set(CTX, s, "n=4"));
  add_text(canvas_schedule_print(s));
  canvas_schedule_free(s);
  return status;
}

static canvas_status bound_describe(void) {
  canvas_bound_facts facts;
  UNDER(facts, canvas_bound_describe(api.bound));
  return facts.loops ? CANVAS_OK : CANVAS_IO;
}

static canvas_status bound_prepared(void) {
  canvas_prepared prepared = {.bytes = -1};
  canvas_status status;
  UNDER(status, canvas_bound_prepared(CTX, api.bound, &prepared));
  if (status) CHECK_INT(prepared.bytes, -1, "nothing was written");
  canvas_prepared_free(&prepared);
  return status;
}

static canvas_status measurer_run(void) {
  canvas_verdict verdict;
  canvas_status status;
  UNDER(status,
        canvas_measurer_run(CTX, api.measurer, (const canvas_bound *[]){api.bound}, 1, &verdict));
  if (!status) add(canvas_failure_name(verdict.failure));
  return status;
}

// More than are compiled together: a process compiles some while others are measured. Takes long.
static canvas_status groups_of_candidates(void) {
  enum { MANY = 21 };
  canvas_verdict verdicts[MANY];
  const canvas_bound *all[MANY];
  canvas_status status;
  for (int i = 0; i < MANY; i++) all[i] = api.bound;
  UNDER(status, canvas_measurer_run(CTX, api.measurer, all, MANY, verdicts));
  if (!status) add(canvas_failure_name(verdicts[MANY - 1].failure));
  return status;
}

// The user's function makes calls of its own, which do not belong to the search.
static bool progress(const canvas_tune_progress *p, void *data) {
  char *text = canvas_program_print(api.program);
  canvas_string_free(text);
  return true;
}

static const canvas_tune_options tuning = {
    .method = "random", .trials = 2, .together = 1, .patience = 2, .progress = progress};

static canvas_status tune(void) {
  canvas_bound *o = NULL;
  canvas_status status;
  UNDER(status, canvas_tune(CTX, api.program, api.machine, &tuning, &o, NULL));
  CHECK(!status == !!o, "a winner");
  canvas_bound_free(o);
  return status;
}

static canvas_status tune_many(void) {
  canvas_bound *o[2] = {0};
  canvas_tuned tuned[2];
  canvas_status status;
  const canvas_program *programs[] = {api.program, api.convolution};
  UNDER(status, canvas_tune_many(CTX, programs, NULL, 2, api.machine, &tuning, o, tuned));
  if (status) CHECK(!o[0] && !o[1], "no winners");
  canvas_bound_free(o[0]);
  canvas_bound_free(o[1]);
  return status;
}

static canvas_status log_merge(void) {
  canvas_log *o;
  UNDER(o, canvas_log_merge((const canvas_log *[]){api.log, api.log}, 2));
  if (o) add_text(canvas_log_line(o, 0));
  canvas_log_free(o);
  return o ? CANVAS_OK : CANVAS_IO;
}

static canvas_status log_record(void) {
  canvas_record record;
  UNDER(record, canvas_log_record(api.log, 0));
  return record.program ? CANVAS_OK : CANVAS_IO;
}

static const canvas_log_place place = {.anywhere = true};

static canvas_status log_best(void) {
  int record = -1;
  canvas_status status;
  UNDER(status, canvas_log_best(CTX, api.log, api.program, &place, &record));
  add_number(record);
  return status;
}

static canvas_status log_take(void) {
  canvas_bound *o = NULL;
  canvas_log_taken taken;
  canvas_status status;
  UNDER(status, canvas_log_take(CTX, api.log, api.program, &place, &o, &taken));
  CHECK(!status == !!o, "a bound schedule");
  if (o) add_text(bound_text(o));
  canvas_bound_free(o);
  return status;
}

static canvas_status log_tasks(void) {
  canvas_log_task *o;
  int count = 0;
  UNDER(o, canvas_log_tasks(api.log, &place, &count));
  canvas_log_tasks_free(o);
  return o ? CANVAS_OK : CANVAS_IO;
}

// A log that could not be appended to holds what it held.
static canvas_status log_add_network(void) {
  const canvas_log_place here = {.machine = api.machine, .compiler = "cc"};
  const canvas_verdict time = {.median = 1, .lower = 1, .upper = 1, .repeats = 3};
  canvas_status status;
  canvas_log *log;
  char path[128];
  snprintf(path, sizeof path, "%s/other-log", api.folder);
  UNDER(status, canvas_log_add_network(CTX, path, api.bound, &here, &time));
  if (!status) {
    MUST(canvas_log_read(CTX, path, &log));
    CHECK_INT(canvas_log_count(log), 1, "records");
    CHECK_INT(canvas_log_damaged(log, NULL, NULL), 0, "records");
    canvas_log_free(log);
  }
  unlink(path);
  return status;
}

// What is allocated meanwhile may be lost.
#if SANITIZED
void __lsan_disable(void);
void __lsan_enable(void);
#define LOSE_MEMORY(may) ((may) ? __lsan_disable() : __lsan_enable())
#else
#define LOSE_MEMORY(may) ((void)0)
#endif

// The command says that there is no memory, and returns 2; what it had then is lost.
static canvas_status main_command(void) {
  char path[128];
  snprintf(path, sizeof path, "%s/kernel", api.folder);
  FILE *file = fopen(path, "w");
  CHECK(file && fputs(KERNEL_TEXT, file) >= 0 && !fclose(file), path);
  char *words[] = {"canvas", "check", path, NULL};
  int nowhere = open("/dev/null", O_WRONLY), out = dup(1), err = dup(2), answer;
  fflush(NULL);
  dup2(nowhere, 1);
  dup2(nowhere, 2);
  LOSE_MEMORY(true);
  UNDER(answer, canvas_main(3, words));
  LOSE_MEMORY(false);
  fflush(NULL);
  dup2(out, 1);
  dup2(err, 2);
  close(out);
  close(err);
  close(nowhere);
  CHECK(answer == 0 || answer == 2, "an exit status");
  return answer ? CANVAS_IO : CANVAS_OK;
}

static const struct {
  const char *name;
  canvas_status (*call)(void);
  bool fresh;  // compilers run again: the cache is emptied before each call
} calls[] = {
#define CALL(name) {#name, name, false}
    CALL(context_new),
    CALL(primitives_print),
    CALL(operators_print),
    CALL(targets_parse),
    CALL(targets_print),
    CALL(targets_cost),
    CALL(targets_cost_json),
    CALL(kernel_parse),
    CALL(kernel_print),
    CALL(kernel_hash),
    CALL(kernel_value),
    CALL(kernel_simplify),
    CALL(kernel_stride),
    CALL(kernel_reach),
    CALL(kernel_describe),
    CALL(kernel_dot),
    CALL(kernel_svg),
    CALL(kernel_bind),
    CALL(reader_open),
    CALL(reader_next),
    CALL(kernels_print),
    CALL(sampler_new),
    CALL(sampler_draw),
    CALL(sampler_mutate),
    CALL(draw_is_free),
    CALL(sampler_probability),
    CALL(sampler_successes),
    CALL(broken_rules),
    CALL(budget_parse),
    CALL(solve_options_parse),
    CALL(kernel_solve),
    CALL(pack_parse),
    CALL(pack_print),
    CALL(pack_hash),
    CALL(pack_svg),
    CALL(pack_formula),
    CALL(pack_compare),
    CALL(pack_part),
    CALL(pack_cost),
    CALL(pack_cost_json),
    CALL(pack_idle_weights),
    CALL(pack_reach),
    CALL(pack_torch),
    CALL(program_tvm),
    CALL(pack_lower),
    CALL(program_parse),
    CALL(program_print),
    CALL(program_fill),
    CALL(program_evaluate),
    CALL(program_count),
    CALL(program_count_json),
    CALL(program_edit),
    CALL(program_winograd),
    CALL(program_replay),
    CALL(program_function),
    CALL(operator_program),
    CALL(operator_describe),
    CALL(network_parse),
    CALL(network_print),
    CALL(network_evaluate),
    CALL(network_reference),
    CALL(network_optimize),
    CALL(network_program),
    CALL(network_plan),
    CALL(network_plan_json),
    CALL(network_files),
    CALL(network_compile),
    CALL(network_code_load),
    CALL(network_code_run),
    CALL(network_code_step),
    CALL(machine_of_here),
    CALL(machine_parse),
    CALL(machine_print),
    CALL(schedule_parse),
    CALL(schedule_print),
    CALL(schedule_set),
    CALL(schedule_default),
    CALL(bound_new),
    CALL(bound_default),
    CALL(bound_edit),
    CALL(bound_follow),
    CALL(bound_describe),
    CALL(bound_holes),
    CALL(bound_warnings),
    CALL(bound_explain),
    CALL(bound_cost_json),
    CALL(bound_dot),
    CALL(bound_edits),
    CALL(bound_emit),
    CALL(bound_statements),
    CALL(bound_prepared),
    CALL(bound_compile),
    CALL(bound_program_print),
    CALL(compiler_name),
    CALL(code_open),
    CALL(object_load),
    CALL(code_call),
    CALL(measurer_new),
    CALL(measurer_run),
    CALL(tune),
    CALL(tune_many),
    CALL(tune_space),
    CALL(log_read),
    CALL(log_merge),
    CALL(log_record),
    CALL(log_line),
    CALL(log_best),
    CALL(log_take),
    CALL(log_bind),
    CALL(log_add_network),
    CALL(log_tasks),
    CALL(main_command),
    CALL(groups_of_candidates),
    {"bound_compile", bound_compile, true},
    {"network_compile", network_compile, true},
};

// ---- the n-th allocation ----------------------------------------------------------------------

static double processor_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void empty_cache(void) {
  char command[192];
  snprintf(command, sizeof command, "rm -rf %s/objects %s/work", api.folder, api.folder);
  CHECK_INT(system(command), 0, command);
}

static canvas_status try(int i, long n) {
  if (calls[i].fresh) empty_cache();
  digest = 0;
  armed = n;
  reached = false;
  CHECK_INT(canvas_pack_cost_json(api.ctx, NULL, &(char *){NULL}), CANVAS_BAD_INPUT, "a message");
  canvas_status status = calls[i].call();
  armed = 0;
  return status;
}

// A status leaves a message of memory; mem_try says it in words of its own.
static void check_message(const char *name, long n) {
  const char *message = canvas_context_message(api.ctx);
  if (!strstr(message, "memory") && !strstr(message, "'out' is NULL") &&
      !strstr(message, "'pack' is NULL"))
    fail_msg("%s, allocation %ld: the message is \"%s\"", name, n, message);
}

// Names in a folder; -1: there is none.
static int count_names(const char *path) {
  DIR *folder = opendir(path);
  int count = 0;
  if (!folder) return -1;
  while (readdir(folder)) count++;
  closedir(folder);
  return count;
}

// Files, children and folders that a failed call had are gone.
static void check_nothing_left(const char *name, int files) {
  char work[96];
  snprintf(work, sizeof work, "%s/work", api.folder);
  CHECK_INT(count_names("/proc/self/fd"), files, name);
  CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD, name);
  CHECK(count_names(work) <= 2, name);
}

static void fail_each(int i, double seconds) {
  const char *name = calls[i].name;
  canvas_status status = try(i, 0);
  if (status != CANVAS_OK) fail_msg("%s: %s", name, canvas_context_message(api.ctx));
  const uint64_t good = digest;
  const int files = count_names("/proc/self/fd");
  double until = processor_seconds() + seconds;
  const char *every = getenv("CANVAS_TEST_STRIDE");
  long stride = every ? atol(every) : 1, n;
  for (n = 1;; n += stride) {
    status = try(i, n);
    if (status == CANVAS_OK && digest != good)
      fail_msg("%s, allocation %ld: another result", name, n);
    if (status != CANVAS_OK && status != CANVAS_IO)
      fail_msg("%s, allocation %ld: status %d", name, n, status);
    if (status == CANVAS_OK && !reached) break;
    if (status == CANVAS_IO) check_message(name, n);
    check_nothing_left(name, files);
    if (processor_seconds() > until) stride *= 2;
  }
  status = try(i, 0);
  if (status != CANVAS_OK || digest != good)
    fail_msg("%s after failures: %s", name, canvas_context_message(api.ctx));
}

// CANVAS_TEST_CALL=NAME tries one function for longer, CANVAS_TEST_STRIDE=N every N-th of its allocations.
static void every_function_survives(void **state) {
  const bool all = getenv("CANVAS_TEST_ALL");
  const char *only = getenv("CANVAS_TEST_CALL");
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
    if (only && strcmp(only, calls[i].name) != 0) continue;
    if (calls[i].call == groups_of_candidates && !all && !only) continue;
    double nightly = strncmp(calls[i].name, "tune", 4) ? 1e9 : 300;  // a search takes half a second
    fail_each((int)i, all ? nightly : only ? 40 : calls[i].fresh ? 0 : 0.05);
  }
}

static bool fail_within(const canvas_tune_progress *p, void *data) {
  mem_fail_at(1);
  char *text = canvas_program_print(api.program);
  *(int *)data += !text && !mem_fails_left();
  return true;
}

static void a_callback_fails_alone(void **state) {
  int failures = 0;
  canvas_bound *bound;
  canvas_tune_options options = tuning;
  options.progress = fail_within;
  options.data = &failures;
  MUST(canvas_tune(api.ctx, api.program, api.machine, &options, &bound, NULL));
  CHECK(failures > 0, "a call within the callback had no memory");
  canvas_bound_free(bound);
}

static void the_message_says_how_much(void **state) {
  char text[100] = "";
  canvas_reader *reader = NULL;
  mem_fail_at(2);  // the reader, then its copy of the text
  canvas_status status = canvas_reader_open(api.ctx, text, 99, &reader);
  CHECK_INT(status, CANVAS_IO, "a reader");
  CHECK(!reader && !mem_fails_left(), "a reader");
  CHECK_TEXT(canvas_context_message(api.ctx), "out of memory: 100 bytes could not be had", "");
}

static void no_function_is_forgotten(void **state) {
  if (getenv("CANVAS_TEST_CALL")) return;
  api_check_all_tried(
      " canvas_version canvas_context_free canvas_context_message canvas_string_free"
      " canvas_targets_free canvas_targets_count canvas_targets_name canvas_kernel_free"
      " canvas_kernel_name canvas_reader_close canvas_sampler_free canvas_budget_free"
      " canvas_pack_free canvas_pack_kernel canvas_pack_count canvas_pack_target"
      " canvas_pack_kernels canvas_pack_kernel_of canvas_pack_kept canvas_pack_kept_target"
      " canvas_pack_kept_cost"
      " canvas_program_free canvas_program_inputs canvas_program_outputs canvas_program_input"
      " canvas_program_output canvas_program_stages canvas_program_stage canvas_network_free"
      " canvas_network_count canvas_network_tensor canvas_network_source canvas_network_fill"
      " canvas_network_programs canvas_machine_free canvas_schedule_free canvas_bound_free"
      " canvas_bound_schedule canvas_prepared_free canvas_code_close canvas_network_code_free"
      " canvas_network_code_describe canvas_network_code_call canvas_network_files_free"
      " canvas_failure_name canvas_measurer_free canvas_measurer_compiler"
      " canvas_measurer_no_reference canvas_stop_when canvas_tune_method_at canvas_log_free"
      " canvas_log_count canvas_log_damaged canvas_log_outdated canvas_log_tasks_free ");
}

static int open_all(void **state) {
  api_open();
  return 0;
}

static int close_all(void **state) {
  return api_close();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_callback_fails_alone),
      cmocka_unit_test(the_message_says_how_much),
      cmocka_unit_test(every_function_survives),
      cmocka_unit_test(no_function_is_forgotten),
  };
  return cmocka_run_group_tests(tests, open_all, close_all);
}
