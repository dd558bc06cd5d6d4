// The public API, used as its users do: canvas.h alone, the pipeline from text to numbers.
#include "check.h"

#include <stdio.h>
#include <stdlib.h>

#include "canvas.h"

static const char convolution[] =
    "canvas 1\n"
    "kernel conv\n"
    "a = input                      : C H W\n"
    "b = unfold a over=H,W k=K      : C KH KW H W\n"
    "c = fc b to=x0                 : x0 H W\n"
    "d = fc c to=C                  : C H W\n"
    "out d\n";

static canvas_context *ctx;

static int open_context(void **state) {
  ctx = canvas_context_new();
  return ctx ? 0 : -1;
}

static int close_context(void **state) {
  canvas_context_free(ctx);
  return 0;
}

static canvas_kernel *kernel_of(const char *text) {
  canvas_kernel *kernel = NULL;
  canvas_status status = canvas_kernel_parse(ctx, text, strlen(text), &kernel);
  CHECK_INT(status, CANVAS_OK, canvas_context_message(ctx));
  return kernel;
}

static canvas_pack *bound(const char *text, const char *at) {
  canvas_kernel *kernel = kernel_of(text);
  canvas_pack *pack = NULL;
  canvas_status status = canvas_kernel_bind(ctx, kernel, at, strlen(at), &pack);
  CHECK_INT(status, CANVAS_OK, canvas_context_message(ctx));
  canvas_kernel_free(kernel);
  return pack;
}

static canvas_targets *targets_of(const char *text) {
  canvas_targets *targets = NULL;
  canvas_status status = canvas_targets_parse(ctx, text, strlen(text), &targets);
  CHECK_INT(status, CANVAS_OK, canvas_context_message(ctx));
  return targets;
}

static void the_header_is_of_this_library(void **state) {
  char numbers[32];
  snprintf(numbers, sizeof numbers, "%d.%d.%d", CANVAS_VERSION_MAJOR, CANVAS_VERSION_MINOR,
           CANVAS_VERSION_PATCH);
  assert_string_equal(canvas_version(), CANVAS_VERSION);
  assert_string_equal(canvas_version(), numbers);
}

static void nothing_is_freed_quietly(void **state) {
  canvas_targets_free(NULL);
  canvas_budget_free(NULL);
  canvas_kernel_free(NULL);
  canvas_pack_free(NULL);
  canvas_reader_close(NULL);
  canvas_sampler_free(NULL);
  canvas_program_free(NULL);
  canvas_schedule_free(NULL);
  canvas_machine_free(NULL);
  canvas_bound_free(NULL);
  canvas_code_close(NULL);
  canvas_measurer_free(NULL);
  canvas_context_free(NULL);
  canvas_string_free(NULL);
}

static void a_kernel_has_facts(void **state) {
  static const struct {
    const char *body;
    canvas_kernel_facts facts;
  } rows[] = {
      {"b = fc a to=x0\nc = fc b to=C\nout c", {2, 1, true, false, false, false}},
      {"b = group a by=G\nc = fc b to=C\nout c", {2, 0, true, true, false, false}},
      {"b = unfold a over=H,W k=K stride=S\nc = fc b to=C\nout c",
       {2, 0, true, false, true, false}},
      {"b = group a by=G\nc = subsample b over=H,W by=S\nout c", {2, 0, false, true, true, false}},
      {"b = subsample a over=H,W by=S\nc = fc b to=H*W\nd = fc c to=C\nout d",
       {3, 0, true, false, true, true}},
      {"b = fc a to=H*W\nc = fc b to=C\nout c", {2, 0, true, false, false, true}},
  };
  CHECK_ROWS (rows, row) {
    char text[256];
    snprintf(text, sizeof text, "canvas 1\nkernel k\na = input\n%s\n", row->body);
    canvas_kernel *kernel = kernel_of(text);
    canvas_kernel_facts facts = canvas_kernel_describe(kernel);
    CHECK_INT(facts.primitives, row->facts.primitives, text);
    CHECK_INT(facts.variables, row->facts.variables, text);
    CHECK_INT(facts.has_weights, row->facts.has_weights, text);
    CHECK_INT(facts.uses_groups, row->facts.uses_groups, text);
    CHECK_INT(facts.uses_stride, row->facts.uses_stride, text);
    CHECK_INT(facts.needs_fixed_hw, row->facts.needs_fixed_hw, text);
    canvas_kernel_free(kernel);
  }
}

