// Candidates that misbehave in every way, and compilers that do: each is told by its kind, none is
// accepted, the good ones between them are, and all of it ends in time.
//
// With CANVAS_TEST_ALL=1 a thousand of them, mixed.
#define _GNU_SOURCE  // memmem
#include "run/batch.h"
#include "base/memory.h"
#include "run/cache.h"
#include "run/child.h"

#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "sanitized.h"

#define PROGRAM                                                       \
  "canvas 1\nprogram smooth\nin X f32 [h:12, w:10]\nin W f32 [k:3]\n" \
  "P[h:12, w:12] = if 1 <= w && w < 11 then X[h, w-1] else 0\n"       \
  "Y[h:12, w:10] = P[h, w+k] * W[k] // sum k:3\nout Y\n"

// N stands for the candidate's name, R for a call of the right code; T is a number below 120.
static const char frame[] =
    "#include <signal.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n"
    "#include <unistd.h>\n"
    "static void right_N(const float *X, const float *W, float *Y) {\n"
    "  for (int h = 0; h < 12; h++)\n    for (int w = 0; w < 10; w++) {\n      float s = 0;\n"
    "      for (int k = 0; k < 3; k++)\n"
    "        if (w + k >= 1 && w + k < 11) s += X[10 * h + w + k - 1] * W[k];\n"
    "      Y[10 * h + w] = s;\n    }\n}\n"
    "static int calls_N;\n";

