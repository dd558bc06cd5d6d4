// Programs taken apart into what is prepared from constant inputs and the rest: which stages go where,
// and that both together compute what the whole does.
#include "prepare/prepare.h"
#include "program/interpret.h"
#include "random_edit.h"
#include "random_program.h"

#include <stdlib.h>

#include "check.h"

#define HEAD \
  "canvas 1\nprogram p\nin X f32 [i:8]\nin W f32 [i:8] const\nin q i32 [i:8] 0..8 const\n"

// The stages, the schedule (""  the default one), and the programs: "" where there is nothing to prepare.
static const struct {
  const char *stages, *schedule, *prepare, *rest;
  int64_t bytes;
} rows[] = {
    {"A[i:8] = W[i] * 2\nY[i:8] = X[i] + A[i]\nout Y\n", "",
     "canvas 1\nprogram p\nin W f32 [i:8]\nA[i:8] = W[i] * 2\nout A\n",
     "canvas 1\nprogram p\nin X f32 [i:8]\nin A f32 [i:8]\nY[i:8] = X[i] + A[i]\nout Y\n", 64},
    // through indices, in a chain, and the input is read by the rest as well
    {"A f64 [i:8] = W[q[i]]\nB[j:20] = A[j/3] // sum k:2\nY[i:8] = X[i] + B[i] + W[i]\nout Y\n", "",
     "canvas 1\nprogram p\nin W f32 [i:8]\nin q i32 [i:8] 0..8\nA f64 [i:8] = W[q[i]]\n"
     "B[j:20] = A[j/3] // sum k:2\nout B\n",
     "canvas 1\nprogram p\nin X f32 [i:8]\nin W f32 [i:8]\nin B f32 [j:20]\n"
     "Y[i:8] = X[i] + B[i] + W[i]\nout Y\n",
     128},
    // two that are read
    {"A[i:8] = W[i]\nB bf16 [i:8] = A[i] * 2\nY[i:8] = X[i] + A[i] + B[i]\nout Y\n",
     "i => @A[i]:l1 = i\ni => @B = i\ni => @Y = i\n",
     "canvas 1\nprogram p\nin W f32 [i:8]\nA[i:8] = W[i]\nB bf16 [i:8] = A[i] * 2\nout A\nout B\n",
     "canvas 1\nprogram p\nin X f32 [i:8]\nin A f32 [i:8]\nin B bf16 [i:8]\n"
     "Y[i:8] = X[i] + A[i] + B[i]\nout Y\n",
     128},
    // as the schedule lays it out: loops of an axis, all loops of one, another order
    {"A[i:8] = W[i] * 2\nY[i:8] = X[i] + A[7-i]\nout Y\n",
     "a:2, b:4 => @A[b][a] = {a, b}/i\ni => @Y = i\n",
     "canvas 1\nprogram p\nin W f32 [i:8]\nA[i_i:4, i_o:2] = W[i_o*4+i_i] * 2\nout A\n",
     "canvas 1\nprogram p\nin X f32 [i:8]\nin A f32 [i_i:4, i_o:2]\n"
     "Y[i:8] = X[i] + A[(7-i)%4, (7-i)/4]\nout Y\n",
     64},
    {"A[i:8, j:3] = W[i] * real(j)\nY[i:8] = A[i, j] // sum j:3\nout Y\n",
     "a:2, j, b:4:vec => @A[a][j][b] = {a, b}/i, j\ni, j => @Y = i // j\n",
     "canvas 1\nprogram p\nin W f32 [i:8]\nA[i_o:2, j:3, i_i:4] = W[i_o*4+i_i] * real(j)\nout A\n",
     "canvas 1\nprogram p\nin X f32 [i:8]\nin A f32 [i_o:2, j:3, i_i:4]\n"
     "Y[i:8] = A[i/4, j, i%4] // sum j:3\nout Y\n",
     128},
    {"A[i:8, j:3] = W[i] * real(j)\nY[i:8] = A[i, j] // sum j:3\nout Y\n",
     "a:2, b:4, j => @A[j][i] = {a, b}/i, j\ni, j => @Y = i // j\n",
     "canvas 1\nprogram p\nin W f32 [i:8]\nA[j:3, i:8] = W[i] * real(j)\nout A\n",
     "canvas 1\nprogram p\nin X f32 [i:8]\nin A f32 [j:3, i:8]\n"
     "Y[i:8] = A[j, i] // sum j:3\nout Y\n",
     128},
    // a layout that is longer than its axis, and one of sums: row-major
    {"A[i:6] = W[i] * 2\nY[i:6] = X[i] + A[i]\nout Y\n",
     "a:2, b:4:mask => @A[b][a] = {a, b}/i\ni => @Y = i\n",
     "canvas 1\nprogram p\nin W f32 [i:8]\nA[i:6] = W[i] * 2\nout A\n",
     "canvas 1\nprogram p\nin X f32 [i:8]\nin A f32 [i:6]\nY[i:6] = X[i] + A[i]\nout Y\n", 64},
    {"A[i:4, j:2] = W[i+k+j] // sum k:2\nY[i:4] = A[i, 0] + A[i, 1]\nout Y\n",
     "i, j, k => @A[j][i] = i, j // k\ni => @Y = i\n",
     "canvas 1\nprogram p\nin W f32 [i:8]\nA[i:4, j:2] = W[i+k+j] // sum k:2\nout A\n",
     "canvas 1\nprogram p\nin X f32 [i:8]\nin A f32 [i:4, j:2]\nY[i:4] = A[i, 0] + A[i, 1]\nout "
     "Y\n",
     64},
    // computed where it is read, an output, of another input, of nothing
    {"A[i:8] = W[i] * 2\nY[i:8] = X[i] + A[i]\nout Y\n", "i =>\n    @A = i\n    @Y = i\n", "", "",
     0},
    {"A[i:8] = W[i] * 2\nY[i:8] = X[i] + A[i]\nout Y\nout A\n", "", "", "", 0},
    {"A[i:8] = W[i] * X[i]\nY[i:8] = X[i] + A[i]\nout Y\n", "", "", "", 0},
    {"A[i:8] = real(i)\nY[i:8] = X[i] + A[i]\nout Y\n", "", "", "", 0},
};