static void a_kernel_prints_what_it_parsed(void **state) {
  canvas_kernel *kernel = kernel_of(convolution);
  char *text = canvas_kernel_print(kernel), *dot = canvas_kernel_dot(kernel);
  CHECK_TEXT(text, convolution, "conv");
  CHECK_TEXT(canvas_kernel_name(kernel), "conv", "conv");
  CHECK_TEXT(canvas_kernel_reach(kernel), NULL, "conv");
  CHECK(strncmp(dot, "digraph", 7) == 0, dot);
  canvas_kernel_facts facts = canvas_kernel_describe(kernel);
  CHECK_INT(facts.primitives, 3, "conv");
  CHECK_INT(facts.variables, 1, "conv");
  CHECK(facts.has_weights && !facts.uses_groups && !facts.needs_fixed_hw, "conv");
  CHECK_INT(strlen(canvas_kernel_hash(kernel).hex), 32, "conv");
  canvas_string_free(text);
  canvas_string_free(dot);
  canvas_kernel_free(kernel);
}

// Texts that hold one kernel, several, none, or a mistake.
static void a_text_holds_one_kernel(void **state) {
  static const struct {
    const char *text, *message;
  } rows[] = {
      {"canvas 1\nkernel k\na = input\nout a\n", ""},
      {"\n# comment\n  canvas 1\nkernel k\ncanvas = input\nout canvas", ""},
      {"canvas 1\nkernel k\na = input\nout a\nbind t C=4 H=4 W=4\n", ""},
      {"", "the text holds no kernel"},
      {"# nothing\n \n", "the text holds no kernel"},
      {"canvas 1\nkernel k\na = input\nout a\ncanvas 1\nkernel l\na = input\nout a\n",
       "the text holds more than one kernel, give one"},
      {"canvas 1\nkernel k\na = input\nout a\n\ncanvas 1\nkernel l\na = output\nout a\n",
       "line 8, column 5: the first node must be 'input', not 'output'"},
      {"x\ncanvas 1\nkernel k\na = input\nout a\n",
       "line 1, column 1: expected 'canvas' and the version ('canvas 1') on the first line, found "
       "'x'"},
  };
  CHECK_ROWS (rows, row) {
    canvas_kernel *kernel = NULL;
    canvas_status status = canvas_kernel_parse(ctx, row->text, strlen(row->text), &kernel);
    CHECK_INT(status, *row->message ? CANVAS_BAD_INPUT : CANVAS_OK, row->text);
    if (status != CANVAS_OK) CHECK_TEXT(canvas_context_message(ctx), row->message, row->text);
    CHECK((kernel != NULL) == !*row->message, row->text);
    canvas_kernel_free(kernel);
  }
}

static void a_reader_walks_many(void **state) {
  enum { MANY = 500 };
  char *text = malloc(MANY * 64 + 1), name[16];
  size_t length = 0;
  canvas_reader *reader;
  canvas_pack *pack;
  for (int i = 0; i < MANY; i++)
    length += (size_t)sprintf(text + length, "canvas 1\nkernel k%d\na = input\nout a\n%s", i,
                              i % 2 ? "bind t C=4 H=4 W=4\n" : "\n");
  CHECK_INT(canvas_reader_open(ctx, text, length, &reader), CANVAS_OK, text);
  memset(text, 'x', length);  // the reader has its own copy
  for (int i = 0; i < MANY; i++) {
    snprintf(name, sizeof name, "k%d", i);
    CHECK_INT(canvas_reader_next(ctx, reader, &pack), CANVAS_OK, name);
    CHECK_TEXT(canvas_kernel_name(canvas_pack_kernel(pack)), name, name);
    CHECK_INT(canvas_pack_count(pack), i % 2, name);
    canvas_pack_free(pack);
  }
  CHECK_INT(canvas_reader_next(ctx, reader, &pack), CANVAS_NONE, "the end");
  CHECK_INT(canvas_reader_next(ctx, reader, &pack), CANVAS_NONE, "the end");
  canvas_reader_close(reader);
  free(text);
}

static void a_reader_rejects_what_is_too_long(void **state) {
  canvas_reader *reader = NULL;
  size_t length = (size_t)CANVAS_TEXT_LIMIT + 1;
  char *text = calloc(1, length);
  CHECK_INT(canvas_reader_open(ctx, text, length, &reader), CANVAS_BAD_INPUT, "16 MiB + 1");
  CHECK_INT(canvas_reader_open(ctx, NULL, 0, &reader), CANVAS_OK, "NULL");
  canvas_reader_close(reader);
  free(text);
}