static const struct deed {
  const char *name, *extra, *body;  // before the function, and in it
  enum failure failure;
  const char *message;  // a part of it
} deeds[] = {
    {"right", "", "R; return 0;", FAILED_NOT, ""},
    {"chatter", "", "for (int i = 0; i < 9999; i++) puts(\"noise\"); R; return 0;", FAILED_NOT, ""},
    {"children", "", "if (!fork()) for (;;) pause(); R; return 0;", FAILED_NOT, ""},
    {"within rounding", "", "R; Y[T] *= 1.0000001f; return 0;", FAILED_NOT, ""},
    {"an input that ends with a page while it is checked, and in its middle while it is timed", "",
     "R; long page = getpagesize(), end = (long)(X + 128) % page;\n"
     "  return end == (++calls_N > 2 ? page / 2 : 0) ? 0 : 5;",
     FAILED_NOT, ""},
    {"an output that ends with a page while it is checked, and far from its end while it is timed",
     "",
     "R; long page = getpagesize(), end = (long)(Y + 128) % page;\n"
     "  return end == (++calls_N > 2 ? page - 1024 : 0) ? 0 : 5;",
     FAILED_NOT, ""},

    {"no C", "", "R; return nothing;", FAILED_COMPILE, "error: 'nothing' undeclared"},
    {"not closed", "#if 0\n", "R; return 0;", FAILED_COMPILE, "unterminated #if"},
    {"a hungry macro", "#error of my own\n", "R; return 0;", FAILED_COMPILE, "#error of my own"},

    {"nobody's function", "int absent_N(void);\n", "R; return absent_N();", FAILED_LOAD,
     "undefined symbol: absent_"},
    {"crashes on loading", "__attribute__((constructor)) static void c_N(void) { abort(); }\n",
     "R; return 0;", FAILED_LOAD, "it crashed (abort, 6) while it was loaded"},
    {"hangs on loading",
     "__attribute__((constructor)) static void c_N(void) { for (;;) pause(); }\n", "R; return 0;",
     FAILED_LOAD, "it ran longer than 2 s by the clock while it was loaded"},

    {"null write", "", "*(volatile int *)0 = 1; return 0;", FAILED_CRASH,
     "it crashed at address 0x0 (segmentation fault) in its first run"},
    {"stack overflow",
     "static int deep_N(int n) { volatile char a[4096]; a[0] = n; return n < 0 ? 0 : deep_N(n + 1) "
     "+ a[0]; }\n",
     "return deep_N(1);", FAILED_CRASH, "it crashed: its stack overflowed in its first run"},
    {"abort", "", "abort();", FAILED_CRASH, "it crashed (abort, 6) in its first run"},
    {"trap", "", "__builtin_trap();", FAILED_CRASH, "it crashed (illegal instruction, 4)"},
    {"exit", "", "R; exit(0);", FAILED_CRASH, "it ended with status 0 in its first run"},
    {"_exit", "", "R; _exit(3);", FAILED_CRASH, "it ended with status 3 in its first run"},
    {"a signal", "", "R; raise(SIGTERM); return 0;", FAILED_CRASH, "it crashed (signal, 15)"},
    {"writes an input", "", "((float *)X)[T] = 1; R; return 0;", FAILED_CRASH,
     "(segmentation fault)"},
    {"writes an input later", "", "R; if (++calls_N == 7) ((float *)X)[T] = 1; return 0;",
     FAILED_CRASH, "(segmentation fault) while it was timed"},
    {"reads on and on", "",
     "float s = 0; for (int i = 0; i < 99999; i++) s += X[i]; Y[0] = s; return 0;", FAILED_CRASH,
     "(segmentation fault)"},
    {"writes far away", "", "R; Y[1 << 20] = 1; return 0;", FAILED_CRASH, "(segmentation fault)"},
    {"writes a file", "",
     "R; FILE *f = fopen(\"/tmp/canvas-test-output\", \"w\"); if (f) { fputs(\"x\", f); fclose(f); "
     "} return 0;",
     FAILED_CRASH, "it crashed (file too large"},
    {"crashes later", "", "R; if (++calls_N == 7) abort(); return 0;", FAILED_CRASH,
     "it crashed (abort, 6) while it was timed"},
    {"crashes the second time", "", "R; if (++calls_N == 2) abort(); return 0;", FAILED_CRASH,
     "it crashed (abort, 6) in its second run"},

    {"endless loop", "", "for (volatile int i = 0;; i++) {} return 0;", FAILED_TIMEOUT,
     "it ran longer than"},
    {"sleeps", "", "R; sleep(1000); return 0;", FAILED_TIMEOUT,
     "it ran longer than 2 s by the clock"},
    {"deaf", "", "for (int s = 1; s < 32; s++) signal(s, SIG_IGN); for (;;) pause();",
     FAILED_TIMEOUT, "it ran longer than 2 s by the clock"},
    {"hangs later", "", "R; if (++calls_N == 7) for (;;) pause(); return 0;", FAILED_TIMEOUT,
     "it ran longer than 2 s by the clock while it was timed"},

    {"says no memory", "", "return 1;", FAILED_MEMORY, "it says that there is no memory"},
    {"hog", "",
     "for (;;) { volatile char *m = malloc(4 << 20); for (int i = 0; i < 4 << 20; i += 999) m[i] = "
     "1; } return 0;",
     FAILED_MEMORY, "it took more memory than there is (the limit is 64 MiB) in its first run"},
    {"hog at once", "", "volatile char *m = malloc(1 << 30); m[9] = 1; R; return 0;", FAILED_MEMORY,
     "it took more memory than there is"},

    {"its own error", "", "return 7;", FAILED_RUN, "it answers 7"},
    {"an error later", "", "R; return ++calls_N > 7 ? 5 : 0;", FAILED_RUN,
     "it answered with an error while it was timed"},

    {"one element off", "", "R; Y[T] += 1e-3f; return 0;", FAILED_WRONG,
     "1 of 120 elements are wrong"},
    {"a little off", "", "R; Y[T] += 3e-6f; return 0;", FAILED_WRONG,
     "1 of 120 elements are wrong"},
    {"a nan", "", "R; Y[T] = 0.0f / 0.0f * Y[0]; return 0;", FAILED_WRONG,
     "1 of 120 elements are wrong"},
    {"infinite", "", "R; Y[T] = 1e38f * 1e38f; return 0;", FAILED_WRONG, "inf, not"},
    {"all zeros", "", "memset(Y, 0, 480); return 0;", FAILED_WRONG, "Y[0, 0] is 0, not"},
    {"border wrong", "",
     "R; for (int h = 0; h < 12; h++) Y[10 * h] += X[10 * h + 9] * W[0]; return 0;", FAILED_WRONG,
     "12 of 120 elements are wrong"},
    {"last row missing", "", "float z[120]; right_N(X, W, z); memcpy(Y, z, 440); return 0;",
     FAILED_WRONG, "Y[11, 0] is never written; 10 of 120"},
    {"one missing", "", "float z[120], k = Y[T]; R; Y[T] = k; return 0;", FAILED_WRONG,
     "is never written; 1 of 120"},
    {"nothing written", "", "return 0;", FAILED_WRONG, "Y[0, 0] is never written; 120 of 120"},
    {"one past the end", "", "R; Y[120] = 0; return 0;", FAILED_WRONG,
     "it writes outside its output: 1 bytes past the end of 'Y'"},
    {"a byte past the end", "", "R; ((char *)Y)[480 + T] = 1; return 0;", FAILED_WRONG,
     "bytes past the end of 'Y'"},
    {"one before", "", "R; Y[-1] = 0; return 0;", FAILED_WRONG,
     "it writes outside its output: 1 bytes before 'Y'"},
    {"wrong place", "",
     "R; float k = Y[T]; Y[T] = Y[(T + 1) % 120]; Y[(T + 1) % 120] = k; return 0;", FAILED_WRONG,
     "2 of 120 elements are wrong"},
    {"rows swapped", "",
     "float z[10]; R; memcpy(z, Y, 40); memcpy(Y, Y + 10, 40); memcpy(Y + 10, z, 40); return 0;",
     FAILED_WRONG, "20 of 120 elements are wrong"},
    {"adds to its output", "",
     "float z[120]; right_N(X, W, z); for (int i = 0; i < 120; i++) Y[i] += z[i]; return 0;",
     FAILED_WRONG, "120 of 120 elements are wrong"},
    {"memory as it comes", "", "float *z = malloc(4096); R; Y[T] += z[T]; free(z); return 0;",
     FAILED_WRONG, "1 of 120 elements are wrong"},
    {"stack as it comes", "", "volatile float z[1024]; R; Y[T] += z[T]; return 0;", FAILED_WRONG,
     "elements are wrong"},
    {"wrong the second time", "", "R; if (++calls_N == 2) Y[T] += 1; return 0;", FAILED_WRONG,
     "in one run and"},
    {"missing the second time", "", "float k = Y[T]; R; if (++calls_N == 2) Y[T] = k; return 0;",
     FAILED_WRONG, "in one run and"},
    {"wrong on another workspace",
     "#define FREE_OF(f) f##_free_workspace\nstatic void *kept_N;\nstatic int asked_N;\n"
     "void FREE_OF(N)(void) { free(kept_N); kept_N = 0; }\n",
     "if (!kept_N) asked_N++, kept_N = malloc(64); R; if (asked_N == 2) Y[T] += 1; return 0;",
     FAILED_WRONG, "in one run and"},
    {"wrong later", "", "R; if (++calls_N > 9) Y[T] += 1; return 0;", FAILED_WRONG,
     "in one run and"},
    {"outside later", "", "R; if (++calls_N > 9) Y[-1] = 1; return 0;", FAILED_WRONG,
     "it writes outside its output: 1 bytes before 'Y'"},
};
enum { DEEDS = sizeof deeds / sizeof *deeds };

