// Code of Winograd's convolution: only what is permitted is accepted, within its own bound, and what is wrong
// is rejected all the same.
#define _DEFAULT_SOURCE
#include "canvas.h"

#include <stdlib.h>
#include <unistd.h>

#include "check.h"
#include "rewrite/program_edit.h"
#include "run/expected.h"

#define CONV                                                                                  \
  "canvas 1\nprogram conv\nin X f32 [h:10, w:9, c:16]\nin W f32 [kh:3, kw:3, c:16, k:32]\n"   \
  "Y[h:10, w:9, k:32] = (if 1 <= h+kh && h+kh < 11 && 1 <= w+kw && w+kw < 10 then X[h+kh-1, " \
  "w+kw-1, c] "                                                                               \
  "else 0) * W[kh, kw, c, k] // sum c:16, kh:3, kw:3\nout Y\n"

// The edit's text with something else in the place of a part of it; the tile; what is permitted.
static const struct {
  const char *part, *other;
  int tile, permitted;
  const char *kind;
} rows[] = {
    {"", "", 2, 2, "ok"},
    {"", "", 2, 4, "ok"},
    {"", "", 4, 4, "ok"},
    {"", "", 2, 0, "check"},
    {"", "", 4, 0, "check"},
    {"", "", 4, 2, "check"},
    // the image's transform, in each of its parts
    {"5 * Y_P", "4.99 * Y_P", 4, 4, "wrong"},
    {"4 * Y_R[h, w*4, ", "4.02 * Y_R[h, w*4, ", 4, 4, "wrong"},
    {"2 * (Y_P", "2.01 * (Y_P", 4, 4, "wrong"},
    {"Y_P[h*4+5, w, c]", "Y_P[h*4+4, w, c]", 4, 4, "wrong"},
    {"- Y_R[h, w*2+2, a, c]", "+ Y_R[h, w*2+2, a, c]", 2, 2, "wrong"},
    {"then X[h-1, w-1, c]", "then X[h-1, w, c]", 4, 4, "wrong"},
    {"h < 11 && ", "h < 10 && ", 4, 4, "wrong"},
    // the weights'
    {"0.25 * W", "0.26 * W", 4, 4, "wrong"},
    {"0.08333333333333333 * Y_WR", "0.084 * Y_WR", 4, 4, "wrong"},
    {"0.5 * W[1", "0.51 * W[1", 2, 2, "wrong"},
    // back
    {"8 * (Y_M", "8.02 * (Y_M", 4, 4, "wrong"},
    {"4 * (Y_S", "-4 * (Y_S", 4, 4, "wrong"},
    {" + Y_M[5, b", " - Y_M[5, b", 4, 4, "wrong"},
    {"Y_S[h/2, w/2, h%2, 0, k]", "Y_S[h/2, w/2, 0, 0, k]", 2, 2, "wrong"},
    // a channel less
    {"// sum c:16\n", "// sum c:15\n", 4, 4, "wrong"},
};
enum { ROWS = sizeof rows / sizeof *rows };

static char folder[64];

static int make_folder(void **state) {
  (void)state;
  unsetenv("CANVAS_CC");
  return temporary_folder(folder, sizeof folder) ? setenv("CANVAS_CACHE", folder, 1) : -1;
}

static int remove_folder(void **state) {
  (void)state;
  char command[128];
  snprintf(command, sizeof command, "rm -rf %s", folder);
  return system(command);
}

static canvas_program *parse(canvas_context *ctx, const char *text) {
  canvas_program *p;
  if (canvas_program_parse(ctx, text, strlen(text), &p))
    fail_msg("%s\n%s", canvas_context_message(ctx), text);
  return p;
}

// The program with the part replaced.
static canvas_program *changed(canvas_context *ctx, const canvas_program *p, const char *part,
                               const char *other) {
  char *text = canvas_program_print(p), *at = strstr(text, part);
  struct buf out = {0};
  if (!at) fail_msg("'%s' is not in\n%s", part, text);
  buf_printf(&out, "%.*s%s%s", (int)(at - text), text, other, at + strlen(part));
  canvas_program *q = parse(ctx, out.text);
  buf_free(&out);
  canvas_string_free(text);
  return q;
}