static void targets_keep_their_names(void **state) {
  canvas_targets *targets = targets_of("first 8 8 4 4 3 1 1\nsecond 8 16 4 4 3x1 2 1\n");
  canvas_cost first, second, all;
  char *text = canvas_targets_print(targets), *json;
  CHECK_INT(canvas_targets_count(targets), 2, text);
  CHECK_TEXT(canvas_targets_name(targets, 1), "second", text);
  CHECK_INT(canvas_targets_cost(ctx, targets, 0, &first), CANVAS_OK, text);
  CHECK_INT(canvas_targets_cost(ctx, targets, 1, &second), CANVAS_OK, text);
  CHECK_INT(canvas_targets_cost(ctx, targets, -1, &all), CANVAS_OK, text);
  CHECK_INT(first.macs, 8 * 8 * 9 * 16, text);
  CHECK_INT(second.macs, 8 * 16 * 3 * 4, text);
  CHECK_INT(all.params, 8 * 8 * 9 + 8 * 16 * 3, text);
  CHECK_INT(canvas_targets_cost_json(ctx, targets, &json), CANVAS_OK, text);
  CHECK(strstr(json, "\"targets\": [{\"name\": \"first\", \"macs\": 9216, ") != NULL, json);
  canvas_targets *again = targets_of(text);
  char *reprinted = canvas_targets_print(again);
  CHECK_TEXT(reprinted, text, text);
  canvas_string_free(json);
  canvas_string_free(text);
  canvas_string_free(reprinted);
  canvas_targets_free(again);
  canvas_targets_free(targets);
}

// draw -> solve -> pack -> cost, torch and program, with the message of what has no solution.
static void the_pipeline_holds_together(void **state) {
  canvas_targets *targets = targets_of("64,8,8;32,16,16");
  canvas_budget *budget;
  canvas_sampler *sampler;
  canvas_cost whole, part, base;
  int solved = 0;
  const char *half = "macs=0.5x,params=0.5x";
  CHECK_INT(canvas_budget_parse(ctx, half, strlen(half), &budget), CANVAS_OK, half);
  CHECK_INT(canvas_sampler_new(ctx, targets, "", 0, 7, &sampler), CANVAS_OK, "seed 7");
  CHECK_INT(canvas_targets_cost(ctx, targets, -1, &base), CANVAS_OK, "targets");
  for (uint64_t i = 0; i < 50; i++) {
    canvas_kernel *kernel;
    canvas_pack *pack;
    canvas_solve_options options = {0, false, CANVAS_NORM_NONE};
    canvas_status status = canvas_sampler_draw(ctx, sampler, i, &kernel, &options.groups);
    if (status == CANVAS_NONE) continue;
    CHECK_INT(status, CANVAS_OK, canvas_context_message(ctx));
    CHECK_TEXT(canvas_kernel_reach(kernel), NULL, canvas_kernel_name(kernel));
    status = canvas_kernel_solve(ctx, kernel, targets, budget, &options, &pack);
    if (status == CANVAS_OK) {
      int64_t macs = 0;
      for (int t = 0; t < canvas_pack_count(pack); t++) {
        CHECK_INT(canvas_pack_cost(ctx, pack, t, &part), CANVAS_OK, canvas_pack_target(pack, t));
        macs += part.macs;
      }
      CHECK_INT(canvas_pack_cost(ctx, pack, -1, &whole), CANVAS_OK, canvas_kernel_name(kernel));
      CHECK_INT(whole.macs, macs, canvas_kernel_name(kernel));
      CHECK(2 * whole.macs <= base.macs && 2 * whole.params <= base.params, "the budget");
      canvas_pack_free(pack);
      solved++;
    } else {
      CHECK_INT(status, CANVAS_NONE, canvas_context_message(ctx));
      CHECK(*canvas_context_message(ctx), "a reason");
    }
    canvas_kernel_free(kernel);
  }
  CHECK(solved > 5, "of 50 draws");
  canvas_sampler_free(sampler);
  canvas_budget_free(budget);
  canvas_targets_free(targets);
}