// What the compiler does when it meets one of these words.
static const struct {
  const char *word, *script;
  enum failure failure;
  const char *message;
} compilers[] = {
    {"CC_DIES", "kill -SEGV $$", FAILED_COMPILE, "crashed (segmentation fault, 11)"},
    {"CC_RUBBISH", "head -c 300000 /bin/sh; exit 0", FAILED_COMPILE,
     "ended well but wrote no file"},
    {"CC_ANGRY", "head -c 300000 /bin/sh; exit 9", FAILED_COMPILE, "ended with status 9"},
    {"CC_EMPTY", ": >unit.so; exit 0", FAILED_COMPILE, "ended well but wrote an empty file"},
    {"CC_GARBAGE", "head -c 9999 /dev/zero >unit.so; exit 0", FAILED_LOAD, "invalid ELF header"},
    {"CC_SHORT", "gcc \"$@\"; truncate -s 4000 unit.so; exit 0", FAILED_LOAD, ""},
    {"CC_HANGS", "sleep 1000", FAILED_COMPILE, "ran longer than"},
};
enum { COMPILERS = sizeof compilers / sizeof *compilers };

static char folder[64];                            // of this test
static struct compiler *compiler, *slow_compiler;  // the second with a timeout for a busy machine
static struct expected *expected;

static void write_script(const char *name, char *path, size_t size) {
  canvas_context ctx = {.message = ""};
  struct buf text = {0};
  buf_puts(&text, "#!/bin/sh\n[ \"$1\" = --version ] && exec gcc --version\n");
  for (int i = 0; i < COMPILERS; i++)
    buf_printf(&text, "if grep -q %s unit.c; then %s; fi\n", compilers[i].word,
               compilers[i].script);
  buf_puts(&text, "exec gcc \"$@\"\n");
  snprintf(path, size, "%s/%s", folder, name);
  assert_int_equal(file_write(&ctx, path, text.text, text.length), CANVAS_OK);
  chmod(path, 0755);
  buf_free(&text);
}

static int open_all(void **state) {
  canvas_context ctx = {.message = ""};
  struct program *p;
  char script[128];
  if (!temporary_folder(folder, sizeof folder)) return -1;
  write_script("cc", script, sizeof script);
  struct compiler_options options = {.command = script, .cache = folder, .seconds = 6, .wall = 6};
  if (compiler_open(&ctx, &options, &compiler) != CANVAS_OK) fail_msg("%s", ctx.message);
  options.seconds = options.wall = 300;
  if (compiler_open(&ctx, &options, &slow_compiler) != CANVAS_OK) fail_msg("%s", ctx.message);
  assert_int_equal(program_parse(&ctx, PROGRAM, strlen(PROGRAM), &p), CANVAS_OK);
  if (expected_new(&ctx, p, NULL, &expected) != CANVAS_OK) fail_msg("%s", ctx.message);
  program_free(p);
  return 0;
}

static int close_all(void **state) {
  char command[128];
  compiler_close(compiler);
  compiler_close(slow_compiler);
  expected_free(expected);
  unlink("/tmp/canvas-test-output");  // what "writes a file" could open, but not write
  snprintf(command, sizeof command, "rm -rf %s", folder);
  return system(command);
}

// The text with every capital N, R or T that stands for something replaced.
static char *fill(const char *text, int number) {
  struct buf out = {0};
  for (const char *p = text; *p; p++) {
    bool alone =
        p == text || !strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", p[-1]);
    bool ends = !strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_", p[1]) || !p[1];
    if (*p == 'N' && ends && (alone || p[-1] == '_'))
      buf_printf(&out, "f%d", number);
    else if (*p == 'R' && ends && alone)
      buf_printf(&out, "right_f%d(X, W, Y)", number);
    else if (*p == 'T' && ends && alone)
      buf_printf(&out, "%d", number % 120);
    else
      buf_bytes(&out, p, 1);
  }
  return buf_take(&out);
}