struct candidates {
  canvas_program *program[ROWS];
  canvas_bound *bound[ROWS];
};

static void bind_rows(canvas_context *ctx, const canvas_program *p, struct candidates *c) {
  canvas_machine *here = canvas_machine_here();
  for (int i = 0; i < ROWS; i++) {
    canvas_program *edited;
    CHECK_INT(canvas_program_winograd(ctx, p, rows[i].tile, &edited), CANVAS_OK, "the edit");
    c->program[i] = changed(ctx, edited, rows[i].part, rows[i].other);
    if (canvas_bound_new(ctx, c->program[i], NULL, here, &c->bound[i]))
      fail_msg("%s", canvas_context_message(ctx));
    canvas_program_free(edited);
  }
  canvas_machine_free(here);
}

static void permitted_and_right(void **state) {
  (void)state;
  canvas_context *ctx = canvas_context_new();
  canvas_program *p = parse(ctx, CONV);
  struct candidates c;
  bind_rows(ctx, p, &c);
  for (int permitted = 0; permitted <= 4; permitted += 2) {
    const canvas_run_options options = {.seed = 1, .repeats = 1, .winograd = permitted};
    const canvas_bound *bound[ROWS];
    canvas_verdict verdicts[ROWS];
    canvas_measurer *m;
    int of[ROWS], count = 0;
    for (int i = 0; i < ROWS; i++) {
      if (rows[i].permitted != permitted) continue;
      of[count] = i;
      bound[count++] = c.bound[i];
    }
    CHECK_INT(canvas_measurer_new(ctx, p, &options, &m), CANVAS_OK, canvas_context_message(ctx));
    CHECK_INT(canvas_measurer_run(ctx, m, bound, count, verdicts), CANVAS_OK, "all");
    for (int i = 0; i < count; i++) {
      const char *name = canvas_failure_name(verdicts[i].failure);
      if (strcmp(name, rows[of[i]].kind))
        fail_msg("tiles of %d with '%s' for '%s': %s, %s", rows[of[i]].tile, rows[of[i]].other,
                 rows[of[i]].part, name, verdicts[i].message);
      if (!permitted && rows[of[i]].tile == 4)
        CHECK_TEXT(
            verdicts[i].message,
            "program 'conv' was made by the edit 'winograd' with tiles of 4, which rounds more "
            "than 'conv': permit it with winograd = 4",
            "without permission");
    }
    canvas_measurer_free(m);
  }
  for (int i = 0; i < ROWS; i++) {
    canvas_bound_free(c.bound[i]);
    canvas_program_free(c.program[i]);
  }
  canvas_program_free(p);
  canvas_context_free(ctx);
}

// A program that was made by the edit itself is compared with itself, and needs no permission.
static void given_as_such(void **state) {
  (void)state;
  canvas_context *ctx = canvas_context_new();
  canvas_program *p = parse(ctx, CONV), *edited;
  canvas_machine *here = canvas_machine_here();
  canvas_bound *bound;
  canvas_measurer *m;
  canvas_verdict verdict;
  CHECK_INT(canvas_program_winograd(ctx, p, 4, &edited), CANVAS_OK, "the edit");
  CHECK_INT(canvas_bound_new(ctx, edited, NULL, here, &bound), CANVAS_OK, "bound");
  CHECK_INT(canvas_measurer_new(ctx, edited, NULL, &m), CANVAS_OK, "a measurer");
  CHECK_INT(canvas_measurer_run(ctx, m, (const canvas_bound *const *)&bound, 1, &verdict),
            CANVAS_OK, "run");
  CHECK_TEXT(canvas_failure_name(verdict.failure), "ok", verdict.message);
  canvas_measurer_free(m);
  canvas_bound_free(bound);
  canvas_program_free(edited);
  canvas_program_free(p);
  canvas_machine_free(here);
  canvas_context_free(ctx);
}

// ---- the bound ------------------------------------------------------------------------------------

static int64_t place(const struct expected_output *o, int64_t i) {
  return o->at ? o->at[i] : i;
}