static void solve_options_are_text(void **state) {
  static const struct {
    const char *text;
    int groups, exempt, norm;  // groups -1: rejected
  } rows[] = {
      {"", 0, 0, 0},
      {"G=4", 4, 0, 0},
      {"G=4 exempt=1", 4, 1, 0},
      {"exempt=1,G=2", 2, 1, 0},
      {"exempt=0", 0, 0, 0},
      {"norm=batch", 0, 0, CANVAS_NORM_BATCH},
      {"norm=none", 0, 0, CANVAS_NORM_NONE},
      {"norm=batch G=2, exempt=1", 2, 1, CANVAS_NORM_BATCH},
      {"norm=batch norm=none", 0, 0, CANVAS_NORM_NONE},
      {"norm", -1, 0, 0},
      {"norm=layer", -1, 0, 0},
      {"norm=1", -1, 0, 0},
      {"G=0", -1, 0, 0},
      {"G=-4", -1, 0, 0},
      {"exempt=2", -1, 0, 0},
      {"G", -1, 0, 0},
      {"G=4x", -1, 0, 0},
      {"H=4", -1, 0, 0},
      {"G=99999999999", -1, 0, 0},
  };
  CHECK_ROWS (rows, row) {
    canvas_solve_options options = {0, false, CANVAS_NORM_NONE};
    canvas_status status = canvas_solve_options_parse(ctx, row->text, strlen(row->text), &options);
    CHECK_INT(status, row->groups < 0 ? CANVAS_BAD_INPUT : CANVAS_OK, row->text);
    if (row->groups < 0) continue;
    CHECK_INT(options.groups, row->groups, row->text);
    CHECK_INT(options.exempt, row->exempt, row->text);
    CHECK_INT(options.norm, row->norm, row->text);
  }
}

static void a_pack_without_sizes_says_so(void **state) {
  canvas_pack *pack;
  canvas_cost cost;
  canvas_program *program;
  char *text;
  CHECK_INT(canvas_pack_parse(ctx, convolution, strlen(convolution), &pack), CANVAS_OK, "conv");
  CHECK_INT(canvas_pack_count(pack), 0, "conv");
  CHECK_INT(canvas_pack_cost(ctx, pack, -1, &cost), CANVAS_BAD_INPUT, "conv");
  CHECK_INT(canvas_pack_cost_json(ctx, pack, &text), CANVAS_BAD_INPUT, "conv");
  CHECK_INT(canvas_pack_torch(ctx, pack, true, &text), CANVAS_BAD_INPUT, "conv");
  CHECK_INT(canvas_pack_lower(ctx, pack, 0, 1, &program), CANVAS_BAD_INPUT, "conv");
  CHECK_TEXT(canvas_context_message(ctx),
             "kernel 'conv' has no sizes, give them in bind lines or as C=64,H=56,W=56", "conv");
  canvas_pack_free(pack);
}

// Targets are numbered through all kernels; each kernel is a pack of its own, too.
static void a_pack_of_several_kernels(void **state) {
  static const char text[] =
      "canvas 1\nkernel conv\na = input\nb = unfold a over=H,W k=K\nc = fc b to=C\nout c\n"
      "bind s C=4 H=5 W=3\nkernel thin\na = input\nb = fc a to=C\nout b\n"
      "bind t C=4 H=5 W=3\nbind u C=8 H=5 W=3\nkeep v C=8 H=5 W=3\n";
  static const char *const targets[] = {"s", "t", "u"}, *const kernels[] = {"conv", "thin", "thin"};
  static const int64_t macs[] = {2160, 240, 960};
  canvas_pack *pack;
  canvas_cost cost;
  CHECK_INT(canvas_pack_parse(ctx, text, strlen(text), &pack), CANVAS_OK,
            canvas_context_message(ctx));
  CHECK_INT(canvas_pack_kernels(pack), 2, "kernels");
  CHECK_INT(canvas_pack_count(pack), 3, "targets");
  CHECK_INT(canvas_pack_kept(pack), 1, "kept");
  CHECK_TEXT(canvas_pack_kept_target(pack, 0), "v", "kept");
  CHECK_INT(canvas_pack_kept_cost(pack, 0).macs, 8640, "kept");
  for (int i = 0; i < 3; i++) {
    canvas_program *program;
    CHECK_TEXT(canvas_pack_target(pack, i), targets[i], targets[i]);
    CHECK_TEXT(canvas_kernel_name(canvas_pack_kernel_of(pack, i)), kernels[i], targets[i]);
    CHECK_INT(canvas_pack_cost(ctx, pack, i, &cost), CANVAS_OK, targets[i]);
    CHECK_INT(cost.macs, macs[i], targets[i]);
    CHECK_INT(canvas_pack_lower(ctx, pack, i, 1, &program), CANVAS_OK, targets[i]);
    canvas_program_free(program);
  }
  CHECK_INT(canvas_pack_cost(ctx, pack, -1, &cost), CANVAS_OK, "all");
  CHECK_INT(cost.macs, 2160 + 240 + 960 + 8640, "all");
  canvas_pack *part = canvas_pack_part(pack, 1);
  CHECK_INT(canvas_pack_count(part), 2, "part");
  CHECK_INT(canvas_pack_kept(part), 0, "part");
  CHECK_TEXT(canvas_pack_hash(part).hex, canvas_kernel_hash(canvas_pack_kernel(part)).hex, "part");
  CHECK(strcmp(canvas_pack_hash(pack).hex, canvas_pack_hash(part).hex) != 0, "hash");
  canvas_pack_free(part);
  canvas_pack_free(pack);
}

