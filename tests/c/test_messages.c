// Error messages that no text can bring out, or only a long one: what C calls are told. The goldens show the
// others, and tests/messages.py sees to it that every message of src/ is shown somewhere.
#include "check.h"

#include <stdio.h>

#include "api/handle.h"

static canvas_context ctx;

static const char plain[] = "canvas 1\nkernel k\na = input\nb = fc a to=C\nout b\n";

static struct pack *pack_of_text(const char *text) {
  struct pack *p = NULL;
  CHECK_INT(pack_parse(&ctx, text, strlen(text), &p), CANVAS_OK, ctx.message);
  return p;
}

static void packs_know_their_targets(void **state) {
  char text[256];
  canvas_program *program = NULL;
  snprintf(text, sizeof text, "%sbind t C=4 H=4 W=4\n", plain);
  canvas_pack *p = (canvas_pack *)pack_of_text(text);
  CHECK_INT(canvas_pack_lower(&ctx, p, 1, 1, &program), CANVAS_BAD_INPUT, "target 1");
  CHECK_TEXT(ctx.message, "pack of 'k' has targets 0 to 0, not 1", "target 1");
  CHECK_INT(canvas_pack_lower(&ctx, p, -1, 1, &program), CANVAS_BAD_INPUT, "target -1");
  CHECK_TEXT(ctx.message, "pack of 'k' has targets 0 to 0, not -1", "target -1");
  CHECK_INT(canvas_pack_lower(&ctx, p, 0, 0, &program), CANVAS_BAD_INPUT, "batch 0");
  CHECK_TEXT(ctx.message, "a batch has 1 to 16777216 samples, not 0", "batch 0");
  CHECK_INT(canvas_pack_lower(&ctx, p, 0, SIZE_LIMIT + 1, &program), CANVAS_BAD_INPUT, "batch");
  CHECK_TEXT(ctx.message, "a batch has 1 to 16777216 samples, not 16777217", "batch");
  canvas_pack_free(p);
}

// 4096 layers of 2^50 multiply-accumulates each: 2^62, of which FLOPs would not fit.
static void costs_of_all_targets(void **state) {
  struct buf text = {0};
  canvas_targets *targets = NULL;
  canvas_cost cost;
  for (int i = 0; i < TARGETS_MAX; i++) buf_printf(&text, "t%d 1024 1024 32768 32768 1\n", i);
  CHECK_INT(canvas_targets_parse(&ctx, text.text, text.length, &targets), CANVAS_OK, ctx.message);
  CHECK_INT(canvas_targets_cost(&ctx, targets, 0, &cost), CANVAS_OK, "one");
  CHECK_INT(cost.macs, INT64_C(1) << 50, "one");
  CHECK_INT(canvas_targets_cost(&ctx, targets, -1, &cost), CANVAS_BAD_INPUT, "all");
  CHECK_TEXT(ctx.message, "the cost of the targets passes 2^62, give fewer layers", "all");
  canvas_targets_free(targets);
  buf_free(&text);
}

// The length is looked at before any byte is.
static void long_texts(void **state) {
  canvas_reader *reader = NULL;
  CHECK_INT(canvas_reader_open(&ctx, plain, TEXT_LIMIT + 1, &reader), CANVAS_BAD_INPUT, "long");
  CHECK_TEXT(ctx.message, "text of 16777217 bytes is over the limit of 16 MiB", "long");
}

static void nothing_to_draw(void **state) {
  struct targets none = {0}, one = {0};
  struct sample_options options;
  struct sampler *s = NULL;
  struct kernel *k = NULL;
  int64_t g;
  CHECK_INT(sample_options_parse(&ctx, "primitives=1", 12, &options), CANVAS_OK, ctx.message);
  CHECK_INT(sampler_new(&ctx, &none, &options, 1, &s), CANVAS_BAD_INPUT, "no targets");
  CHECK_TEXT(ctx.message, "there are no targets to draw for", "no targets");
  CHECK_INT(targets_parse(&ctx, "8,4,4", 5, &one), CANVAS_OK, ctx.message);
  CHECK_INT(sampler_new(&ctx, &one, &options, 1, &s), CANVAS_OK, ctx.message);
  CHECK_INT(sampler_draw(&ctx, s, 7, &k, &g), CANVAS_NONE, "one primitive cannot reach and mix");
  CHECK_TEXT(ctx.message, "draw 7 found no legal kernel in 400 tries", "one primitive");
  sampler_free(s);
  targets_free(&one);
}