static char *write_candidate(const struct deed *deed, const char *word, int number) {
  struct buf text = {0};
  buf_printf(&text, "%s%s%s// %s\nint N(const float *X, const float *W, float *Y) {\n  %s\n}\n", "",
             frame, deed->extra, word, deed->body);
  char *filled = fill(text.text, number);
  buf_free(&text);
  return filled;
}

struct order {
  const struct deed *deed;
  int compiler;  // -1: it works
};

static bool skipped(const struct deed *deed) {
  return SANITIZED &&
         strstr(deed->name, "hog");  // the sanitizer's malloc ends the process by itself
}

static enum failure expected_failure(struct order order) {
  return order.compiler < 0 ? order.deed->failure : compilers[order.compiler].failure;
}

static bool ran_late(const struct verdict *v) {
  return v->failure == FAILED_TIMEOUT || strstr(v->message, "ran longer than");
}

// On a busy machine anything may run late: what should not have is judged again, with a long timeout.
static void judge_again(struct order order, const struct batch_candidate *candidate,
                        struct verdict *v) {
  canvas_context ctx = {.message = ""};
  const struct batch_options options = {
      .limits = {.seconds = 120, .memory = 64 << 20, .timing = 0.01, .repeats = 9}};
  const char *message =
      order.compiler < 0 ? order.deed->message : compilers[order.compiler].message;
  if (!ran_late(v) || expected_failure(order) == FAILED_TIMEOUT || strstr(message, "ran longer"))
    return;
  if (batch_run(&ctx, slow_compiler, expected, candidate, 1, &options, v) != CANVAS_OK)
    fail_msg("%s", ctx.message);
}

static void check_verdict(struct order order, const struct verdict *v) {
  const char *name = order.compiler < 0 ? order.deed->name : compilers[order.compiler].word;
  const char *message =
      order.compiler < 0 ? order.deed->message : compilers[order.compiler].message;
  enum failure failure = expected_failure(order);
  if (skipped(order.deed) && v->failure) return;
  if (v->failure != failure)
    fail_msg("%s: %s (%s), not %s", name, failure_name(v->failure), v->message,
             failure_name(failure));
  if (!strstr(v->message, message))
    fail_msg("%s: \"%s\" does not hold \"%s\"", name, v->message, message);
  if (failure) return;
  CHECK_INT(v->compared, 120, name);
  CHECK(v->worst >= 0 && v->worst <= 1, name);
  CHECK(v->repeats >= 5 && v->lower > 0 && v->lower <= v->median && v->median <= v->upper, name);
}

// Runs what was ordered and looks at every verdict; answers the seconds it took.
static double run_orders(const struct order *orders, int count, int together, double seconds) {
  canvas_context ctx = {.message = ""};
  struct batch_candidate *candidates = mem_alloc((size_t)count * sizeof *candidates);
  struct verdict *verdicts = mem_alloc((size_t)count * sizeof *verdicts);
  const struct batch_options options = {
      .together = together,
      .seconds = seconds,
      .limits = {.seconds = 1, .wall = 2, .memory = 64 << 20, .timing = 0.01, .repeats = 9}};
  for (int i = 0; i < count; i++) {
    const char *word = orders[i].compiler < 0 ? "" : compilers[orders[i].compiler].word;
    char *name = fill("N", i);
    candidates[i] =
        (struct batch_candidate){write_candidate(orders[i].deed, word, i), name, NULL, false};
  }
  double start = clock_wall();
  if (batch_run(&ctx, compiler, expected, candidates, count, &options, verdicts) != CANVAS_OK)
    fail_msg("%s", ctx.message);
  double took = clock_wall() - start;
  int kinds[FAILURES] = {0};
  for (int i = 0; i < count; i++) {
    judge_again(orders[i], &candidates[i], &verdicts[i]);
    check_verdict(orders[i], &verdicts[i]);
    kinds[verdicts[i].failure]++;
    free((char *)(uintptr_t)candidates[i].text);
    free((char *)(uintptr_t)candidates[i].function);
  }
  print_message("%d candidates in %.1f s:", count, took);
  for (int k = 0; k < FAILURES; k++)
    print_message(" %s %d", failure_name((enum failure)k), kinds[k]);
  print_message("\n");
  free(candidates);
  free(verdicts);
  return took;
}

// Every third after a good one, in the child that served that.
static void every_deed(void **state) {
  struct order orders[2 * DEEDS];
  int count = 0;
  for (int i = 0; i < DEEDS; i++) {
    if (i % 3 == 1) orders[count++] = (struct order){&deeds[0], -1};
    orders[count++] = (struct order){&deeds[i], -1};
  }
  run_orders(orders, count, 7, 0);
}