static void lowering_rejects_targets_and_batches(void **state) {
  static const struct {
    int target;
    int64_t batch;
    canvas_status status;
  } rows[] = {{0, 1, CANVAS_OK},
              {0, 3, CANVAS_OK},
              {-1, 1, CANVAS_BAD_INPUT},
              {1, 1, CANVAS_BAD_INPUT},
              {0, 0, CANVAS_BAD_INPUT},
              {0, -1, CANVAS_BAD_INPUT},
              {0, INT64_MAX, CANVAS_BAD_INPUT}};
  canvas_pack *pack = bound(convolution, "C=4,H=5,W=3,x0=2");
  CHECK_ROWS (rows, row) {
    canvas_program *program = NULL;
    CHECK_INT(canvas_pack_lower(ctx, pack, row->target, row->batch, &program), row->status,
              canvas_context_message(ctx));
    canvas_program_free(program);
  }
  canvas_pack_free(pack);
}

// A 1x1 convolution with a bias over one pixel: Y = W X + B.
static void operators_are_programs(void **state) {
  static const char arguments[] =
      "in_channels=2 height=1 width=1 out_channels=1 kernel=1 bias=1 dtype=f64 and more";
  canvas_program *program;
  char *text;
  const double x[] = {3, 5}, w[] = {7, 11}, b[] = {13}, *in[] = {x, w, b};
  double y;
  size_t length = sizeof arguments - sizeof " and more";
  CHECK_INT(canvas_operator_program(ctx, "conv2d_nchw", arguments, length, &program), CANVAS_OK,
            canvas_context_message(ctx));
  CHECK_INT(canvas_program_input(program, 2).elements, 1, "B");
  CHECK_INT(canvas_program_evaluate(ctx, program, in, 0, 1, NULL, &y), CANVAS_OK,
            canvas_context_message(ctx));
  CHECK_NEAR(y, 3 * 7 + 5 * 11 + 13, 0, arguments);
  canvas_program_free(program);
  CHECK_INT(canvas_operator_describe(ctx, "gemm", &text), CANVAS_OK, canvas_context_message(ctx));
  CHECK(strstr(text, "transpose_a=0"), text);
  canvas_string_free(text);
  CHECK_INT(canvas_operator_describe(ctx, "gemmm", &text), CANVAS_BAD_INPUT, "gemmm");
  CHECK(strstr(canvas_context_message(ctx), "'gemm'"), canvas_context_message(ctx));
}

// All inputs of a program from one seed; the caller frees each.
static void fill(const canvas_program *program, uint64_t seed, double *inputs[8]) {
  for (int i = 0; i < canvas_program_inputs(program); i++) {
    inputs[i] = calloc((size_t)canvas_program_input(program, i).elements, sizeof(double));
    canvas_program_fill(program, i, seed, inputs[i]);
  }
}

static void free_all(const canvas_program *program, double *inputs[8]) {
  for (int i = 0; i < canvas_program_inputs(program); i++) free(inputs[i]);
}

