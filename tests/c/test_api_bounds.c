// Every function of canvas.h with arguments that it must refuse: NULL, indices and counts out of range, values
// that no enum has, numbers that are none. A status says CANVAS_BAD_INPUT and leaves a message; other functions
// return what the header says. test_api_ndebug.c is the same without assertions.
#include "api_objects.h"

#include <limits.h>

static void *out;  // what a function that fails must not write
#define OUT(type) ((type *)(void *)&out)

static void forget_message(void) {
  char *message = NULL;
  CHECK_INT(canvas_context_message(NULL)[0], '\0', "no context");
  canvas_kernel_bind(api.ctx, api.kernel, "C=4,H=5,W=3,x0=2", 16, (canvas_pack **)&message);
  canvas_pack_free((canvas_pack *)message);
  out = NULL;
}

#define BAD(call)                                   \
  do {                                              \
    api_note(#call);                                \
    forget_message();                               \
    CHECK_INT(call, CANVAS_BAD_INPUT, #call);       \
    CHECK(*canvas_context_message(api.ctx), #call); \
    CHECK(!out, #call);                             \
  } while (0)
#define NOTHING(call)      \
  do {                     \
    api_note(#call);       \
    CHECK(!(call), #call); \
  } while (0)
// A struct of zeros.
#define ZEROS(type, call)                                    \
  do {                                                       \
    static const type nothing;                               \
    api_note(#call);                                         \
    type answer = call;                                      \
    CHECK(!memcmp(&answer, &nothing, sizeof answer), #call); \
  } while (0)
// Texts: NULL that is to have bytes, and more bytes than a text may have.
#define BAD_TEXTS(function, before, after)                                         \
  do {                                                                             \
    BAD(function(UNPACK before, NULL, 1, UNPACK after));                           \
    BAD(function(UNPACK before, "", SIZE_MAX, UNPACK after));                      \
    BAD(function(UNPACK before, "", (size_t)CANVAS_TEXT_LIMIT + 1, UNPACK after)); \
  } while (0)
#define UNPACK(...) __VA_ARGS__

static const int indices[] = {-1, 99, INT_MAX, INT_MIN};
#define EACH_INDEX(i)                                                \
  for (const int *at_ = indices, *e_ = indices + 4; at_ < e_; at_++) \
    for (int i = *at_, once_ = 1; once_; once_ = 0)
static const double numbers[] = {-1, NAN, -INFINITY, INFINITY, 1e300};
#define EACH_NUMBER(x)                                                  \
  for (const double *at_ = numbers, *e_ = numbers + 5; at_ < e_; at_++) \
    for (double x = *at_, once_ = 1; once_ > 0; once_ = 0)

static void targets_and_kernels(void **state) {
  canvas_context *ctx = api.ctx;
  canvas_cost cost;
  BAD_TEXTS(canvas_targets_parse, (ctx), (OUT(canvas_targets *)));
  BAD(canvas_targets_parse(ctx, "8,6,6", 5, NULL));
  NOTHING(canvas_targets_print(NULL));
  NOTHING(canvas_targets_count(NULL));
  NOTHING(canvas_targets_name(NULL, 0));
  EACH_INDEX(i) {
    NOTHING(canvas_targets_name(api.targets, i));
    if (i != -1) BAD(canvas_targets_cost(ctx, api.targets, i, &cost));
  }
  BAD(canvas_targets_cost(ctx, NULL, 0, &cost));
  BAD(canvas_targets_cost(ctx, api.targets, 0, NULL));
  BAD(canvas_targets_cost_json(ctx, NULL, OUT(char *)));
  for (int format = -1; format < 100; format += format < 3 ? 4 : 96) {
    NOTHING(canvas_primitives_print((canvas_format)format));
    NOTHING(canvas_operators_print((canvas_format)format));
  }
  BAD_TEXTS(canvas_kernel_parse, (ctx), (OUT(canvas_kernel *)));
  NOTHING(canvas_kernel_print(NULL));
  NOTHING(canvas_kernel_name(NULL));
  ZEROS(canvas_hash, canvas_kernel_hash(NULL));
  NOTHING(canvas_kernel_simplify(NULL));
  ZEROS(canvas_hash, canvas_kernel_value(NULL));
  BAD(canvas_kernel_stride(ctx, NULL, "window", OUT(canvas_kernel *)));
  BAD(canvas_kernel_stride(ctx, api.kernel, NULL, OUT(canvas_kernel *)));
  BAD(canvas_kernel_stride(ctx, api.kernel, "", OUT(canvas_kernel *)));
  BAD(canvas_kernel_stride(ctx, api.kernel, "window", NULL));
  NOTHING(canvas_kernel_reach(NULL));
  ZEROS(canvas_kernel_facts, canvas_kernel_describe(NULL));
  NOTHING(canvas_kernel_dot(NULL));
  NOTHING(canvas_kernel_svg(NULL));
  BAD_TEXTS(canvas_kernel_bind, (ctx, api.kernel), (OUT(canvas_pack *)));
  BAD(canvas_kernel_bind(ctx, NULL, "C=4", 3, OUT(canvas_pack *)));
  BAD_TEXTS(canvas_reader_open, (ctx), (OUT(canvas_reader *)));
  BAD(canvas_reader_next(ctx, NULL, OUT(canvas_pack *)));
  BAD_TEXTS(canvas_kernels_print, (ctx), (OUT(char *)));
}

static void sampling_and_solving(void **state) {
  canvas_context *ctx = api.ctx;
  const canvas_kernel *parents[] = {api.kernel, NULL};
  const int64_t groups[] = {1, 1}, no_groups[] = {-1, INT64_MIN}, many_groups[] = {INT64_MAX, 1};
  int64_t g;
  bool is_free;
  canvas_solve_options options;
  BAD_TEXTS(canvas_sampler_new, (ctx, api.targets), (1, OUT(canvas_sampler *)));
  BAD(canvas_sampler_new(ctx, NULL, "", 0, 1, OUT(canvas_sampler *)));
  BAD(canvas_sampler_draw(ctx, NULL, 0, OUT(canvas_kernel *), &g));
  BAD(canvas_sampler_draw(ctx, api.sampler, 0, OUT(canvas_kernel *), NULL));
#define MUTATE(parents, groups, count) \
  canvas_sampler_mutate(ctx, api.sampler, 0, parents, groups, count, OUT(canvas_kernel *), &g)
  EACH_INDEX(i)
  BAD(canvas_sampler_mutate(ctx, api.sampler, 0, parents, groups, i, OUT(canvas_kernel *), &g));
  BAD(MUTATE(parents, groups, 0));
  BAD(MUTATE(parents, groups, 2));
  BAD(MUTATE(NULL, groups, 1));
  BAD(MUTATE(parents, NULL, 1));
  BAD(MUTATE(parents, no_groups, 1));
  BAD(MUTATE(parents, many_groups, 1));
  BAD_TEXTS(canvas_draw_is_free, (ctx), (1, 0, &is_free));
  BAD(canvas_draw_is_free(ctx, "", 0, 1, 0, NULL));
  BAD(canvas_sampler_probability(ctx, NULL, api.kernel, OUT(char *)));
  BAD(canvas_sampler_probability(ctx, api.sampler, NULL, OUT(char *)));
  BAD(canvas_sampler_probability(ctx, api.sampler, api.kernel, NULL));
  BAD(canvas_sampler_successes(ctx, NULL, 1, OUT(char *)));
  BAD(canvas_sampler_successes(ctx, api.sampler, -1, OUT(char *)));
  BAD(canvas_sampler_successes(ctx, api.sampler, INT64_MAX, OUT(char *)));
  BAD(canvas_sampler_successes(ctx, api.sampler, 1, NULL));
  BAD_TEXTS(canvas_pack_broken_rules, (ctx, api.pack), (OUT(char *)));
  BAD(canvas_pack_broken_rules(ctx, NULL, "", 0, OUT(char *)));
  BAD_TEXTS(canvas_budget_parse, (ctx), (OUT(canvas_budget *)));
  BAD_TEXTS(canvas_solve_options_parse, (ctx), (&options));
  BAD(canvas_solve_options_parse(ctx, "", 0, NULL));
  const canvas_solve_options bad[] = {
      {.groups = -1}, {.groups = INT64_MAX}, {.norm = (canvas_norm)7}, {.norm = (canvas_norm)-1}};
  for (int i = 0; i < 4; i++)
    BAD(canvas_kernel_solve(ctx, api.kernel, api.targets, api.budget, &bad[i], OUT(canvas_pack *)));
  BAD(canvas_kernel_solve(ctx, NULL, api.targets, api.budget, NULL, OUT(canvas_pack *)));
  BAD(canvas_kernel_solve(ctx, api.kernel, NULL, api.budget, NULL, OUT(canvas_pack *)));
  BAD(canvas_kernel_solve(ctx, api.kernel, api.targets, NULL, NULL, OUT(canvas_pack *)));
}

static void packs(void **state) {
  canvas_context *ctx = api.ctx;
  canvas_cost cost;
  BAD_TEXTS(canvas_pack_parse, (ctx), (OUT(canvas_pack *)));
  NOTHING(canvas_pack_print(NULL));
  NOTHING(canvas_pack_kernel(NULL));
  NOTHING(canvas_pack_count(NULL));
  NOTHING(canvas_pack_target(NULL, 0));
  NOTHING(canvas_pack_kernels(NULL));
  NOTHING(canvas_pack_kernel_of(NULL, 0));
  NOTHING(canvas_pack_part(NULL, 0));
  NOTHING(canvas_pack_kept(NULL));
  NOTHING(canvas_pack_kept_target(NULL, 0));
  ZEROS(canvas_hash, canvas_pack_hash(NULL));
  NOTHING(canvas_pack_svg(NULL));
  NOTHING(canvas_pack_formula(NULL, false));
  BAD(canvas_pack_compare(ctx, NULL, api.pack, OUT(char *)));
  BAD(canvas_pack_compare(ctx, api.pack, NULL, OUT(char *)));
  BAD(canvas_pack_compare(ctx, api.pack, api.pack, NULL));
  ZEROS(canvas_cost, canvas_pack_kept_cost(NULL, 0));
  EACH_INDEX(i) {
    NOTHING(canvas_pack_target(api.pack, i));
    NOTHING(canvas_pack_kernel_of(api.pack, i));
    NOTHING(canvas_pack_part(api.pack, i));
    NOTHING(canvas_pack_kept_target(api.pack, i));
    ZEROS(canvas_cost, canvas_pack_kept_cost(api.pack, i));
    if (i != -1) BAD(canvas_pack_cost(ctx, api.pack, i, &cost));
    BAD(canvas_pack_lower(ctx, api.pack, i, 1, OUT(canvas_program *)));
    if (i < INT_MAX && i != 99) BAD(canvas_pack_lower(ctx, api.pack, 0, i, OUT(canvas_program *)));
  }
  BAD(canvas_pack_lower(ctx, api.pack, 0, INT64_MAX, OUT(canvas_program *)));
  BAD(canvas_pack_lower(ctx, NULL, 0, 1, OUT(canvas_program *)));
  BAD(canvas_pack_cost(ctx, NULL, 0, &cost));
  BAD(canvas_pack_cost(ctx, api.pack, 0, NULL));
  BAD(canvas_pack_cost_json(ctx, NULL, OUT(char *)));
  NOTHING(canvas_pack_reach(NULL));
  BAD(canvas_pack_idle_weights(ctx, NULL, OUT(char *)));
  BAD(canvas_pack_idle_weights(ctx, api.pack, NULL));
  BAD(canvas_pack_torch(ctx, NULL, true, OUT(char *)));
}

static void programs(void **state) {
  canvas_context *ctx = api.ctx;
  const double x[12] = {0}, *in[] = {x, x}, *half[] = {x, NULL};
  const int64_t far[] = {0, 8}, before[] = {0, -1}, last[] = {INT64_MAX};
  double y[8] = {5, 5, 5, 5, 5, 5, 5, 5}, sum = 0;
  canvas_count count;
  BAD_TEXTS(canvas_program_parse, (ctx), (OUT(canvas_program *)));
  NOTHING(canvas_program_print(NULL));
  BAD(canvas_program_tvm(ctx, NULL, "name", OUT(char *)));
  BAD(canvas_program_tvm(ctx, api.program, NULL, NULL));
  NOTHING(canvas_program_inputs(NULL));
  NOTHING(canvas_program_outputs(NULL));
  NOTHING(canvas_program_stages(NULL));
  ZEROS(canvas_tensor, canvas_program_input(NULL, 0));
  ZEROS(canvas_tensor, canvas_program_output(NULL, 0));
  NOTHING(canvas_program_stage(NULL, 0));
  NOTHING(canvas_program_function(NULL));
  api_note("canvas_program_fill(");
  canvas_program_fill(NULL, 0, 1, y);
  canvas_program_fill(api.program, 0, 1, NULL);
#define EVALUATE(inputs, output, count, elements, out) \
  canvas_program_evaluate(ctx, api.program, inputs, output, count, elements, out)
  api_note("canvas_program_evaluate(");
  EACH_INDEX(i) {
    ZEROS(canvas_tensor, canvas_program_input(api.program, i));
    ZEROS(canvas_tensor, canvas_program_output(api.program, i));
    canvas_program_fill(api.program, i, 1, y);
    NOTHING(canvas_program_stage(api.program, i));
    if (i != -1) BAD(canvas_program_count(ctx, api.program, i, &count));
    BAD(EVALUATE(in, i, 1, NULL, y));
    BAD(EVALUATE(in, 0, i, NULL, y));
    if (i != 2 && i != 4) BAD(canvas_program_winograd(ctx, api.program, i, OUT(canvas_program *)));
  }
  BAD(EVALUATE(in, 0, INT64_MIN, NULL, y));
  BAD(EVALUATE(in, 0, INT64_MAX, NULL, y));
  BAD(EVALUATE(in, 0, 9, NULL, y));
  BAD(EVALUATE(in, 0, 2, far, y));
  BAD(EVALUATE(in, 0, 2, before, y));
  BAD(EVALUATE(in, 0, 1, last, y));
  BAD(EVALUATE(in, 0, 1, NULL, NULL));
  BAD(EVALUATE(NULL, 0, 1, NULL, y));
  BAD(EVALUATE(half, 0, 1, NULL, y));
  MUST(EVALUATE(in, 0, 0, NULL, NULL));
  for (int i = 0; i < 8; i++) sum += y[i];
  CHECK_NEAR(sum, 40, 0, "a call that is refused writes nothing");
  BAD(canvas_program_count(ctx, NULL, 0, &count));
  BAD(canvas_program_count(ctx, api.program, 0, NULL));
  BAD(canvas_program_count_json(ctx, NULL, OUT(char *)));
  BAD_TEXTS(canvas_program_edit, (ctx, api.program), (OUT(canvas_program *)));
  BAD(canvas_program_edit(ctx, NULL, "inline P", 8, OUT(canvas_program *)));
  BAD(canvas_program_winograd(ctx, NULL, 2, OUT(canvas_program *)));
  BAD(canvas_program_replay(ctx, NULL, "", 0, OUT(canvas_program *)));
  EACH_INDEX(i) BAD(canvas_program_replay(ctx, api.program, "", i, OUT(canvas_program *)));
  BAD(canvas_program_replay(ctx, api.program, NULL, 0, OUT(canvas_program *)));
  BAD(canvas_program_replay(ctx, api.program, "", 0, NULL));
  BAD_TEXTS(canvas_operator_program, (ctx, "gemm"), (OUT(canvas_program *)));
  BAD(canvas_operator_program(ctx, NULL, "", 0, OUT(canvas_program *)));
  BAD(canvas_operator_describe(ctx, NULL, OUT(char *)));
}

static void networks(void **state) {
  canvas_context *ctx = api.ctx;
  const double x[12] = {0}, *in[] = {x}, *none[] = {NULL};
  double y[8] = {0}, *outputs[] = {y}, *nowhere[] = {NULL};
  int calls = 7;
  BAD_TEXTS(canvas_network_parse, (ctx), (OUT(canvas_network *)));
  NOTHING(canvas_network_print(NULL));
  NOTHING(canvas_network_count(NULL, CANVAS_INPUT));
  ZEROS(canvas_tensor, canvas_network_tensor(NULL, CANVAS_INPUT, 0));
  NOTHING(canvas_network_source(NULL, 0));
  NOTHING(canvas_network_programs(NULL));
  NOTHING(canvas_network_program(NULL, 0, &calls));
  NOTHING(canvas_network_plan(NULL));
  NOTHING(canvas_network_plan_json(NULL));
  api_note("canvas_network_fill(");
  canvas_network_fill(NULL, CANVAS_INPUT, 0, 1, y);
  canvas_network_fill(api.network, CANVAS_OUTPUT, 0, 1, y);
  canvas_network_fill(api.network, CANVAS_INPUT, 0, 1, NULL);
  EACH_INDEX(i) {
    NOTHING(canvas_network_count(api.network, (canvas_role)i));
    ZEROS(canvas_tensor, canvas_network_tensor(api.network, (canvas_role)i, 0));
    for (int role = CANVAS_INPUT; role <= CANVAS_OUTPUT; role++) {
      ZEROS(canvas_tensor, canvas_network_tensor(api.network, (canvas_role)role, i));
      canvas_network_fill(api.network, (canvas_role)role, i, 1, y);
    }
    canvas_network_fill(api.network, (canvas_role)i, 0, 1, y);
    NOTHING(canvas_network_source(api.network, i));
    NOTHING(canvas_network_program(api.network, i, &calls));
  }
  CHECK(calls == 0 && y[0] == 0, "nothing was written");
  for (int reference = 0; reference < 2; reference++) {
    canvas_status (*evaluate)(canvas_context *, const canvas_network *, const double *const *,
                              const double *const *, double *const *) =
        reference ? canvas_network_reference : canvas_network_evaluate;
    api_note(reference ? "canvas_network_reference(" : "canvas_network_evaluate(");
    BAD(evaluate(ctx, NULL, in, in, outputs));
    BAD(evaluate(ctx, api.network, NULL, in, outputs));
    BAD(evaluate(ctx, api.network, in, none, outputs));
    BAD(evaluate(ctx, api.network, in, in, NULL));
    BAD(evaluate(ctx, api.network, in, in, nowhere));
  }
  BAD(canvas_network_optimize(ctx, NULL, NULL, NULL));
  BAD(canvas_network_optimize(ctx, api.network, "such", NULL));
}

static void schedules(void **state) {
  canvas_context *ctx = api.ctx;
  canvas_prepared prepared;
  BAD_TEXTS(canvas_machine_parse, (ctx), (OUT(canvas_machine *)));
  NOTHING(canvas_machine_print(NULL));
  BAD_TEXTS(canvas_schedule_parse, (ctx), (OUT(canvas_schedule *)));
  NOTHING(canvas_schedule_print(NULL));
  BAD(canvas_schedule_set(ctx, NULL, "n=2"));
  BAD(canvas_schedule_set(ctx, api.schedule, NULL));
  BAD(canvas_schedule_default(ctx, NULL, api.machine, OUT(canvas_schedule *)));
  BAD(canvas_schedule_default(ctx, api.program, NULL, OUT(canvas_schedule *)));
  BAD(canvas_bound_new(ctx, NULL, NULL, api.machine, OUT(canvas_bound *)));
  BAD(canvas_bound_new(ctx, api.program, NULL, NULL, OUT(canvas_bound *)));
  NOTHING(canvas_bound_schedule(NULL));
  ZEROS(canvas_bound_facts, canvas_bound_describe(NULL));
  NOTHING(canvas_bound_holes(NULL));
  NOTHING(canvas_bound_warnings(NULL));
  NOTHING(canvas_bound_dot(NULL));
  NOTHING(canvas_bound_edits(NULL));
  NOTHING(canvas_bound_program_print(NULL));
  BAD(canvas_bound_explain(ctx, NULL, OUT(char *)));
  BAD(canvas_bound_cost_json(ctx, NULL, OUT(char *)));
  BAD_TEXTS(canvas_bound_edit, (ctx, api.bound), (OUT(canvas_bound *)));
  BAD(canvas_bound_edit(ctx, NULL, "", 0, OUT(canvas_bound *)));
  BAD_TEXTS(canvas_bound_follow, (ctx, api.bound), (OUT(canvas_schedule *)));
  BAD(canvas_bound_follow(ctx, NULL, "inline P", 8, OUT(canvas_schedule *)));
  BAD(canvas_bound_emit(ctx, NULL, NULL, OUT(char *)));
  BAD(canvas_bound_emit(ctx, api.bound, &(canvas_emit_options){.function = ""}, OUT(char *)));
  BAD(canvas_bound_statements(ctx, NULL, NULL, OUT(char *)));
  BAD(canvas_bound_statements(ctx, api.bound, "", OUT(char *)));
  BAD(canvas_bound_statements(ctx, api.bound, NULL, NULL));
  BAD(canvas_bound_prepared(ctx, NULL, &prepared));
  BAD(canvas_bound_prepared(ctx, api.bound, NULL));
  BAD(canvas_bound_compile(ctx, NULL, NULL, OUT(char *)));
  BAD(canvas_code_open(ctx, NULL, OUT(canvas_code *)));
}

static void compiled(void **state) {
  canvas_context *ctx = api.ctx;
  float x[12] = {0}, y[8];
  const void *in[] = {x, x}, *half[] = {x, NULL};
  void *outputs[] = {y}, *nowhere[] = {NULL};
  BAD(canvas_code_call(ctx, NULL, in, outputs));
  BAD(canvas_code_call(ctx, api.code, NULL, outputs));
  BAD(canvas_code_call(ctx, api.code, half, outputs));
  BAD(canvas_code_call(ctx, api.code, in, NULL));
  BAD(canvas_code_call(ctx, api.code, in, nowhere));
  EACH_INDEX(i) {
    const canvas_network_options options = {.threads = i};
    if (i == 99) continue;
    if (i < 0 || i > 1000000) {
      BAD(canvas_network_compile(ctx, api.network, &options, OUT(canvas_network_code *)));
      BAD(canvas_network_files(ctx, api.network, &options, OUT(canvas_network_file *)));
    }
  }
  BAD(canvas_network_compile(ctx, NULL, NULL, OUT(canvas_network_code *)));
  BAD(canvas_network_files(ctx, NULL, NULL, OUT(canvas_network_file *)));
  ZEROS(canvas_network_facts, canvas_network_code_describe(NULL));
  ZEROS(canvas_network_call, canvas_network_code_call(NULL, 0));
  BAD(canvas_network_code_run(ctx, api.network_code, in, outputs));  // it is not loaded
  BAD(canvas_network_code_load(ctx, NULL, in));
  BAD(canvas_network_code_load(ctx, api.network_code, NULL));
  BAD(canvas_network_code_load(ctx, api.network_code, (const void *const *)nowhere));
  MUST(canvas_network_code_load(ctx, api.network_code, in));
  BAD(canvas_network_code_run(ctx, NULL, in, outputs));
  BAD(canvas_network_code_run(ctx, api.network_code, NULL, outputs));
  BAD(canvas_network_code_run(ctx, api.network_code, in, NULL));
  BAD(canvas_network_code_run(ctx, api.network_code, in, nowhere));
  EACH_INDEX(i) {
    ZEROS(canvas_network_call, canvas_network_code_call(api.network_code, i));
    BAD(canvas_network_code_step(ctx, api.network_code, i, in, outputs));
  }
  BAD(canvas_network_code_step(ctx, NULL, 0, in, outputs));
  BAD(canvas_network_code_step(ctx, api.network_code, 0, NULL, outputs));
}

static void measurers(void **state) {
  canvas_context *ctx = api.ctx;
  const canvas_bound *candidates[] = {api.bound, NULL};
  canvas_verdict verdicts[2];
  EACH_INDEX(i) NOTHING(canvas_failure_name((canvas_failure)i));
  EACH_NUMBER(x) {
    const canvas_run_options bad[] = {{.seconds = x}, {.total_seconds = x}};
    for (int k = 0; k < 2; k++)
      BAD(canvas_measurer_new(ctx, api.program, &bad[k], OUT(canvas_measurer *)));
  }
  const canvas_run_options counts[] = {{.repeats = -1},      {.repeats = INT_MAX}, {.threads = -1},
                                       {.threads = INT_MAX}, {.winograd = -1},     {.winograd = 3},
                                       {.winograd = INT_MAX}};
  for (int k = 0; k < 7; k++)
    BAD(canvas_measurer_new(ctx, api.program, &counts[k], OUT(canvas_measurer *)));
  BAD(canvas_measurer_new(ctx, NULL, NULL, OUT(canvas_measurer *)));
  NOTHING(canvas_measurer_compiler(NULL));
  api_note("canvas_measurer_no_reference(");
  CHECK_TEXT(canvas_measurer_no_reference(NULL), "", "no measurer");
#define RUN(count) canvas_measurer_run(ctx, api.measurer, candidates, count, verdicts)
  BAD(canvas_measurer_run(ctx, NULL, candidates, 1, verdicts));
  BAD(canvas_measurer_run(ctx, api.measurer, NULL, 1, verdicts));
  BAD(canvas_measurer_run(ctx, api.measurer, candidates, 1, NULL));
  BAD(RUN(-1));
  BAD(RUN(INT_MIN));
  BAD(RUN(2));
  MUST(canvas_measurer_run(ctx, api.measurer, NULL, 0, NULL));
}

static void tuning(void **state) {
  canvas_context *ctx = api.ctx;
  const canvas_program *programs[] = {api.program, NULL};
  canvas_bound *bounds[2] = {0};
  canvas_tuned tuned[2];
  EACH_INDEX(i) ZEROS(canvas_tune_method, canvas_tune_method_at(i));
#define TUNE(options) \
  canvas_tune(ctx, api.program, api.machine, options, OUT(canvas_bound *), tuned)
#define MANY(programs, weights, count) \
  canvas_tune_many(ctx, programs, weights, count, api.machine, NULL, bounds, tuned)
  api_note("canvas_tune(");
  EACH_NUMBER(x) {
    const canvas_tune_options bad[] = {{.seconds = x}, {.timeout = x}};
    for (int k = 0; k < 2; k++) BAD(TUNE(&bad[k]));
    BAD(MANY(programs, &x, 1));
  }
  static const int counts[] = {-1, INT_MIN, INT_MAX};
  for (int k = 0; k < 3; k++) {
    const canvas_tune_options bad[] = {{.trials = counts[k]},
                                       {.patience = counts[k]},
                                       {.together = counts[k]},
                                       {.threads = counts[k]}};
    for (int i = 0; i < 4; i++) {
      BAD(TUNE(&bad[i]));
      BAD(canvas_tune_space(ctx, api.program, api.machine, &bad[i], 1, OUT(char *)));
      BAD(canvas_tune_many(ctx, programs, NULL, 1, api.machine, &bad[i], bounds, tuned));
    }
  }
  BAD(canvas_tune(ctx, NULL, api.machine, NULL, OUT(canvas_bound *), tuned));
  BAD(canvas_tune(ctx, api.program, NULL, NULL, OUT(canvas_bound *), tuned));
  BAD(canvas_tune(ctx, api.program, api.machine, NULL, NULL, tuned));
  BAD(MANY(programs, NULL, -1));
  BAD(MANY(programs, NULL, INT_MIN));
  BAD(MANY(programs, NULL, 2));
  BAD(MANY(NULL, NULL, 1));
  BAD(canvas_tune_many(ctx, programs, NULL, 1, api.machine, NULL, NULL, tuned));
  BAD(canvas_tune_many(ctx, programs, NULL, 1, api.machine, NULL, bounds, NULL));
  BAD(canvas_tune_many(ctx, programs, NULL, 1, NULL, NULL, bounds, tuned));
  BAD(canvas_tune_space(ctx, api.program, api.machine, NULL, -1, OUT(char *)));
  BAD(canvas_tune_space(ctx, api.program, api.machine, NULL, INT_MIN, OUT(char *)));
  BAD(canvas_tune_space(ctx, NULL, api.machine, NULL, 1, OUT(char *)));
}

static void logs(void **state) {
  canvas_context *ctx = api.ctx;
  const canvas_log *some[] = {api.log, NULL};
  const canvas_log_place place = {.machine = api.machine, .compiler = "cc"};
  const canvas_verdict time = {.median = 1, .lower = 1, .upper = 1, .repeats = 3};
  const canvas_log_place places[] = {{.threads = -1}, {.threads = INT_MAX}, {.winograd = 3}};
  const char *why = NULL;
  int64_t line;
  int record, count = 5;
  canvas_log_taken taken;
  BAD(canvas_log_read(ctx, NULL, OUT(canvas_log *)));
  NOTHING(canvas_log_count(NULL));
  ZEROS(canvas_record, canvas_log_record(NULL, 0));
  NOTHING(canvas_log_line(NULL, 0));
  NOTHING(canvas_log_damaged(NULL, &line, &why));
  NOTHING(canvas_log_outdated(NULL, &line));
  EACH_INDEX(i) {
    ZEROS(canvas_record, canvas_log_record(api.log, i));
    NOTHING(canvas_log_line(api.log, i));
    BAD(canvas_log_bind(ctx, api.log, i, NULL, OUT(canvas_bound *)));
    if (i < 0) NOTHING(canvas_log_merge(some, i));
  }
  NOTHING(canvas_log_merge(NULL, 1));
  NOTHING(canvas_log_merge(some, 2));
  BAD(canvas_log_bind(ctx, NULL, 0, NULL, OUT(canvas_bound *)));
  for (int i = 0; i < 3; i++) {
    BAD(canvas_log_best(ctx, api.log, api.program, &places[i], &record));
    BAD(canvas_log_add_network(ctx, api.path, api.bound, &places[i], &time));
  }
  for (int i = 0; i < 3; i++) {
    BAD(canvas_log_take(ctx, api.log, api.program, &places[i], OUT(canvas_bound *), &taken));
    BAD(canvas_log_bind(ctx, api.log, 0, &places[i], OUT(canvas_bound *)));
  }
  BAD(canvas_log_take(ctx, NULL, api.program, &place, OUT(canvas_bound *), &taken));
  BAD(canvas_log_take(ctx, api.log, NULL, &place, OUT(canvas_bound *), &taken));
  BAD(canvas_log_take(ctx, api.log, api.program, NULL, OUT(canvas_bound *), &taken));
  BAD(canvas_log_take(ctx, api.log, api.program, &place, NULL, &taken));
  BAD(canvas_log_take(ctx, api.log, api.program, &place, OUT(canvas_bound *), NULL));
  BAD(canvas_log_best(ctx, NULL, api.program, &place, &record));
  BAD(canvas_log_best(ctx, api.log, NULL, &place, &record));
  BAD(canvas_log_best(ctx, api.log, api.program, NULL, &record));
  BAD(canvas_log_best(ctx, api.log, api.program, &place, NULL));
  EACH_NUMBER(x) {
    const canvas_verdict bad[] = {
        {.median = x}, {.median = 1, .lower = x}, {.median = 1, .upper = x}};
    for (int k = 0; k < 3; k++)
      BAD(canvas_log_add_network(ctx, api.path, api.bound, &place, &bad[k]));
  }
  BAD(canvas_log_add_network(ctx, api.path, api.bound, &place, &(canvas_verdict){.repeats = 1}));
  BAD(canvas_log_add_network(ctx, NULL, api.bound, &place, &time));
  BAD(canvas_log_add_network(ctx, api.path, NULL, &place, &time));
  BAD(canvas_log_add_network(ctx, api.path, api.bound, NULL, &time));
  BAD(canvas_log_add_network(ctx, api.path, api.bound, &place, NULL));
  NOTHING(canvas_log_tasks(NULL, &place, &count));
  NOTHING(canvas_log_tasks(api.log, NULL, &count));
  NOTHING(canvas_log_tasks(api.log, &place, NULL));
}

#define SAYS(call, message)                                      \
  do {                                                           \
    CHECK_INT(call, CANVAS_BAD_INPUT, #call);                    \
    CHECK_TEXT(canvas_context_message(api.ctx), message, #call); \
  } while (0)

static void refusals_say_what_is_wrong(void **state) {
  canvas_context *ctx = api.ctx;
  const canvas_kernel *parents[] = {api.kernel, NULL};
  const canvas_solve_options norm = {.norm = (canvas_norm)7};
  const canvas_tune_options many = {.trials = INT_MAX};
  const canvas_log_place place = {.compiler = "cc"};
  const double minus = -1;
  const void *in[] = {NULL};
  void *outputs[] = {&out};
  canvas_cost cost;
  canvas_verdict verdict = {0};
  int64_t g;
  canvas_bound *bound;
  canvas_tuned tuned;
  SAYS(canvas_pack_cost(ctx, NULL, 0, &cost), "'pack' is NULL, give one");
  SAYS(canvas_pack_cost(ctx, api.pack, 99, &cost), "target 99 does not exist, give 0 to 0");
  SAYS(canvas_targets_cost(ctx, api.targets, -2, &cost), "target -2 does not exist, give 0 to 1");
  SAYS(canvas_reader_open(ctx, NULL, 1, OUT(canvas_reader *)), "'text' is NULL, give one");
  SAYS(canvas_program_parse(ctx, NULL, 1, OUT(canvas_program *)), "the text is NULL, give one");
  SAYS(canvas_sampler_mutate(ctx, api.sampler, 0, parents, (int64_t[]){1, 1}, 2,
                             OUT(canvas_kernel *), &g),
       "'parents' holds NULL as number 1");
  SAYS(canvas_sampler_mutate(ctx, api.sampler, 0, parents, (int64_t[]){-1}, 1, OUT(canvas_kernel *),
                             &g),
       "'parent_groups' holds -1, give 0 to 16777216");
  SAYS(canvas_kernel_solve(ctx, api.kernel, api.targets, api.budget, &norm, OUT(canvas_pack *)),
       "the option 'norm' is 7, give one of canvas_norm");
  SAYS(canvas_measurer_run(ctx, api.measurer, NULL, -1, &verdict),
       "the number of 'candidates' is -1, give 0 or more");
  SAYS(canvas_tune(ctx, api.program, api.machine, &many, &bound, NULL),
       "the option 'trials' is 2.14748e+09, give at most 1e+09");
  SAYS(canvas_tune_many(ctx, (const canvas_program *[]){api.program}, &minus, 1, api.machine, NULL,
                        &bound, &tuned),
       "'weights' holds -1, give 0 to 1e+18");
  SAYS(canvas_tune_space(ctx, api.program, api.machine, NULL, -1, OUT(char *)),
       "the number of points is -1, give 0 or more");
  SAYS(canvas_log_bind(ctx, api.log, 1, NULL, &bound), "record 1 does not exist, the log has 1");
  SAYS(canvas_log_add_network(ctx, api.path, api.bound, &place, &verdict),
       "the median of the times is 0, give seconds");
  SAYS(canvas_network_code_run(ctx, api.network_code, NULL, outputs),
       "the array of tensors is NULL, give one");
  SAYS(canvas_network_code_run(ctx, api.network_code, in, outputs),
       "'x' is given by a pointer to its elements, not by NULL");
}

// Files that are no objects of the cache.
static void objects(void **state) {
  canvas_context *ctx = api.ctx;
  BAD(canvas_object_load(ctx, NULL, OUT(void *)));
  BAD(canvas_object_load(ctx, api.path, NULL));
}

static void freeing_nothing(void **state) {
  canvas_network_files_free(NULL);
  canvas_log_tasks_free(NULL);
  canvas_prepared_free(NULL);
  canvas_stop_when(NULL, NULL);
  CHECK_INT(canvas_main(0, NULL), 2, "no words");
  CHECK_INT(canvas_main(-1, NULL), 2, "fewer words than none");
}

// What takes nothing that could be wrong, and what frees (test_api.c frees NULL).
static void no_function_is_forgotten(void **state) {
  api_check_all_tried(
      " canvas_version canvas_context_new canvas_context_free canvas_context_message"
      " canvas_string_free canvas_targets_free canvas_kernel_free canvas_reader_close"
      " canvas_sampler_free canvas_budget_free canvas_pack_free canvas_program_free"
      " canvas_network_free canvas_machine_here canvas_machine_free canvas_schedule_free"
      " canvas_bound_free canvas_prepared_free canvas_compiler_name canvas_code_close"
      " canvas_network_code_free canvas_network_files_free canvas_measurer_free canvas_stop_when"
      " canvas_log_free canvas_log_tasks_free canvas_main ");
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
      cmocka_unit_test(targets_and_kernels),
      cmocka_unit_test(sampling_and_solving),
      cmocka_unit_test(packs),
      cmocka_unit_test(programs),
      cmocka_unit_test(networks),
      cmocka_unit_test(schedules),
      cmocka_unit_test(compiled),
      cmocka_unit_test(measurers),
      cmocka_unit_test(tuning),
      cmocka_unit_test(logs),
      cmocka_unit_test(refusals_say_what_is_wrong),
      cmocka_unit_test(objects),
      cmocka_unit_test(freeing_nothing),
      cmocka_unit_test(no_function_is_forgotten),
  };
  return cmocka_run_group_tests(tests, open_all, close_all);
}
