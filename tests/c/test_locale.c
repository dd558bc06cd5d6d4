// A host program may set a locale that writes 1,5 for 1.5: texts, code and answers stay as they are.
//
// Such a locale is seldom installed, so one is made with localedef in a temporary folder ($LOCPATH).
// Everything is written once in the locale "C" and once in that one, and must be the same bytes.
#include "check.h"

#include <ftw.h>
#include <locale.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/number.h"
#include "canvas.h"

static char folder[64];

static bool writes_commas(const char *name) {
  char text[16];
  if (!setlocale(LC_ALL, name)) return false;
  snprintf(text, sizeof text, "%g", 1.5);
  setlocale(LC_ALL, "C");
  return !strcmp(text, "1,5");
}

// The name of a locale with a comma, installed or made now; NULL if neither can be had.
static const char *comma_locale(void) {
  static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "de_DE",
                                      "fr_FR.UTF-8", "fr_FR.utf8", "nl_NL.UTF-8"};
  char command[256];
  CHECK_ROWS (names, name) {
    if (writes_commas(*name)) return *name;
  }
  snprintf(command, sizeof command,
           "localedef --no-archive -i de_DE -f UTF-8 %s/de_DE.UTF-8 >/dev/null 2>&1", folder);
  if (system(command) == -1) return NULL;
  setenv("LOCPATH", folder, 1);
  return writes_commas(names[0]) ? names[0] : NULL;
}

static const char *comma;

static int remove_one(const char *path, const struct stat *s, int kind, struct FTW *at) {
  (void)s, (void)kind, (void)at;
  return remove(path);
}

static int set_up(void **state) {
  if (!temporary_folder(folder, sizeof folder)) return -1;
  comma = comma_locale();
  return 0;
}