// The program's numbers are those of the two convolutions written as loops.
static void the_interpreter_means_what_the_kernel_says(void **state) {
  enum { C = 4, H = 5, W = 3, X = 2 };
  canvas_pack *pack = bound(convolution, "C=4,H=5,W=3,x0=2");
  canvas_program *program;
  double *in[8], out[C * H * W], middle[X][H][W];
  CHECK_INT(canvas_pack_lower(ctx, pack, 0, 1, &program), CANVAS_OK, canvas_context_message(ctx));
  CHECK_INT(canvas_program_inputs(program), 3, "X, w0, w1");
  CHECK_INT(canvas_program_outputs(program), 1, "Y");
  canvas_tensor y = canvas_program_output(program, 0);
  CHECK_INT(y.rank, 4, "Y");
  CHECK_INT(y.elements, C * H * W, "Y");
  fill(program, 5, in);
  CHECK_INT(
      canvas_program_evaluate(ctx, program, (const double *const *)in, 0, C * H * W, NULL, out),
      CANVAS_OK, canvas_context_message(ctx));
  for (int x = 0; x < X; x++)
    for (int h = 0; h < H; h++)
      for (int w = 0; w < W; w++) {
        middle[x][h][w] = 0;
        for (int c = 0; c < C; c++)
          for (int kh = 0; kh < 3; kh++)
            for (int kw = 0; kw < 3; kw++) {
              int i = h + kh - 1, j = w + kw - 1;
              if (i < 0 || i >= H || j < 0 || j >= W) continue;
              middle[x][h][w] +=
                  in[0][(c * H + i) * W + j] * in[1][((x * C + c) * 3 + kh) * 3 + kw];
            }
      }
  for (int c = 0; c < C; c++)
    for (int i = 0; i < H * W; i++) {
      double sum = 0;
      for (int x = 0; x < X; x++) sum += middle[x][i / W][i % W] * in[2][c * X + x];
      CHECK_NEAR(out[c * H * W + i], sum, 1e-12, "an element");
    }
  free_all(program, in);
  canvas_program_free(program);
  canvas_pack_free(pack);
}

static void single_elements_equal_the_whole(void **state) {
  static const int64_t some[] = {59, 0, 17, 17, 58};
  canvas_pack *pack = bound(convolution, "C=4,H=5,W=3,x0=2");
  canvas_program *program, *again;
  double *in[8], whole[60], part[5];
  CHECK_INT(canvas_pack_lower(ctx, pack, 0, 1, &program), CANVAS_OK, canvas_context_message(ctx));
  char *text = canvas_program_print(program);
  CHECK_INT(canvas_program_parse(ctx, text, strlen(text), &again), CANVAS_OK, text);
  fill(again, 6, in);
  const double *const *inputs = (const double *const *)in;
  CHECK_INT(canvas_program_evaluate(ctx, program, inputs, 0, 60, NULL, whole), CANVAS_OK, text);
  CHECK_INT(canvas_program_evaluate(ctx, again, inputs, 0, 5, some, part), CANVAS_OK, text);
  for (int i = 0; i < 5; i++) CHECK(part[i] == whole[some[i]], text);
  CHECK_INT(canvas_program_evaluate(ctx, again, inputs, 0, 1, &(int64_t){60}, part),
            CANVAS_BAD_INPUT, text);
  CHECK_INT(canvas_program_evaluate(ctx, again, inputs, 0, 1, &(int64_t){-1}, part),
            CANVAS_BAD_INPUT, text);
  CHECK_INT(canvas_program_evaluate(ctx, again, inputs, 0, 0, NULL, part), CANVAS_OK, text);
  for (int output = -1; output <= 1; output += 2)
    CHECK_INT(canvas_program_evaluate(ctx, again, inputs, output, 1, NULL, part), CANVAS_BAD_INPUT,
              canvas_context_message(ctx));
  CHECK_TEXT(canvas_context_message(ctx), "output 1 does not exist, 'conv' has 1", text);
  free_all(again, in);
  canvas_string_free(text);
  canvas_program_free(program);
  canvas_program_free(again);
  canvas_pack_free(pack);
}

static void seeded_inputs_differ_by_input_and_seed(void **state) {
  canvas_pack *pack = bound(convolution, "C=4,H=5,W=3,x0=2");
  canvas_program *program;
  double a[72], b[72], c[72];
  CHECK_INT(canvas_pack_lower(ctx, pack, 0, 1, &program), CANVAS_OK, canvas_context_message(ctx));
  canvas_program_fill(program, 1, 5, a);
  canvas_program_fill(program, 1, 5, b);
  canvas_program_fill(program, 1, 6, c);
  CHECK(memcmp(a, b, sizeof a) == 0, "the same seed");
  CHECK(memcmp(a, c, sizeof a) != 0, "another seed");
  canvas_program_fill(program, 2, 5, c);
  CHECK(a[0] != c[0], "another input");
  canvas_program_free(program);
  canvas_pack_free(pack);
}