// What a good one leaves in its process fails nobody.
static void nobody_else_is_blamed(void **state) {
  static const struct deed spoiler = {
      "takes the memory away", "#include <sys/resource.h>\n",
      "R; struct rlimit l = {1, 1}; setrlimit(RLIMIT_AS, &l); return 0;", FAILED_NOT, ""};
  static const struct deed needs = {"needs memory", "",
                                    "volatile char *m = malloc(16 << 20); if (!m) return 1; m[T] = "
                                    "1; free((void *)m); R; return 0;",
                                    FAILED_NOT, ""};
  const struct order orders[] = {
      {&deeds[0], -1}, {&spoiler, -1}, {&needs, -1}, {&needs, -1}, {&deeds[0], -1}};
  if (SANITIZED) skip();  // whose malloc ends the process by itself
  run_orders(orders, sizeof orders / sizeof *orders, 0, 0);
}

// Samples of what is much slower than the best end early where that was asked for.
static void slow_ones_end_early(void **state) {
  static const struct deed slow = {
      "slow", "", "for (volatile int i = 0; i < 200000; i++) {} R; return 0;", FAILED_NOT, ""};
  static const struct {
    bool early;
    double best;
    int repeats[3];  // slow, right, slow
  } rows[] = {{false, 0, {9, 9, 9}}, {true, 0, {9, 9, 1}}, {true, 1e-9, {1, 1, 1}}};
  const struct deed *order[] = {&slow, &deeds[0], &slow};
  struct batch_candidate candidates[3];
  for (int i = 0; i < 3; i++)
    candidates[i] =
        (struct batch_candidate){write_candidate(order[i], "EARLY", i), fill("N", i), NULL, false};
  CHECK_ROWS (rows, row) {
    canvas_context ctx = {.message = ""};
    struct verdict verdicts[3];
    const struct batch_options options = {
        .limits = {.timing = 0.5, .repeats = 9, .early = row->early, .best = row->best}};
    assert_int_equal(batch_run(&ctx, compiler, expected, candidates, 3, &options, verdicts),
                     CANVAS_OK);
    for (int i = 0; i < 3; i++) {
      CHECK_INT(verdicts[i].failure, FAILED_NOT, verdicts[i].message);
      CHECK_INT(verdicts[i].repeats, row->repeats[i], order[i]->name);
    }
  }
  for (int i = 0; i < 3; i++) {
    free((char *)(uintptr_t)candidates[i].text);
    free((char *)(uintptr_t)candidates[i].function);
  }
}

// What fails in its turn alone is blamed for it, and those that do not have their times; a candidate that is right takes
// part whatever the others do.
static void by_turns(void **state) {
  enum { COUNT = 3, ROUNDS = 4 };
#define SLOWLY "for (volatile int i = 0; i < 200000; i++) {} R; "
  static const struct deed right = {"slow", "", SLOWLY "return 0;", FAILED_NOT, ""};
  static const struct deed rows[] = {
      {"right, too", "", SLOWLY "return 0;", FAILED_NOT, ""},
      {"wrong at once", "", "return 0;", FAILED_WRONG, "never written"},
      {"crashes", "", SLOWLY "if (++calls_N > 20) abort(); return 0;", FAILED_CRASH,
       "it crashed (abort, 6) while it was timed"},
      {"hangs", "", SLOWLY "if (++calls_N > 20) for (;;) pause(); return 0;", FAILED_TIMEOUT,
       "it ran longer than 3 s by the clock while it was timed"},
      {"wrong", "", SLOWLY "if (++calls_N > 20) Y[T] += 1; return 0;", FAILED_WRONG,
       "its outputs are wrong after the last of its turns"},
      {"an error", "", SLOWLY "return ++calls_N > 20 ? 5 : 0;", FAILED_RUN,
       "it answered with an error while it was timed"}};
  CHECK_ROWS (rows, row) {
    canvas_context ctx = {.message = ""};
    struct verdict verdicts[COUNT];
    double times[COUNT * ROUNDS];
    struct batch_candidate candidates[COUNT] = {{0}};  // the second is none
    for (int i = 0; i < COUNT * ROUNDS; i++) times[i] = NAN;
    for (int i = 0; i < COUNT; i += 2)
      candidates[i] = (struct batch_candidate){write_candidate(i ? row : &right, "TURN", i),
                                               fill("N", i), NULL, false};
    const struct batch_options options = {.separate = true,
                                          .limits = {.repeats = 3,
                                                     .timing = 0.01,
                                                     .seconds = 3,
                                                     .wall = 3,
                                                     .rounds = ROUNDS,
                                                     .times = times}};
    verdicts[1] = (struct verdict){.repeats = -1};
    assert_int_equal(batch_run(&ctx, compiler, expected, candidates, COUNT, &options, verdicts),
                     CANVAS_OK);
    CHECK_INT(verdicts[0].failure, FAILED_NOT, verdicts[0].message);
    CHECK_INT(verdicts[1].repeats, -1, "it stays as it was");
    CHECK_INT(verdicts[2].failure, row->failure, verdicts[2].message);
    CHECK(strstr(verdicts[2].message, row->message), verdicts[2].message);
    bool early = !strcmp(row->name, "wrong at once");
    for (int r = 0; r < ROUNDS; r++) {
      CHECK(isnan(times[ROUNDS + r]), "of the second");
      if (row->failure == FAILED_NOT || row->failure == FAILED_RUN || row->failure == FAILED_WRONG)
        CHECK(isnan(times[r]) == early, row->name);
      if (!row->failure) CHECK(times[2 * ROUNDS + r] > 1e-6 && times[r] > 1e-6, row->name);
    }
    for (int i = 0; i < COUNT; i += 2) {
      free((char *)(uintptr_t)candidates[i].text);
      free((char *)(uintptr_t)candidates[i].function);
    }
  }
#undef SLOWLY
}

