// Machines: their text, the files of examples/machines/, this one.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "machines.h"

static canvas_context ctx;

#define HEAD "canvas 1\nmachine m\n"
#define BODY "vector_bytes 32\nvector_registers 16\nl1 32 KiB\nl2 1 MiB\nmemory 1 GiB\n"

// ---- what is read -------------------------------------------------------------------------------

static const struct {
  const char *text, *printed;  // a line of what is printed
} good[] = {
    {HEAD BODY, "machine m\n"},
    {"# note\n\ncanvas 1\n\nmachine a.b_c-1+  # note\n" BODY, "machine a.b_c-1+\n"},
    {HEAD BODY, "\nfma no\nbf16 none\ntiles none\nline 64\n"},
    {HEAD BODY, "\nl3 0\ncores 1\nmemory 1 GiB\ntarget native\n"},
    {HEAD BODY "fma yes", "\nfma yes\n"},
    {HEAD BODY "bf16 dot,convert", "\nbf16 convert,dot\n"},
    {HEAD BODY "bf16 dot , dot\n", "\nbf16 dot\n"},
    {HEAD BODY "tiles fp16,int8", "\ntiles int8,fp16\n"},
    {HEAD "memory 1024 KiB\n"
          "vector_bytes 64\nvector_registers 32\nl2 1025\nl1 2048\n",
     "\nl1 2 KiB\nl2 1025\nl3 0\ncores 1\nmemory 1 MiB\n"},
    {HEAD BODY "l3 1048576 GiB\ncores 1048576\n", "\nl3 1048576 GiB\ncores 1048576\n"},
    {HEAD BODY "target x86-64-v3", "\ntarget x86-64-v3\n"},
};

static char *printed(const struct machine *m) {
  struct buf out = {0};
  machine_print(m, &out);
  return buf_take(&out);
}

static void reads_and_prints(void **state) {
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    struct machine m, again;
    CHECK_INT(machine_parse(&ctx, good[i].text, strlen(good[i].text), &m), CANVAS_OK, ctx.message);
    char *once = printed(&m);
    CHECK(strstr(once, good[i].printed), once);
    CHECK_INT(machine_parse(&ctx, once, strlen(once), &again), CANVAS_OK, ctx.message);
    char *twice = printed(&again);
    CHECK_TEXT(twice, once, good[i].text);
    free(once);
    free(twice);
  }
}

// ---- what is rejected ---------------------------------------------------------------------------