static void numbers_and_names_are_checked(void **state) {
  static const char text[] = "program p\nin A f32 [i:4]\nY[i:4] = A[i]\nout Y\n";
  static const struct {
    const char *function, *says;  // NULL: it is good
  } rows[] = {
      {"f", NULL},
      {"int", NULL},
      {"", "'' is no name of a C function, give letters, digits and '_'"},
      {"1f", "'1f' is no name of a C function, give letters, digits and '_'"},
      {"a b(", "'a b(' is no name of a C function, give letters, digits and '_'"},
  };
  canvas_program *program;
  canvas_machine *machine = canvas_machine_here();
  canvas_bound *b;
  canvas_count counted;
  CHECK_INT(canvas_program_parse(ctx, text, strlen(text), &program), CANVAS_OK, text);
  CHECK_INT(canvas_program_count(ctx, program, 0, &counted), CANVAS_OK, text);
  CHECK_INT(canvas_program_count(ctx, program, 1, &counted), CANVAS_BAD_INPUT, text);
  CHECK_TEXT(canvas_context_message(ctx), "stage 1 does not exist, 'p' has 1", text);
  CHECK_INT(canvas_program_count(ctx, program, -2, &counted), CANVAS_BAD_INPUT, text);
  CHECK_INT(canvas_bound_new(ctx, program, NULL, machine, &b), CANVAS_OK, text);
  CHECK_ROWS (rows, row) {
    char *code = NULL;
    canvas_status status =
        canvas_bound_emit(ctx, b, &(canvas_emit_options){.function = row->function}, &code);
    CHECK_INT(status, row->says ? CANVAS_BAD_INPUT : CANVAS_OK, row->function);
    if (row->says) CHECK_TEXT(canvas_context_message(ctx), row->says, row->function);
    canvas_string_free(code);
  }
  canvas_bound_free(b);
  canvas_machine_free(machine);
  canvas_program_free(program);
}

// A program's name that means something to a C or C++ compiler is not the function's.
static void functions_keep_off_names_of_c(void **state) {
  static const char *const rows[][2] = {
      {"conv", "conv"},   {"int", "int_"},         {"class", "class_"},
      {"main", "main_"},  {"printf", "x_printf"},  {"puts_unlocked", "x_puts_unlocked"},
      {"std", "std_"},    {"isalpha", "isalpha_"}, {"fork", "fork_"},
      {"cexp", "x_cexp"}, {"tolower", "tolower_"}, {"isotropic", "isotropic"},
  };
  CHECK_ROWS (rows, row) {
    char text[128];
    canvas_program *program;
    snprintf(text, sizeof text, "program %s\nin A f32 [i:4]\nY[i:4] = A[i]\nout Y\n", (*row)[0]);
    CHECK_INT(canvas_program_parse(ctx, text, strlen(text), &program), CANVAS_OK, text);
    char *function = canvas_program_function(program);
    CHECK_TEXT(function, (*row)[1], text);
    canvas_string_free(function);
    canvas_program_free(program);
  }
}

static void patterns_are_an_option(void **state) {
  canvas_pack *pack = bound(convolution, "C=4,H=5,W=3,x0=2");
  char *with, *without;
  CHECK_INT(canvas_pack_torch(ctx, pack, true, &with), CANVAS_OK, canvas_context_message(ctx));
  CHECK_INT(canvas_pack_torch(ctx, pack, false, &without), CANVAS_OK, canvas_context_message(ctx));
  CHECK(strstr(with, "conv2d") != NULL, with);
  CHECK(strcmp(with, without) != 0, with);
  char class[64];
  canvas_hash hash = canvas_kernel_hash(canvas_pack_kernel(pack));
  snprintf(class, sizeof class, "class Kernel_%.16s(nn.Module):", hash.hex);
  CHECK(strstr(with, class) != NULL, with);
  canvas_string_free(with);
  canvas_string_free(without);
  canvas_pack_free(pack);
}