static void check_part(const struct prepared_part *part, const char *want, const char *label) {
  struct buf text = {0};
  program_print(part->program, &text);
  CHECK_TEXT(text.text, want, label);
  buf_free(&text);
}

static void parts(void **state) {
  (void)state;
  CHECK_ROWS (rows, row) {
    canvas_context ctx = {.message = ""};
    struct buf text = {0};
    struct program *p;
    struct schedule *s;
    struct loop_tree *tree;
    struct prepared *made;
    buf_printf(&text, HEAD "%s", row->stages);
    CHECK_INT(program_parse(&ctx, text.text, text.length, &p), CANVAS_OK, ctx.message);
    if (*row->schedule)
      CHECK_INT(schedule_parse(&ctx, row->schedule, strlen(row->schedule), &s), CANVAS_OK,
                ctx.message);
    else
      s = schedule_default(p, true, &machine_avx512);
    CHECK_INT(loop_tree_bind(&ctx, p, s, &machine_avx512, &tree), CANVAS_OK, ctx.message);
    CHECK_INT(prepare_split(&ctx, tree, &made), CANVAS_OK, ctx.message);
    CHECK((made != NULL) == (*row->prepare != '\0'), row->stages);
    if (made) {
      CHECK_INT(made->bytes, row->bytes, row->stages);
      check_part(&made->prepare, row->prepare, row->stages);
      check_part(&made->rest, row->rest, row->stages);
    }
    prepare_free(made);
    loop_tree_free(tree);
    schedule_free(s);
    program_free(p);
    buf_free(&text);
  }
}

// ---- what is computed ---------------------------------------------------------------------------

enum { MOST = 32 };

static double *outputs_of(const struct program *p, double *const *inputs, int output) {
  canvas_context ctx = {.message = ""};
  struct interpreter *in;
  int64_t count = program_elements(p, p->outputs.data[output]);
  double *out = malloc((size_t)count * sizeof *out);
  if (interpreter_new(&ctx, p, (const double *const *)inputs, NULL, &in))
    fail_msg("%s", ctx.message);
  if (interpreter_elements(in, p->outputs.data[output], count, NULL, out))
    fail_msg("%s", ctx.message);
  interpreter_free(in);
  return out;
}

// The parts one after the other against the whole, bit by bit.
static void compare(const struct program *p, const struct prepared *made, const char *label) {
  double *inputs[MOST], *first[MOST], *second[MOST];
  int taken = 0, kept = 0;
  for (int i = 0; i < p->inputs.count; i++) {
    inputs[i] = malloc((size_t)program_elements(p, p->inputs.data[i]) * sizeof(double));
    program_fill(p, i, 5, inputs[i]);
    if (made->prepare.uses_input[i]) first[taken++] = inputs[i];
    if (made->rest.uses_input[i]) second[kept++] = inputs[i];
  }
  for (int i = 0; i < made->count; i++)
    second[kept + i] = outputs_of(made->prepare.program, first, i);
  for (int i = 0; i < p->outputs.count; i++) {
    double *whole = outputs_of(p, inputs, i), *again = outputs_of(made->rest.program, second, i);
    size_t bytes = (size_t)program_elements(p, p->outputs.data[i]) * sizeof(double);
    CHECK(memcmp(whole, again, bytes) == 0, label);
    free(whole);
    free(again);
  }
  for (int i = 0; i < made->count; i++) free(second[kept + i]);
  for (int i = 0; i < p->inputs.count; i++) free(inputs[i]);
}

static void parts_compute_the_whole(void **state) {
  (void)state;
  int done = 0, programs = getenv("CANVAS_TEST_ALL") ? 3000 : 300;
  for (int i = 0; i < programs; i++) {
    canvas_context ctx = {.message = ""};
    struct random r;
    struct loop_tree *tree;
    struct prepared *made;
    random_open(&r, (uint64_t)i, RANDOM_TEST, 10);
    struct program *p = random_program((uint64_t)i);
    for (int j = 0; j < p->inputs.count; j++)
      if (edit_below(&r, 3)) program_input_constant(p, p->inputs.data[j]);
    struct schedule *s = random_schedule(p, &r, 4);
    CHECK_INT(loop_tree_bind(&ctx, p, s, &machine_avx512, &tree), CANVAS_OK, ctx.message);
    CHECK_INT(prepare_split(&ctx, tree, &made), CANVAS_OK, ctx.message);
    if (made) compare(p, made, p->name);
    done += made != NULL;
    prepare_free(made);
    loop_tree_free(tree);
    schedule_free(s);
    program_free(p);
  }
  print_message("             %d of %d programs prepare something\n", done, programs);
  CHECK(done > programs / 20, "too few mean little");
}

CHECK_MAIN(cmocka_unit_test(parts), cmocka_unit_test(parts_compute_the_whole))
