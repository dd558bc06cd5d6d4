// Edits as texts: what made a program is made again of its text, of every operator, sketch and random program, and
// what a stranger may have written changes no value.
//
// CANVAS_TEST_ALL=1: all machines, and the sketches of all operators.
#include "check.h"
#include "machines.h"
#include "operator_calls.h"
#include "program/program_edit.h"
#include "random_program.h"
#include "transform/default.h"
#include "tune/sketch.h"

static canvas_context ctx;

static bool all(void) {
  return getenv("CANVAS_TEST_ALL") != NULL;
}

static char *text_of(const struct program *p) {
  struct buf text = {0};
  program_print(p, &text);
  return buf_take(&text);
}

static struct program *parse(const char *text) {
  struct program *p;
  CHECK_INT(program_parse(&ctx, text, strlen(text), &p), CANVAS_OK, ctx.message);
  return p;
}

static struct program *called(const char *call) {
  struct program *p;
  if (!strncmp(call, "canvas 1", 8)) return parse(call);
  CHECK_INT(operator_called(&ctx, call, &p), CANVAS_OK, ctx.message);
  return p;
}

// ---- the same again ----

// Edits of each kind.
static const char *const words[] = {"cache",    "pack",       "inline",   "rfactor", "border",
                                    "overlap",  "winograd",   "outline",  "columns", "reciprocal",
                                    "straight", "turn",       "merge",    "normalize"};
enum { WORDS = sizeof words / sizeof *words };
static int seen[WORDS];

static void count_words(const char *edits) {
  for (const char *at = edits; *at; at = strchr(at, '\n') + 1)
    for (int i = 0; i < WORDS; i++) {
      size_t length = strlen(words[i]);
      seen[i] += !strncmp(at, words[i], length) && at[length] == ' ';
    }
}

// `q` was made of `given`: the edits make it of the text of `given`, too, which a builder may have made.
static void replays(const struct program *given, const struct program *q, const char *label) {
  const struct replay_rules rules = {.winograd = 4};
  const char *edits = program_edits_since(q, given);
  struct program *again, *read;
  CHECK(edits, label);
  char *text = text_of(given), *wanted = text_of(q), *got;
  read = parse(text);
  if (program_replay(&ctx, read, edits, &rules, &again) != CANVAS_OK)
    fail_msg("%s: %s, of\n%s", label, ctx.message, edits);
  got = text_of(again);
  if (strcmp(got, wanted) != 0)
    fail_msg("%s: the edits\n%smake\n%s, and not\n%s", label, edits, got, wanted);
  count_words(edits);
  free(got);
  free(wanted);
  free(text);
  program_free(read);
  program_free(again);
}

static void defaults_replay(void **state) {
  (void)state;
  for (int m = 0; m < (all() ? MACHINES : 2); m++) {
    CHECK_ROWS (operator_calls, call) {
      struct program *p = called(*call), *q = default_program(p, machine_model(m));
      if (q) replays(p, q, *call);
      program_free(q);
      program_free(p);
    }
    for (uint64_t seed = 0; seed < (all() ? 3000 : 300); seed++) {
      struct program *p = random_program(seed), *q = default_program(p, machine_model(m));
      if (q) replays(p, q, "a random program");
      program_free(q);
      program_free(p);
    }
  }
}

// Of each kind of sketch.
static const char *const tuned[] = {
    "gemm m=48 n=48 k=48",
    "conv2d_nchw height=14 width=14 in_channels=32 out_channels=64 kernel=3 padding=1",
    "conv2d_nhwc height=7 width=7 in_channels=64 out_channels=64 kernel=3 padding=1",
    "softmax shape=12x100 dim=1",
    "depthwise_conv2d_nchw in_channels=32 height=14 width=14 kernel=3 padding=1",
    "bsr_conv2d_nhwc batch=1 height=8 width=8 in_channels=64 out_channels=64 kernel=3 blocks=400 "
    "block_rows=16 block_columns=2 padding=1",
    // attention of one head
    "canvas 1\nprogram attention\nin Q f32 [s:32, d:16]\nin K f32 [t:32, d:16]\n"
    "in V f32 [t:32, d:16]\nP[s:32, t:32] = Q[s, d] * K[t, d] * 0.25 // sum d:16\n"
    "M[s:32] = P[s, t] // max t:32\nE[s:32, t:32] = exp(P[s, t] - M[s])\n"
    "S[s:32] = E[s, t] // sum t:32\nY[s:32, d:16] = E[s, t] / S[s] * V[t, d] // sum t:32\nout Y\n",
    // an image turned in a circle, and what is summed of it
    "canvas 1\nprogram mixed\nin X f32 [c:20, h:9, w:18]\nin V f32 [c:20, kh:3] const\n"
    "in W f32 [o:33, c:20] const\nD[c:20, h:9, w:18] = (if 1 <= h+kh && h+kh < 10 then "
    "X[c, h+kh-1, w] else 0) * V[c, kh] // sum kh:3\nT[c:20, h:9, w:18] = X[c, h, (w-1)%18] + "
    "D[c, h, w]\nY[o:33, h:9, w:18] = T[c, h, w] * W[o, c] // sum c:20\nout Y\n",
    "canvas 1\nprogram circle\nin X f32 [c:64, w:56]\nY[c:64, w:56] = X[c, (w+3)%56]\nout Y\n",
    // a batch norm whose variance is its input: a reciprocal, and conditions to be turned
    "canvas 1\nprogram norm\nin X f32 [n:32, c:64, w:30]\nin V f32 [n:32]\nin W f32 [c:64]\n"
    "Y[n:32, c:64, w:30] = (if w < 1 || !(w <= 28) then 0 else X[n, c, w-1]) / "
    "sqrt(abs(V[n]) + 0.00001) * W[c]\nout Y\n",
};

static void sketches_replay(void **state) {
  (void)state;
  const struct sketch_options options = {.winograd = true};
  int count = 0;
  CHECK_ROWS (tuned, call)
    for (int m = 0; m < (all() ? MACHINES : 1); m++) {
      struct program *p = called(*call);
      struct sketches s;
      CHECK_INT(sketches_of(&ctx, p, machine_model(m), &options, &s), CANVAS_OK, ctx.message);
      for (int i = 0; i < s.count; i++) replays(p, s.data[i].program, s.data[i].rule);
      count += s.count;
      sketches_free(&s);
      program_free(p);
    }
  for (int i = 0; i < WORDS; i++) print_message("%s%s %d", i ? ", " : "", words[i], seen[i]);
  print_message(": %d sketches\n", count);
  for (int i = 0; i < WORDS; i++) CHECK(seen[i], words[i]);
}

CHECK_MAIN(cmocka_unit_test(defaults_replay), cmocka_unit_test(sketches_replay))