// A deadline that has passed is no search without a limit.
static void options_are_no_less_than_nothing(void **state) {
  static const struct {
    canvas_tune_options tune;
    canvas_run_options run;
    const char *message;
  } rows[] = {
      {{.trials = -5}, {.repeats = -5}, "' is -5, give 0 or more"},
      {{.seconds = -1}, {.seconds = -1}, "the option 'seconds' is -1, give 0 or more"},
      {{.timeout = (double)NAN}, {.total_seconds = (double)NAN}, "nan, give 0 or more"},
      {{.patience = -1}, {.threads = -1}, "' is -1, give 0 or more"},
      {{.together = -1}, {.threads = -2}, "give 0 or more"},
      {{.threads = -2}, {.threads = -2}, "the option 'threads' is -2, give 0 or more"},
  };
  static const char text[] = "program p\nin X f32 [i:4]\nY[i:4] = X[i]\nout Y\n";
  canvas_program *program;
  canvas_machine *here = canvas_machine_here();
  CHECK_INT(canvas_program_parse(ctx, text, strlen(text), &program), CANVAS_OK, text);
  CHECK_ROWS (rows, row) {
    canvas_bound *fastest;
    canvas_measurer *measurer;
    canvas_status status = canvas_tune(ctx, program, here, &row->tune, &fastest, NULL);
    CHECK_INT(status, CANVAS_BAD_INPUT, row->message);
    CHECK(strstr(canvas_context_message(ctx), row->message), canvas_context_message(ctx));
    status = canvas_measurer_new(ctx, program, &row->run, &measurer);
    CHECK_INT(status, CANVAS_BAD_INPUT, row->message);
    CHECK(strstr(canvas_context_message(ctx), row->message), canvas_context_message(ctx));
  }
  canvas_program_free(program);
  canvas_machine_free(here);
}

static void the_table_has_three_forms(void **state) {
  static const canvas_format forms[] = {CANVAS_TEXT, CANVAS_JSON, CANVAS_MARKDOWN};
  CHECK_ROWS (forms, form) {
    char *text = canvas_primitives_print(*form);
    int lines = 0;
    for (const char *p = text; *p; p++) lines += *p == '\n';
    CHECK_INT(lines, 40 + (*form == CANVAS_MARKDOWN ? 2 : 0), text);
    canvas_string_free(text);
  }
}

CHECK_MAIN(
    cmocka_unit_test(the_header_is_of_this_library), cmocka_unit_test(nothing_is_freed_quietly),
    cmocka_unit_test_setup_teardown(a_kernel_has_facts, open_context, close_context),
    cmocka_unit_test_setup_teardown(a_kernel_prints_what_it_parsed, open_context, close_context),
    cmocka_unit_test_setup_teardown(a_text_holds_one_kernel, open_context, close_context),
    cmocka_unit_test_setup_teardown(a_reader_walks_many, open_context, close_context),
    cmocka_unit_test_setup_teardown(a_reader_rejects_what_is_too_long, open_context, close_context),
    cmocka_unit_test_setup_teardown(targets_keep_their_names, open_context, close_context),
    cmocka_unit_test_setup_teardown(the_pipeline_holds_together, open_context, close_context),
    cmocka_unit_test_setup_teardown(solve_options_are_text, open_context, close_context),
    cmocka_unit_test_setup_teardown(a_pack_without_sizes_says_so, open_context, close_context),
    cmocka_unit_test_setup_teardown(a_pack_of_several_kernels, open_context, close_context),
    cmocka_unit_test_setup_teardown(lowering_rejects_targets_and_batches, open_context,
                                    close_context),
    cmocka_unit_test_setup_teardown(the_interpreter_means_what_the_kernel_says, open_context,
                                    close_context),
    cmocka_unit_test_setup_teardown(single_elements_equal_the_whole, open_context, close_context),
    cmocka_unit_test_setup_teardown(seeded_inputs_differ_by_input_and_seed, open_context,
                                    close_context),
    cmocka_unit_test_setup_teardown(operators_are_programs, open_context, close_context),
    cmocka_unit_test_setup_teardown(numbers_and_names_are_checked, open_context, close_context),
    cmocka_unit_test_setup_teardown(functions_keep_off_names_of_c, open_context, close_context),
    cmocka_unit_test_setup_teardown(patterns_are_an_option, open_context, close_context),
    cmocka_unit_test_setup_teardown(options_are_no_less_than_nothing, open_context, close_context),
    cmocka_unit_test(the_table_has_three_forms))