// The verdict on outputs that are off by this part of the bound.
static enum failure judged(const struct expected *e, const struct expected_output *o, double part,
                           bool winograd) {
  struct verdict v = {.failure = FAILED_NOT};
  float *y = (float *)(void *)e->output[0].memory.data;
  expected_poison(e, 0);
  for (int64_t i = 0; i < o->count; i++) y[place(o, i)] = (float)(o->want[i] + part * o->bound[i]);
  expected_compare(e, 0, winograd, &v);
  return v.failure;
}

static void check_wide(const struct expected_output *given, const struct expected_output *wide) {
  double *want = calloc((size_t)given->elements, sizeof *want),
         *bound = calloc((size_t)given->elements, sizeof *bound);
  for (int64_t i = 0; i < given->count; i++) {
    want[place(given, i)] = given->want[i];
    bound[place(given, i)] = given->bound[i];
  }
  for (int64_t i = 0; i < wide->count; i++) {
    double ratio = wide->bound[i] / bound[place(wide, i)];
    CHECK(wide->want[i] == want[place(wide, i)], "the values are the given program's");
    CHECK(ratio > 1 && ratio < 50, "the bound");
  }
  free(want);
  free(bound);
}

// The wide bound holds for what is made by the edit, and for nothing else.
static void bounds(void **state) {
  (void)state;
  canvas_context ctx = {.message = ""};
  struct program *p;
  struct expected *e;
  CHECK_INT(program_parse(&ctx, CONV, strlen(CONV), &p), CANVAS_OK, ctx.message);
  for (int tile = 0; tile <= 4; tile += 2) {
    const struct expected_options options = {.seed = 1, .winograd = tile};
    if (expected_new(&ctx, p, &options, &e)) fail_msg("%s", ctx.message);
    const struct expected_output *given = &e->output[0], *wide = tile ? &e->wide[0] : given;
    CHECK((e->wide != NULL) == (tile > 0), "wide");
    CHECK_INT(wide->count, given->elements, "all elements are known");
    CHECK_INT(judged(e, given, 0.9, false), FAILED_NOT, "within");
    CHECK_INT(judged(e, given, 1.1, false), FAILED_WRONG, "beyond");
    CHECK_INT(judged(e, wide, 0.9, true), FAILED_NOT, "within what is permitted");
    CHECK_INT(judged(e, wide, 1.1, true), FAILED_WRONG, "beyond what is permitted");
    if (tile) {
      check_wide(given, wide);
      CHECK_INT(judged(e, wide, 0.9, false), FAILED_WRONG, "permitted, and not made by the edit");
    }
    expected_free(e);
  }
  program_free(p);
}

// What is asked for and cannot be.
static void mistakes(void **state) {
  (void)state;
  canvas_context *ctx = canvas_context_new();
  canvas_program *p = parse(ctx, CONV), *none, *out;
  canvas_run_options options = {.seed = 1, .winograd = 3};
  canvas_measurer *m;
  none = parse(ctx, "program none\nin X f32 [i:4]\nY[i:4] = X[i] * 2\nout Y\n");
  CHECK_INT(canvas_measurer_new(ctx, p, &options, &m), CANVAS_BAD_INPUT, "3");
  CHECK_TEXT(canvas_context_message(ctx),
             "Winograd's convolution has tiles of 2x2 and of 4x4, not of 3", "3");
  CHECK_INT(canvas_program_winograd(ctx, p, 6, &out), CANVAS_BAD_INPUT, "6");
  CHECK_INT(canvas_program_winograd(ctx, none, 4, &out), CANVAS_BAD_INPUT, "none");
  CHECK_TEXT(canvas_context_message(ctx),
             "program 'none' has no convolution with windows of 3x3 that move by 1 in steps of 1",
             "none");
  options.winograd = 4;  // permitted, and nothing to permit
  CHECK_INT(canvas_measurer_new(ctx, none, &options, &m), CANVAS_OK, "none");
  canvas_measurer_free(m);
  canvas_program_free(none);
  canvas_program_free(p);
  canvas_context_free(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(permitted_and_right),
                                     cmocka_unit_test(given_as_such), cmocka_unit_test(bounds),
                                     cmocka_unit_test(mistakes)};
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