// Where the time is over there are as many rounds as are wanted all the same.
static void turns_in_time(void **state) {
  enum { ROUNDS = 6 };
  static const struct deed right = {"right", "", "R; return 0;", FAILED_NOT, ""};
  static const struct row {
    double seconds;
    int least, rounds;
  } rows[] = {{-1, 0, 0}, {-1, 2, 2}, {-1, 9, ROUNDS}, {60, 0, ROUNDS}, {0, 0, ROUNDS}};
  CHECK_ROWS (rows, row) {
    canvas_context ctx = {.message = ""};
    struct verdict verdict;
    double times[ROUNDS];
    char what[64];
    for (int i = 0; i < ROUNDS; i++) times[i] = NAN;
    const struct batch_candidate candidate = {write_candidate(&right, "TURN", 0), fill("N", 0),
                                              NULL, false};
    const struct batch_options options = {
        .separate = true,
        .limits = {.repeats = 3,
                   .timing = 0.01,
                   .rounds = ROUNDS,
                   .times = times,
                   .rounds_least = row->least,
                   .rounds_until = row->seconds != 0 ? clock_wall() + row->seconds : 0}};
    snprintf(what, sizeof what, "%g s, %d at least", row->seconds, row->least);
    assert_int_equal(batch_run(&ctx, compiler, expected, &candidate, 1, &options, &verdict),
                     CANVAS_OK);
    CHECK_INT(verdict.failure, FAILED_NOT, verdict.message);
    int taken = 0;
    while (taken < ROUNDS && times[taken] > 0) taken++;
    CHECK_INT(taken, row->rounds, what);
    free((char *)(uintptr_t)candidate.text);
    free((char *)(uintptr_t)candidate.function);
  }
}

static void burn(void *data) {
  double start = clock_processor();
  while (clock_processor() - start < 0.2) {
  }
}

// The processor time of children counts once they have ended.
static void processor_time(void **state) {
  double start = clock_processor();
  int child = child_beside(burn, NULL);
  child_join(child);
  double taken = clock_processor() - start;
  CHECK(taken > 0.19 && taken < 1, "of a child");
}

static void every_compiler(void **state) {
  struct order orders[COMPILERS + 1];
  for (int i = 0; i < COMPILERS; i++) orders[i] = (struct order){&deeds[0], i};
  orders[COMPILERS] = (struct order){&deeds[0], -1};
  run_orders(orders, COMPILERS + 1, 1, 0);
}

// A second pass finds the good ones in the cache; a damaged one is made anew.
static void from_the_cache(void **state) {
  canvas_context ctx = {.message = ""};
  struct batch_candidate candidate = {write_candidate(&deeds[0], "CACHED", 0), "f0", NULL, false};
  const struct source source = {candidate.text, "f0", 3, NULL, 0};
  struct object object;
  struct verdict v;
  const struct batch_options options = {.limits = {.timing = 0.01}};
  for (int i = 0; i < 3; i++) {
    assert_int_equal(batch_run(&ctx, compiler, expected, &candidate, 1, &options, &v), CANVAS_OK);
    check_verdict((struct order){&deeds[0], -1}, &v);
    assert_int_equal(compiler_build(&ctx, compiler, &source, 1, 1, 0, &object), CANVAS_OK);
    assert_true(object.cached);
    if (i == 0) assert_int_equal(truncate(object.path, 3000), 0);
    objects_free(&object, 1);
  }
  free((char *)(uintptr_t)candidate.text);
}

// What libomp of any process on this machine has in shared memory, or left there.
static int shared_memories(void) {
  glob_t found;
  int count =
      glob("/dev/shm/__KMP_REGISTERED_LIB_*", 0, NULL, &found) == 0 ? (int)found.gl_pathc : 0;
  globfree(&found);
  return count;
}