#define NO_NEIGHBOURS "draws=rules unfold=0 shift=0 softmax=0"
static const char blind[] =
    "draws= gives the weight 0 to all that reads neighbours (unfold, shift, softmax, fold with "
    "image_fold): give one of them a weight, or require=none";

/* Options that leave no kernel; with a share of free draws, or without reach, some do. */
static void impossible_draws(void **state) {
  static const struct {
    const char *options, *targets, *why;
  } rows[] = {
      {"primitives=1", "8,4,4",
       "primitives=1..1: a kernel that reaches has at least 2 primitives, one that reads "
       "neighbours and an fc; allow more, or give require=none"},
      {"primitives=1..2", "8,4,4", ""},
      {"primitives=1 require=none", "8,4,4", ""},
      {NO_NEIGHBOURS " fold=0 free=0", "8,4,4", blind},
      {NO_NEIGHBOURS " image_fold=0 free=0", "8,4,4", blind},
      {NO_NEIGHBOURS " free=0", "8,4,4", ""},
      {"draws=rules unfold=0 shift=0 fold=0 free=0", "8,4,4", ""},
      {NO_NEIGHBOURS " fold=0 free=0", "8,1,1", ""},
      {NO_NEIGHBOURS " fold=0 free=0", "p 8 8 4 4 1 1 1\n", ""},
      {NO_NEIGHBOURS " fold=0 free=0.1", "8,4,4", blind},
      {"need=softmax forbid=s", "8,4,4",
       "need= needs 'softmax', which allow=, forbid= or a weight of 0 leaves out"},
      {"draws=rules softmax=0 need=softmax", "8,4,4",
       "need= needs 'softmax', which allow=, forbid= or a weight of 0 leaves out"},
      {"need=mix", "8,4,4",
       "need= needs 'mix', which space=paper does not have: give a wider space"},
      {"space=published need=mix", "8,4,4", ""},
      {"with_matmul=0.5", "8,4,4",
       "with_matmul= needs 'matmul', which space=paper does not have: give a wider space"},
      {"need=relu:exp:sin primitives=2", "8,4,4",
       "need= names 3 primitives, and kernels have at most 2: raise primitives="},
      {"need=relu:exp:sin primitives=3", "8,4,4",
       "need= names 3 primitives, require=reach takes 2 more (one with weights, one that reads "
       "neighbours), and kernels have at most 3: raise primitives=, or give require=none"},
      {"need=relu:exp:fc primitives=3", "8,4,4",
       "need= names 3 primitives, require=reach takes 1 more (one that reads neighbours), and "
       "kernels have at most 3: raise primitives=, or give require=none"},
      {"need=relu:exp:sin:abs:gelu:softmax:group:mul primitives=3..8", "8,4,4",
       "need= names 8 primitives, require=reach takes 1 more (one with weights), and kernels have "
       "at most 8: raise primitives=, or give require=none"},
      {"need=relu:exp:fc primitives=3 require=none", "8,4,4", ""},
      {"need=relu:unfold:fc primitives=3", "8,4,4", ""},
      {"space=wide need=fc:mix weighted=1", "8,4,4",
       "need= names 2 primitives with weights, and kernels have at most 1 of these: raise "
       "weighted=, weighted_share= or primitives="},
      {"weighted=6..7", "8,4,4",
       "weighted=6..7: of at most 8 primitives a share of 0.6 is 4: raise weighted_share= or "
       "primitives="},
      {"allow=unfold:relu", "8,4,4",
       "allow=, forbid=, weighted= and weighted_share= leave no primitive with weights: allow "
       "fc, or give require=none"},
      {"allow=unfold:relu require=none", "8,4,4", ""},
      {"allow=fc", "8,4,4", "allow= and forbid= leave no primitive without weights"},
      {"forbid=unfold:shift", "8,4,4", ""},
      {"forbid=unfold:shift:fold:softmax", "8,4,4",
       "allow= and forbid= leave nothing that reads neighbours (unfold, shift, fold, softmax): "
       "allow one of them, or give require=none"},
      {"weighted=3 weighted_share=1 primitives=3", "8,4,4",
       "weighted=3..3 leaves no primitive that reads neighbours: raise primitives=, or give "
       "require=none"},
      {"receptive=2 allow=relu:fc require=none", "8,4,4",
       "receptive=2: allow= and forbid= leave no primitive that reads other pixels"},
      {"draws=paper unfold=0 shift=0 require=none", "8,4,4", ""},
      {"draws=paper unfold=0", "8,4,4", ""},
      {"draws=paper grouping=0 shift=0 unfold=0 elementwise=0 fold=0 softmax=0 broadcast=0 "
       "require=none",
       "8,4,4", "draws= gives all types of primitives the weight 0"},
  };
  CHECK_ROWS (rows, row) {
    struct targets t = {0};
    struct sample_options o;
    struct sampler *s = NULL;
    const char *text = row->options;
    CHECK_INT(sample_options_parse(&ctx, text, strlen(text), &o), CANVAS_OK, ctx.message);
    CHECK_INT(targets_parse(&ctx, row->targets, strlen(row->targets), &t), CANVAS_OK, text);
    CHECK_INT(sampler_new(&ctx, &t, &o, 1, &s), CANVAS_OK, ctx.message);
    CHECK_INT(sampler_check(&ctx, s), *row->why ? CANVAS_BAD_INPUT : CANVAS_OK, text);
    if (*row->why) CHECK_TEXT(ctx.message, row->why, text);
    sampler_free(s);
    targets_free(&t);
  }
}