static const struct {
  const char *text, *message;
} bad[] = {
    {"",
     "line 1, column 1: expected 'canvas' and the version ('canvas 1') on the first line, found "
     "the end of the text"},
    {"canvas x\n", "line 1, column 8: expected the version, 'canvas 1', found 'x'"},
    {"canvas 2\n", "line 1, column 8: unknown version '2', this is version 1"},
    {"canvas 1 machine m\n",
     "line 1, column 10: expected the end of the line after the version, found 'machine'"},
    {"canvas 1\nkernel m\n", "line 2, column 1: expected 'machine' and a name, found 'kernel'"},
    {"canvas 1\nmachine\n", "line 2, column 8: expected name, found the end of the line"},
    {"canvas 1\nmachine \x01\n", "line 2, column 9: unexpected byte 0x01, expected name"},
    {"canvas 1\nmachine -m\n",
     "line 2, column 9: name '-m' is not a word of at most 39 letters, "
     "digits and . _ + -"},
    {"canvas 1\nmachine m n\n",
     "line 2, column 11: expected the end of the line after the name, found 'n'"},
    {HEAD, "line 3, column 1: machine 'm' has no vector_bytes"},
    {HEAD "vector_bytes 16\nvector_registers 8\nl1 1\nl2 1\n",
     "line 7, column 1: machine 'm' has no memory"},
    {HEAD "7\n", "line 3, column 1: expected a key such as vector_bytes, found '7'"},
    {HEAD "vector_byte 16\n",
     "line 3, column 1: a machine has no key 'vector_byte', did you mean 'vector_bytes'?"},
    {HEAD "colour red\n", "line 3, column 1: a machine has no key 'colour'"},
    {HEAD BODY "l1 1\n", "line 8, column 1: l1 is given twice"},
    {HEAD "vector_bytes\n",
     "line 3, column 13: expected a whole number, found the end of the line"},
    {HEAD "vector_bytes 24\n", "line 3, column 14: vector_bytes 24 is not a power of two"},
    {HEAD "vector_bytes 128\n", "line 3, column 14: vector_bytes is out of its range, 16 to 64"},
    {HEAD "vector_registers 0\n",
     "line 3, column 18: vector_registers is out of its range, 1 to 256"},
    {HEAD "l1 1.5 KiB\n", "line 3, column 4: expected a whole number, found '1.5'"},
    {HEAD "l1 1 KB\n",
     "line 3, column 6: expected KiB, MiB, GiB or the end of the line, found 'KB'"},
    {HEAD "l1 1048577 GiB\n", "line 3, column 4: l1 is out of its range, 1 to 1125899906842624"},
    {HEAD "l1 9223372036854775807 GiB\n",
     "line 3, column 4: l1 is out of its range, 1 to 1125899906842624"},
    {HEAD "cores 2 KiB\n",
     "line 3, column 9: expected the end of the line after a value, found 'KiB'"},
    {HEAD "fma 1\n", "line 3, column 5: expected yes or no, found '1'"},
    {HEAD "bf16 fma\n", "line 3, column 6: expected none, or some of convert, dot, found 'fma'"},
    {HEAD "bf16 dot,none\n", "line 3, column 10: expected another of convert, dot, found 'none'"},
    {HEAD "target\n", "line 3, column 7: expected target, found the end of the line"},
    {HEAD "target a;b\n",
     "line 3, column 8: target 'a;b' is not a word of at most 39 letters, "
     "digits and . _ + -"},
    {HEAD "target 1234567890123456789012345678901234567890\n",
     "line 3, column 8: target '1234567890123456789012345678901234567890' is not a word of at most "
     "39 letters, digits and . _ + -"},
};

static void rejects(void **state) {
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    struct machine m = {.cores = 7};
    CHECK_INT(machine_parse(&ctx, bad[i].text, strlen(bad[i].text), &m), CANVAS_BAD_INPUT,
              bad[i].text);
    CHECK_TEXT(ctx.message, bad[i].message, bad[i].text);
    CHECK_INT(m.cores, 7, "nothing is written");
  }
}

// ---- machines that there are --------------------------------------------------------------------

static struct machine read_example(const char *name) {
  char path[512], text[4096];
  struct machine m;
  snprintf(path, sizeof path, "%s/examples/machines/%s.txt", CANVAS_SOURCE, name);
  FILE *file = fopen(path, "rb");
  if (!file) fail_msg("%s is missing", path);
  size_t length = fread(text, 1, sizeof text, file);
  fclose(file);
  CHECK_INT(machine_parse(&ctx, text, length, &m), CANVAS_OK, ctx.message);
  return m;
}

static void examples_are_the_models(void **state) {
  for (int i = 0; i < MACHINES; i++) {
    struct machine m = read_example(machine_model(i)->name);
    char *file = printed(&m), *model = printed(machine_model(i));
    CHECK_TEXT(file, model, m.name);
    free(file);
    free(model);
  }
}

static void this_one_parses(void **state) {
  struct machine here = machine_here(), again;
  char *text = printed(&here);
  CHECK_INT(machine_parse(&ctx, text, strlen(text), &again), CANVAS_OK, ctx.message);
  assert_string_equal(here.name, "here");
  assert_string_equal(here.target, "native");
  assert_true(here.vector_bytes == 16 || here.vector_bytes == 32 || here.vector_bytes == 64);
  assert_true(here.registers >= 16 && here.cores >= 1 && here.l1 <= here.l2);
#if defined(__x86_64__)
  __builtin_cpu_init();
  assert_int_equal(here.vector_bytes == 64, __builtin_cpu_supports("avx512f") != 0);
  assert_int_equal(here.fma, __builtin_cpu_supports("fma") != 0);
#endif
  free(text);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(reads_and_prints), cmocka_unit_test(rejects),
                                     cmocka_unit_test(examples_are_the_models),
                                     cmocka_unit_test(this_one_parses)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