// Parallel code runs with the OpenMP library of gcc and of clang, and leaves nothing in shared memory;
// code without threads is not linked with any.
static void threads(void **state) {
  static const struct deed parallel = {
      "parallel", "", "\n#pragma omp parallel for\n  for (int i = 0; i < 1; i++) R;\n  return 0;",
      FAILED_NOT, ""};
  static const char *const commands[] = {"gcc", "clang"};
  int before = shared_memories();
  if (SANITIZED) skip();
  for (int i = 0; i < 4; i++) {
    canvas_context ctx = {.message = ""};
    struct compiler *c;
    const struct compiler_options options = {.command = commands[i / 2], .cache = folder};
    const struct batch_options limits = {.limits = {.timing = 0.01}};
    const struct deed *deed = i % 2 ? &parallel : &deeds[0];
    struct batch_candidate candidate = {write_candidate(deed, "THREADS", 0), "f0", NULL, false};
    const struct source source = {candidate.text, "f0", 3, NULL, 0};
    struct object object;
    struct buf code = {0};
    struct verdict v;
    if (compiler_open(&ctx, &options, &c) != CANVAS_OK) {
      print_message("%s is not installed\n", commands[i / 2]);
      free((char *)(uintptr_t)candidate.text);
      continue;
    }
    assert_int_equal(batch_run(&ctx, c, expected, &candidate, 1, &limits, &v), CANVAS_OK);
    check_verdict((struct order){deed, -1}, &v);
    assert_int_equal(compiler_build(&ctx, c, &source, 1, 1, 0, &object), CANVAS_OK);
    assert_true(file_read(object.path, 1 << 24, &code));
    bool linked = memmem(code.text, code.length, "omp.so", 6) != NULL;
    CHECK_INT(linked, i % 2 && strstr(compiler_text(c), "-fopenmp"), compiler_text(c));
    buf_free(&code);
    objects_free(&object, 1);
    compiler_close(c);
    free((char *)(uintptr_t)candidate.text);
  }
  assert_true(shared_memories() <= before);
}

// The code has so many threads from its second run on; what depends on their number is found wrong.
static void so_many_threads(void **state) {
  static const char text[] =
      "#include <omp.h>\nint team(const float *X, const float *W, float *Y);\n"
      "int team(const float *X, const float *W, float *Y) {\n  static int calls;\n"
      "  int n = 0, wanted = calls++ ? %d : 1;\n#pragma omp parallel\n#pragma omp master\n"
      "  n = omp_get_num_threads();\n#pragma omp parallel for\n"
      "  for (int i = 0; i < 120; i++) {\n    float s = 0;\n    int h = i / 10, w = i %% 10;\n"
      "    for (int k = 0; k < 3; k++)\n"
      "      if (w + k >= 1 && w + k < 11) s += X[10 * h + w + k - 1] * W[k];\n"
      "    Y[i] = s * (1 + %s);\n  }\n  return n == wanted ? 0 : 5;\n}\n";
  if (SANITIZED) skip();
  for (int i = 1; i <= 3; i++)
    for (int depends = 0; depends < 2; depends++) {
      canvas_context ctx = {.message = ""};
      const struct batch_options options = {.limits = {.timing = 0.01, .threads = i}};
      struct batch_candidate candidate = {.function = "team"};
      struct buf code = {0};
      struct verdict v;
      buf_printf(&code, text, i, depends ? "(n - 1) * 1e-7f" : "0");
      candidate.text = code.text;
      assert_int_equal(batch_run(&ctx, compiler, expected, &candidate, 1, &options, &v), CANVAS_OK);
      CHECK_INT(v.failure, depends && i > 1 ? FAILED_WRONG : FAILED_NOT, v.message);
      CHECK(!v.failure || strstr(v.message, " in one run and "), v.message);
      buf_free(&code);
    }
}

// What is prepared before the run: by a function that takes W, into memory of 64 bytes.
static void prepares(void **state) {
  static const char text[] =
      "int pre_prepare(const float *W, float *packed);\n"
      "int pre_prepare(const float *W, float *packed) {\n"
      "  for (int k = 0; k < 3; k++) packed[k] = W[k];\n  %s\n  return 0;\n}\n"
      "int pre(const float *X, const float *packed, float *Y);\n"
      "int pre(const float *X, const float *packed, float *Y) {\n  %s\n"
      "  for (int i = 0; i < 120; i++) {\n    float s = 0;\n    int h = i / 10, w = i %% 10;\n"
      "    for (int k = 0; k < 3; k++)\n"
      "      if (w + k >= 1 && w + k < 11) s += X[10 * h + w + k - 1] * packed[k];\n"
      "    Y[i] = s;\n  }\n  return 0;\n}\n";
  static const struct {
    const char *deed, *rest;
    int64_t bytes;
    enum failure failure;
    const char *message;
  } rows[] = {
      {"", "", 64, FAILED_NOT, ""},
      {"packed[15] = 1;", "", 64, FAILED_NOT, ""},
      {"",
       "static int calls;\n  long end = (long)(packed + 16) % 4096;\n"
       "  if (end != (++calls > 2 ? 4096 - 1536 : 0)) return 5;",
       64, FAILED_NOT, ""},
      {"packed[1] += 1e-3f;", "", 64, FAILED_WRONG, "elements are wrong"},
      {"packed[16] = 1;", "", 64, FAILED_WRONG, "it writes outside of what it prepares"},
      {"packed[-1] = 1;", "", 64, FAILED_WRONG, "it writes outside of what it prepares"},
      {"((float *)W)[0] = 1;", "", 64, FAILED_CRASH, "in its first run"},
      {"return 3;", "", 64, FAILED_RUN, "it answers 3 where it prepares"},
      {"", "((float *)packed)[5] = 1;", 64, FAILED_CRASH, "in its first run"},
      {"", "", INT64_MAX / 4, FAILED_MEMORY, "there is no memory for what it prepares"},
  };
  static const bool first[] = {false, true}, second[] = {true, false};
  CHECK_ROWS (rows, row) {
    canvas_context ctx = {.message = ""};
    const struct batch_options options = {.limits = {.timing = 0.01, .seconds = 2}};
    const struct measure_prepare prepare = {row->bytes, first, second};
    struct batch_candidate candidate = {.function = "pre", .prepare = &prepare};
    struct buf code = {0};
    struct verdict v;
    buf_printf(&code, text, row->deed, row->rest);
    candidate.text = code.text;
    assert_int_equal(batch_run(&ctx, compiler, expected, &candidate, 1, &options, &v), CANVAS_OK);
    CHECK_INT(v.failure, row->failure, v.message);
    CHECK(strstr(v.message, row->message), v.message);
    buf_free(&code);
  }
}