static void structs_are_checked(void **state) {
  struct kernel *k = kernel_new("k");
  struct target t = {.name = "t", .cin = 4, .cout = 4, .h = 4, .w = 4, .kh = 3, .kw = 3};
  CHECK_INT(kernel_verify(&ctx, k), CANVAS_BAD_INPUT, "no output");
  CHECK_TEXT(ctx.message, "kernel 'k' has no 'out' line", "no output");
  CHECK_INT(target_check(&ctx, &t), CANVAS_BAD_INPUT, "no stride");
  CHECK_TEXT(ctx.message, "target 't': stride 0 is not in 1..16777216", "no stride");
  kernel_free(k);
  struct pack *p = pack_of_text(plain);
  p->kernel->nodes[1].shape.axis[0].dim = dim_number(7);
  CHECK_INT(kernel_verify(&ctx, p->kernel), CANVAS_BAD_INPUT, "a shape of 7 channels");
  CHECK_TEXT(ctx.message, "kernel 'k': node 'b': its shape is not what its rule gives", "7");
  pack_free(p);
  p = pack_of_text("canvas 1\nkernel k\na = input\nb = fc a to=x0\nc = fc b to=C\nout c\n");
  struct binding b = {.target = t};
  b.target.stride = b.target.groups = b.target.dilation = 1;
  b.sizes.value[SIZE_X0] = SIZE_LIMIT + 1;
  CHECK_INT(pack_bind(&ctx, p, &b), CANVAS_BAD_INPUT, "x0");
  CHECK_TEXT(ctx.message, "target 't': x0=16777217 is not in 1..16777216", "x0");
  pack_free(p);
}