static int tear_down(void **state) {
  setlocale(LC_ALL, "C");
  return nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

// In the locale with a comma; skips the test where there is none.
static void set_comma(void) {
  if (!comma) {
    print_message("no locale with a decimal comma is installed, and localedef makes none\n");
    skip();
  }
  CHECK(setlocale(LC_ALL, comma), comma);
  CHECK_TEXT(localeconv()->decimal_point, ",", comma);
}

// -- what is compared --

static const char kernel[] =
    "canvas 1\nkernel k\na = input\nb = fc a to=C\nc = exp b\nd = mul c c\ne = fc d to=C\nout e\n";
static const char program[] =
    "program p\nin X f32 [i:64]\nin F i32 [i:64] 0..9\n"
    "Y[i:64] = if F[i] < 3 then X[i] * 1.5 + 0.0001 else 2.5e-07 * X[i] - 1e+30\nout Y\n";

static canvas_context *ctx;

#define OK(call) CHECK_INT(call, CANVAS_OK, canvas_context_message(ctx))

static char *torch(void) {
  canvas_kernel *k;
  canvas_pack *p;
  char *out;
  OK(canvas_kernel_parse(ctx, kernel, strlen(kernel), &k));
  OK(canvas_kernel_bind(ctx, k, "C=4,H=3,W=3", 11, &p));
  OK(canvas_pack_torch(ctx, p, true, &out));
  CHECK(strstr(out, "std = 0."), out);
  canvas_pack_free(p);
  canvas_kernel_free(k);
  return out;
}

static canvas_program *read_program(const char *text) {
  canvas_program *p;
  OK(canvas_program_parse(ctx, text, strlen(text), &p));
  return p;
}

static char *print_program(void) {
  canvas_program *p = read_program(program);
  char *once = canvas_program_print(p), *twice;
  canvas_program_free(p);
  p = read_program(once);
  twice = canvas_program_print(p);
  CHECK_TEXT(twice, once, "print(parse(text))");
  CHECK(strstr(once, "1.5") && strstr(once, "0.0001"), once);
  canvas_program_free(p);
  free(once);
  return twice;
}

// The schedule in print and read again, bound: what it says of it, or its code.
static char *bound(canvas_status (*make)(canvas_context *, const canvas_bound *, char **)) {
  canvas_program *p = read_program(program);
  canvas_machine *m, *here = canvas_machine_here();
  canvas_bound *b;
  canvas_schedule *s, *again;
  char *text = canvas_machine_print(here), *out;
  canvas_machine_free(here);
  OK(canvas_machine_parse(ctx, text, strlen(text), &m));
  free(text);
  OK(canvas_schedule_default(ctx, p, m, &s));
  text = canvas_schedule_print(s);
  OK(canvas_schedule_parse(ctx, text, strlen(text), &again));
  OK(canvas_bound_new(ctx, p, again, m, &b));
  OK(make(ctx, b, &out));
  free(text);
  canvas_bound_free(b);
  canvas_schedule_free(s);
  canvas_schedule_free(again);
  canvas_machine_free(m);
  canvas_program_free(p);
  return out;
}

static canvas_status emit_one(canvas_context *c, const canvas_bound *b, char **out) {
  return canvas_bound_emit(c, b, NULL, out);
}

static char *emit(void) {
  char *out = bound(emit_one);
  CHECK(strstr(out, "1.5f"), out);
  return out;
}

static char *explain(void) {
  return bound(canvas_bound_explain);
}

// An error message that quotes a number.
static char *message(void) {
  canvas_program *p = read_program(program);
  double x[64] = {0}, f[64] = {0.25}, y;
  const double *const inputs[] = {x, f};
  CHECK_INT(canvas_program_evaluate(ctx, p, inputs, 0, 1, NULL, &y), CANVAS_BAD_INPUT, "0.25");
  CHECK(strstr(canvas_context_message(ctx), "0.25"), canvas_context_message(ctx));
  canvas_program_free(p);
  return strdup(canvas_context_message(ctx));
}

static char *budget(void) {
  static const char text[] = "macs=0.25x..0.5x,params=1.5e2x";
  canvas_budget *b;
  OK(canvas_budget_parse(ctx, text, strlen(text), &b));
  canvas_budget_free(b);
  return strdup("");
}

// The command within the process of its host, as Python runs it.
static char *command(void) {
  char path[80], file[80], *words[] = {"canvas", "eval", file, "--at", "C=4,H=3,W=3", NULL};
  snprintf(path, sizeof path, "%s/out", folder);
  snprintf(file, sizeof file, "%s/k.kernel", folder);
  FILE *written = fopen(file, "w");
  fputs(kernel, written);
  fclose(written);
  fflush(stdout);
  int before = dup(1);
  FILE *out = fopen(path, "w+");
  dup2(fileno(out), 1);
  CHECK_INT(canvas_main(5, words), 0, "eval");
  fflush(stdout);
  dup2(before, 1);
  close(before);
  static char text[4096];
  rewind(out);
  text[fread(text, 1, sizeof text - 1, out)] = '\0';
  fclose(out);
  CHECK(strstr(text, "0.35"), text);
  return strdup(text);
}

static const struct {
  const char *what;
  char *(*make)(void);
} texts[] = {{"PyTorch code", torch}, {"program text", print_program},
             {"C code", emit},        {"schedule text and its numbers", explain},
             {"a message", message},  {"a budget", budget},
             {"the command", command}};

static void texts_are_the_same(void **state) {
  set_comma();
  CHECK_ROWS (texts, row) {
    ctx = canvas_context_new();
    setlocale(LC_ALL, "C");
    char *plain = row->make();
    setlocale(LC_ALL, comma);
    char *other = row->make();
    CHECK_TEXT(other, plain, row->what);
    CHECK_TEXT(localeconv()->decimal_point, ",", row->what);  // the host's own locale is as it was
    char host[8];
    snprintf(host, sizeof host, "%g", 1.5);
    CHECK_TEXT(host, "1,5", row->what);
    free(plain);
    free(other);
    canvas_context_free(ctx);
  }
}

static void numbers_have_points(void **state) {
  char text[32];
  set_comma();
  CHECK_INT(text_format(text, sizeof text, "%g %d", 0.5, 7), 5, "0.5 7");
  CHECK_TEXT(text, "0.5 7", "text_format");
  CHECK(number_parse("1.25") == 1.25, "1.25");
  CHECK(number_parse("1,25") == 1, "1,25");
}

// Threads that begin at once: the locale "C" is made once, and each thread's own stays.
static void *print_many(void *bad) {
  for (int i = 0; i < 2000; i++) {
    char text[32];
    text_format(text, sizeof text, "%g", i + 0.5);
    if (strchr(text, ',') || number_parse(text) != i + 0.5) *(int *)bad = 1;
  }
  return NULL;
}

static void threads_do_not_meet(void **state) {
  pthread_t threads[4];
  int bad[4] = {0};
  set_comma();
  for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, print_many, &bad[i]);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  CHECK(!bad[0] && !bad[1] && !bad[2] && !bad[3], "four threads");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(numbers_have_points),
                                     cmocka_unit_test(threads_do_not_meet),
                                     cmocka_unit_test(texts_are_the_same)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
