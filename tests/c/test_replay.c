// Edits as texts: what made a program is made again of its text, of every operator, sketch and random program, and
// what a stranger may have written changes no value.
//
// CANVAS_TEST_ALL=1: all machines, and the sketches of all operators.
#include "autoschedule/default.h"
#include "check.h"
#include "machines.h"
#include "operator_calls.h"
#include "random_program.h"
#include "rewrite/program_edit.h"
#include "same_values.h"
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
static const char *const words[] = {"cache",    "pack",     "inline",  "rfactor",  "border",
                                    "overlap",  "winograd", "outline", "columns",  "reciprocal",
                                    "straight", "turn",     "merge",   "normalize"};
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

// A value is replaced wherever it stands, whether a builder made it once or a parser twice.
static void values_are_replaced_everywhere(void **state) {
  (void)state;
  static const struct {
    const char *edit, *stage;
  } rows[] = {
      {"outline Y exp(X[h]) as E", "E[h:9] = exp(X[h])\nY[h:9] = E[h] * E[h]\n"},
      {"columns Y X[h] as E", "E[h:9] = X[h]\nY[h:9] = exp(E[h]) * exp(E[h])\n"},
  };
  const char *axes[] = {"h"};
  struct program *p = program_new("p"), *q;
  int x = program_input(p, "X", PROGRAM_F32, 1, axes, (int64_t[]){9});
  int y = program_stage(p, "Y", PROGRAM_F32, 1, axes, (int64_t[]){9});
  int h = program_axis(p, y, 0), once = px_call(p, PX_EXP, px_load(p, x, 1, &h));
  program_define(p, y, px_mul(p, once, once));
  program_output(p, y);
  CHECK_INT(program_verify(&ctx, p), CANVAS_OK, ctx.message);
  CHECK_ROWS (rows, row) {
    CHECK_INT(program_edit(&ctx, p, row->edit, strlen(row->edit), &q), CANVAS_OK, ctx.message);
    char *text = text_of(q);
    CHECK(strstr(text, row->stage), text);
    replays(p, q, row->edit);
    free(text);
    program_free(q);
  }
  program_free(p);
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

// ---- what a stranger wrote ----

#define HEAD \
  "canvas 1\nprogram p\nin X f32 [h:12, w:12]\nin W f32 [k:3, c:4]\nin q i32 [r:5] 0..9 rising\n"
#define PADDED "if 1 <= w+k && w+k < 13 then X[h, w+k-1] else 0"
#define SUM    "Y[h:12, w:12] = (" PADDED ") * W[k, c] // sum k:3, c:4\n"
#define RATIO  "Z[h:12, w:12] = Y[h, w] / X[h, 0] + Y[h, w] / sqrt(abs(X[h, 1]) + 0.001)\n"
#define TURNED "T[w:12] = if w < 1 || !(w <= 10) then 2 else X[w, w-1]\n"
#define PART   "S[h:12, r:4] = X[h, e] * 2 // sum e:q[r]..q[r+1]\n"
#define COPIES "N[h:12] = X[h, w] // sum w:12\nM[h:12] = N[h]\n"
#define DOUBLE "G f64 [h:12] = X[h, 0] / sqrt(abs(X[h, 1]) + 0.001)\n"
#define LAST   "U[h:12, w:12] = Z[h, w] * T[w] + M[h] * M[h] + G[h]\nout U, S\n"
#define WHOLE  HEAD SUM RATIO TURNED PART COPIES DOUBLE LAST

// The message; "": they are made, and keep what is computed.
static const struct {
  const char *edits, *message;
} strange[] = {
    {"", ""},
    {"border Y as B\n", ""},
    {"reciprocal Z sqrt(abs(X[h, 1]) + 0.001) as R", ""},
    {"# nothing\n", "edit 1: line 1, column 10: expected an edit ("},
    {"\n", "edit 1: line 1, column 1: expected an edit ("},
    {"cache Y as C\n\ncache Y as D\n", "edit 2: line 1, column 1: expected an edit ("},
    {"type Y bf16\n", "edit 1: 'type Y bf16' changes a data type, which a log may not"},
    {"type  Y\tf64 # so\n", "edit 1: 'type  Y?f64' changes a data type, which a log"},
    {"border Y as B\nborder Y\n", "edit 2: "},
    {"cache Y as C\nborder C\n", "edit 2: 'border C' gives 0 instead of nan in the padding: a log"},
    {"reciprocal Z X[h, 0] as R\n",
     "edit 1: line 1, column 12: the divisor may be 0, or so small or large that it has no "
     "reciprocal"},
    {"reciprocal G sqrt(abs(X[h, 1]) + 0.001) as R\n",
     "edit 1: line 1, column 12: 'G' is not of f32, so its divisions stay"},
    {"inline G",
     "edit 1: line 1, column 8: 'G' is of f64, and a stage of lower precision loads it"},
    {"inline M, N\n", "edit 1: line 1, column 8: 'N' reduces, and more than one stage needs 'M'"},
    {"inline N\n", ""},
    {"reciprocal Y W[k, c] as R\n", "edit 1: line 1, column 12: 'Y' does not divide by that"},
    {"outline S X[h, e] as P\n",
     "edit 1: line 1, column 9: the value depends on 'e', whose bounds depend on data"},
    {"outline Y X[h, w+k-1] as M2\n",
     "edit 1: stage 'M2' loads 'X' out of range: index 'w-1' runs"},
    {"outline Y " PADDED " as M2\n", ""},
    {"normalize conditions\nturn Z h as TT\ncolumns Y " PADDED " as M2\ninline TT, T\n", ""},
    {"outline Q X[h, e] as P\n", "edit 1: line 1, column 9: the program has no tensor 'Q'"},
    {"outline Z Y[h, w] / X[h, 1] as P\n",
     "edit 1: line 1, column 11: the expression of 'Z' has no such value"},
    {"inline Y\n", "edit 1: line 1, column 8: 'Y' reduces: it can only be inlined into"},
    {"winograd Y 4\n", "edit 1: line 1, column 10: 'Y' "},
};

static void strangers_keep_values(void **state) {
  (void)state;
  const struct replay_rules rules = {0};
  struct program *p = parse(WHOLE), *q;
  CHECK_ROWS (strange, row) {
    ctx.message[0] = '\0';
    canvas_status status = program_replay(&ctx, p, row->edits, &rules, &q);
    CHECK_INT(status, *row->message ? CANVAS_BAD_INPUT : CANVAS_OK, ctx.message);
    CHECK(!strncmp(ctx.message, row->message, strlen(row->message)), ctx.message);
    if (status == CANVAS_OK) same_values(&ctx, p, q, row->edits, 1, 1);
    program_free(q);
  }
  program_free(p);
}

// Winograd's convolution up to the tile that is let pass.
static void winograd_has_to_be_allowed(void **state) {
  (void)state;
  struct program *q, *p = called(
                         "conv2d_nchw height=8 width=8 in_channels=4 out_channels=4 kernel=3 "
                         "padding=1");
  const char *name = p->tensors.data[p->outputs.data[0]].name;
  for (int tile = 2; tile <= 4; tile += 2)
    for (int most = 0; most <= 4; most += 2) {
      char edit[64];
      const struct replay_rules rules = {.winograd = most};
      snprintf(edit, sizeof edit, "winograd %s %d\n", name, tile);
      canvas_status status = program_replay(&ctx, p, edit, &rules, &q);
      CHECK_INT(status, tile <= most ? CANVAS_OK : CANVAS_BAD_INPUT, edit);
      if (status == CANVAS_OK)
        CHECK_INT(q->winograd, tile, edit);
      else
        CHECK(strstr(ctx.message, "' rounds more than the convolution"), ctx.message);
      program_free(q);
    }
  struct buf many = {0};
  buf_printf(&many, "winograd %s", name);
  for (int i = 0; i < 64; i++) buf_printf(&many, ", %s", name);
  buf_puts(&many, " 4");
  CHECK_INT(program_edit(&ctx, p, many.text, many.length, &q), CANVAS_BAD_INPUT, "65 of them");
  CHECK(strstr(ctx.message, "expected fewer convolutions, found"), ctx.message);
  buf_free(&many);
  program_free(p);
}

static void texts_without_end(void **state) {
  (void)state;
  const struct replay_rules rules = {0};
  struct program *p = parse(WHOLE), *q;
  struct buf text = {0};
  for (int i = 0; i <= REPLAY_EDITS; i++) buf_printf(&text, "cache Y as C%d\n", i);
  CHECK_INT(program_replay(&ctx, p, text.text, &rules, &q), CANVAS_BAD_INPUT, "many");
  CHECK_TEXT(ctx.message, "there are more than 512 edits", "many");
  while (text.length <= REPLAY_BYTES) buf_puts(&text, "cache Y as C\n");
  CHECK_INT(program_replay(&ctx, p, text.text, &rules, &q), CANVAS_BAD_INPUT, "long");
  CHECK_TEXT(ctx.message, "the edits take more than 262144 bytes", "long");
  buf_free(&text);
  buf_puts(&text, "outline Y ");
  for (int i = 0; i < 100000; i++) buf_puts(&text, "(");
  CHECK_INT(program_replay(&ctx, p, text.text, &rules, &q), CANVAS_BAD_INPUT, "deep");
  CHECK(strstr(ctx.message, "expression nests deeper than 200 levels"), ctx.message);
  buf_free(&text);
  program_free(p);
}

// Edits of one program for another: lines lost, doubled and in another order.
static void edits_of_others_keep_values(void **state) {
  (void)state;
  const struct replay_rules rules = {0};
  struct random r;
  random_open(&r, 3, RANDOM_TEST, 0);
  struct buf lines = {0};
  int made = 0;
  for (uint64_t seed = 0; seed < (all() ? 4000 : 400); seed++) {
    struct program *p = random_program(seed), *q = default_program(p, machine_model(seed % 2)),
                   *other;
    if (q && lines.length < 20000) buf_puts(&lines, program_edits_since(q, p));
    struct buf edits = {0};
    for (int i = 0; i < 12 && lines.length; i++) {
      size_t at = random_below(&r, (uint32_t)lines.length);
      while (at && lines.text[at - 1] != '\n') at--;
      struct buf one = edits;
      buf_bytes(&one, lines.text + at, strcspn(lines.text + at, "\n") + 1);
      bool taken = program_replay(&ctx, p, one.text, &rules, &other) == CANVAS_OK;
      edits = one;
      if (taken) {
        same_values(&ctx, p, other, edits.text, 1, -1);
        made++;
      } else {
        edits.length -= strcspn(lines.text + at, "\n") + 1;
        edits.text[edits.length] = '\0';
      }
      program_free(other);
    }
    buf_free(&edits);
    program_free(q);
    program_free(p);
  }
  buf_free(&lines);
  print_message("             %d lists of edits that others made\n", made);
  CHECK(made > 100, "too few mean little");
}

CHECK_MAIN(cmocka_unit_test(values_are_replaced_everywhere), cmocka_unit_test(defaults_replay),
           cmocka_unit_test(sketches_replay), cmocka_unit_test(strangers_keep_values),
           cmocka_unit_test(winograd_has_to_be_allowed), cmocka_unit_test(texts_without_end),
           cmocka_unit_test(edits_of_others_keep_values))