// Two layers of 2^62 multiply-accumulates each fit by themselves.
static void base_sizes_cost_too_much(void **state) {
  struct pack *p = pack_of_text(
      "canvas 1\nkernel k\na = input\nb = fc a to=C\nc = fc b to=C\nd = fc c to=C\ne = fc d to=C\n"
      "out e\n");
  static const char layers[] =
      "s 1048576 1048576 1024 1024 1 1 1048576\nt 1048576 1048576 1024 1024 1 1 1048576\n";
  struct targets targets;
  struct budget budget;
  struct solve_options options = {.elements_limit = ELEMENTS_LIMIT_MAX};
  struct pack *solved = NULL;
  CHECK_INT(targets_parse(&ctx, layers, strlen(layers), &targets), CANVAS_OK, ctx.message);
  CHECK_INT(budget_parse(&ctx, "macs=none", 9, &budget), CANVAS_OK, ctx.message);
  CHECK_INT(budget_solve(&ctx, p->kernel, &targets, &budget, &options, &solved), CANVAS_NONE,
            "2^63");
  CHECK_TEXT(ctx.message, "the cost of the smallest sizes passes 2^62", "2^63");
  targets_free(&targets);
  pack_free(p);
}

// -- programs --

static void rejected_text(const char *text, const char *expected) {
  struct program *p = NULL;
  CHECK_INT(program_parse(&ctx, text, strlen(text), &p), CANVAS_BAD_INPUT, expected);
  CHECK_TEXT(ctx.message, expected, text);
}

static void long_programs(void **state) {
  struct buf text = {0};
  buf_puts(&text, "program p\nin X f32 [i:3]\nY[i:2] = ");
  for (int i = 0; i < 3 * PROGRAM_DEPTH; i++) buf_puts(&text, "(");
  rejected_text(text.text,
                "line 3, column 418: expression nests deeper than 200 levels, give a part "
                "of it a stage of its own");
  buf_free(&text);
  buf_puts(&text, "program ");
  for (int i = 0; i <= PROGRAM_NAME; i++) buf_puts(&text, "p");
  rejected_text(text.text, "line 1, column 9: name of more than 128 bytes");
  buf_free(&text);
  buf_puts(&text, "program p\nin X");
  for (int i = 0; i < PROGRAM_NAME; i++) buf_puts(&text, "x");
  buf_puts(&text, " f32 [i:3]\nY[i:2] = 1\nout Y\n");
  rejected_text(text.text,
                "line 2, column 4: name 'Xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...' is "
                "longer than 128 bytes");
  buf_free(&text);
}

// A program that a call has poisoned, and the message.
static void built(struct program *p, const char *expected) {
  CHECK_INT(program_verify(&ctx, p), CANVAS_BAD_INPUT, expected);
  CHECK_TEXT(ctx.message, expected, "built");
  program_free(p);
}

static void built_wrongly(void **state) {
  static const char *const axes[] = {"i"};
  const int64_t size[] = {4};
  struct program *p = program_new("");
  int y = program_stage(p, "Y", PROGRAM_F32, 1, axes, size);
  program_define(p, y, px_number(p, 1));
  program_output(p, y);
  built(p, "the name of a program is 1 to 128 printable characters, no blank, no #");

  p = program_new("p");
  y = program_stage(p, "Y", PROGRAM_F32, 1, axes, size);
  program_define(p, y, 99);
  built(p, "an expression that does not exist defines 'Y'");

  p = program_new("p");
  px_add(p, 98, 99);
  built(p, "an expression that does not exist is used");

  p = program_new("p");
  y = program_input(p, "X", PROGRAM_F32, 1, axes, size);
  px_load(p, y, 1, (int[]){px_bool(p, true)});
  built(p, "an index is made of axes and integers, here it is something else");

  p = program_new("p");
  int one = px_number(p, 1), tree = one;
  for (int i = 0; i <= PROGRAM_DEPTH; i++) tree = px_sub(p, tree, one);
  built(p, "expression nests deeper than 200 levels, give a part of it a stage of its own");

  p = program_new("p");
  for (int i = 0; i <= PROGRAM_NODES; i++) px_number(p, 1);
  built(p, "expressions have more than 262144 operations");
}

CHECK_MAIN(cmocka_unit_test(packs_know_their_targets), cmocka_unit_test(costs_of_all_targets),
           cmocka_unit_test(long_texts), cmocka_unit_test(nothing_to_draw),
           cmocka_unit_test(impossible_draws), cmocka_unit_test(structs_are_checked),
           cmocka_unit_test(base_sizes_cost_too_much), cmocka_unit_test(long_programs),
           cmocka_unit_test(built_wrongly))