// All time together is bounded: what is left over says so.
static void bounded(void **state) {
  canvas_context ctx = {.message = ""};
  enum { MANY = 12 };
  struct batch_candidate candidates[MANY];
  struct verdict verdicts[MANY];
  const struct batch_options options = {.together = 4, .seconds = 3};
  const struct deed *sleeps = NULL;
  CHECK_ROWS (deeds, row)
    if (!strcmp(row->name, "sleeps")) sleeps = row;
  for (int i = 0; i < MANY; i++)
    candidates[i] =
        (struct batch_candidate){write_candidate(sleeps, "BOUNDED", i), fill("N", i), NULL, false};
  double start = clock_wall();
  assert_int_equal(batch_run(&ctx, compiler, expected, candidates, MANY, &options, verdicts),
                   CANVAS_OK);
  assert_true(clock_wall() - start < 20);
  for (int i = 0; i < MANY; i++) {
    CHECK_INT(verdicts[i].failure, FAILED_TIMEOUT, verdicts[i].message);
    free((char *)(uintptr_t)candidates[i].text);
    free((char *)(uintptr_t)candidates[i].function);
  }
  CHECK(strstr(verdicts[MANY - 1].message, "there was no time left to"),
        verdicts[MANY - 1].message);
}

static void a_thousand(void **state) {
  enum { ALL = 1000 };
  static struct order orders[ALL];
  if (!getenv("CANVAS_TEST_ALL")) skip();
  for (int i = 0; i < ALL; i++) {
    int which = i / 2 % (DEEDS + COMPILERS);
    bool good = i % 2 == 0;
    orders[i].compiler = !good && which >= DEEDS ? which - DEEDS : -1;
    orders[i].deed = good || which >= DEEDS ? &deeds[0] : &deeds[which];
  }
  assert_true(run_orders(orders, ALL, 4, 3600) < 3600);
}

static canvas_status expect(canvas_context *ctx, const char *text, struct expected **out) {
  struct program *p;
  if (program_parse(ctx, text, strlen(text), &p) != CANVAS_OK) fail_msg("%s", ctx->message);
  canvas_status status = expected_new(ctx, p, NULL, out);
  program_free(p);
  return status;
}

// What is too large, or finds no memory, is rejected in an error message.
static void rejections(void **state) {
  canvas_context ctx = {.message = ""};
  struct expected *e;
  struct verdict v;
  struct rlimit now, little;
  assert_int_equal(expect(&ctx,
                          "canvas 1\nprogram large\nin X f32 [i:70000, j:70000]\n"
                          "Y[i:2] = X[i, 0]\nout Y\n",
                          &e),
                   CANVAS_BAD_INPUT);
  assert_string_equal(
      ctx.message,
      "inputs and outputs of program 'large' take 18692 MiB, over the limit of 4096 MiB");
  if (SANITIZED) return;
  getrlimit(RLIMIT_AS, &now);
  little = now;
  little.rlim_cur = 1;
  setrlimit(RLIMIT_AS, &little);
  canvas_status filled = expect(&ctx,
                                "canvas 1\nprogram p\nin X f32 [i:1000, j:3000]\n"
                                "Y[i:2] = X[i, 0]\nout Y\n",
                                &e);
  setrlimit(RLIMIT_AS, &now);
  assert_int_equal(filled, CANVAS_IO);
  assert_string_equal(ctx.message, "there is no memory for the tensors of program 'p'");
  setrlimit(RLIMIT_AS, &little);
  const struct measure_item item = {"none.so", "f", NULL, false};
  canvas_status measured = measure(&ctx, expected, &item, 1, NULL, &v);
  setrlimit(RLIMIT_AS, &now);
  assert_int_equal(measured, CANVAS_IO);
  assert_string_equal(ctx.message, "there is no memory to run a candidate");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_deed),
      cmocka_unit_test(every_compiler),
      cmocka_unit_test(from_the_cache),
      cmocka_unit_test(bounded),
      cmocka_unit_test(rejections),
      cmocka_unit_test(threads),
      cmocka_unit_test(a_thousand),
      cmocka_unit_test(so_many_threads),
      cmocka_unit_test(prepares),
      cmocka_unit_test(nobody_else_is_blamed),
      cmocka_unit_test(slow_ones_end_early),
      cmocka_unit_test(by_turns),
      cmocka_unit_test(turns_in_time),
      cmocka_unit_test(processor_time),
  };
  return cmocka_run_group_tests(tests, open_all, close_all);
}
