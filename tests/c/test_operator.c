// The operator library: rows that hold together, programs that read back, hostile arguments. What the
// programs compute is compared with torch in tests/python/test_operators.py.
#include "check.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/random.h"
#include "operator_calls.h"

static canvas_context ctx;

enum { TEXT = 512 };

static char *print(const struct program *p) {
  struct buf text = {0};
  program_print(p, &text);
  return buf_take(&text);
}

/* Every word of a row is an argument, every default one of its values. */
static void rows_hold_together(void **state) {
  for (int i = 0; i < operator_count; i++) {
    const struct operator_row *row = &operator_rows[i];
    struct argument values[OPERATOR_ARGUMENTS_COUNT];
    struct row_argument a;
    char needed[TEXT] = "";
    int count = 0;
    for (; operator_argument_at(row, count, &a); count++) {
      CHECK((int)a.argument >= 0, row->arguments);
      if (!a.otherwise)
        sprintf(needed + strlen(needed), " %s=%s", argument_rows[a.argument].name,
                argument_rows[a.argument].kind == KIND_WORD ? "A" : "1");
    }
    CHECK(count > 1 && *needed, row->name);
    CHECK_INT(operator_read(&ctx, row, needed, strlen(needed), values), CANVAS_OK, ctx.message);
    for (int k = 0; operator_argument_at(row, k, &a); k++)
      CHECK(values[a.argument].count > 0, argument_rows[a.argument].name);
  }
}

static void programs_read_back(void **state) {
  CHECK_INT(OPERATOR_CALLS, operator_count, "a call of each operator");
  for (int i = 0; i < OPERATOR_CALLS; i++) {
    struct program *p, *again;
    CHECK_INT(operator_called(&ctx, operator_calls[i], &p), CANVAS_OK, ctx.message);
    CHECK(strncmp(operator_calls[i], p->name, strlen(p->name)) == 0, operator_calls[i]);
    char *text = print(p);
    CHECK_INT(program_parse(&ctx, text, strlen(text), &again), CANVAS_OK, ctx.message);
    char *printed = print(again);
    CHECK_TEXT(printed, text, operator_calls[i]);
    free(text);
    free(printed);
    program_free(p);
    program_free(again);
  }
}

/* One word of a call gets another value: mostly nonsense, sometimes a size near the limits. */
static void spoil(struct random *r, const char *line, char out[TEXT]) {
  static const char *const values[] = {
      "=0",        "=1",     "=2",    "=3x5",     "=16777216",
      "=16777217", "=-1",    "=7x",   "=1x2x3x4", "=16777213",
      "=f64",      "=",      "",      "=,",       "=16777216x16777216",
      "=bf16",     "=65536", "=12345"};
  int words = 0, word = 0;
  for (const char *c = line; *c; c++) words += *c == ' ';
  int chosen = 1 + (int)random_below(r, (uint32_t)words);
  const char *value = values[random_below(r, sizeof values / sizeof *values)];
  char *end = out;
  for (const char *c = line; *c; c++) {
    word += *c == ' ';
    if (word == chosen && *c == '=') {
      end += sprintf(end, "%s", value);
      c += strcspn(c, " ");
      if (!*c) break;
      word++;
    }
    *end++ = *c;
  }
  *end = '\0';
}

/* A program that verifies, or one message; under sanitizers nothing overflows on the way. */
static void hostile_arguments(void **state) {
  struct random r;
  char text[TEXT], twice[TEXT];
  int good = 0, bad = 0;
  for (uint64_t i = 0; i < 20000; i++) {
    struct program *p = NULL;
    random_open(&r, 5, RANDOM_TEST, i);
    spoil(&r, operator_calls[i % OPERATOR_CALLS], text);
    if (i % 3 == 0) spoil(&r, text, twice), strcpy(text, twice);
    ctx.message[0] = '\0';
    if (operator_called(&ctx, text, &p) == CANVAS_OK) {
      good++;
      CHECK_INT(program_verify(&ctx, p), CANVAS_OK, text);
      program_free(p);
    } else {
      bad++;
      CHECK(ctx.message[0] && !strchr(ctx.message, '\n'), text);
    }
  }
  CHECK(good > 2000 && bad > 2000, "both happen");
}

static void names_and_bytes(void **state) {
  struct program *p;
  CHECK_INT(operator_program(&ctx, "gemm", "m=1 \0k=1", 8, &p), CANVAS_BAD_INPUT, "a NUL");
  CHECK_INT(operator_program(&ctx, "gemm", "m=1 k=1\nn=1 # a comment", 22, &p), CANVAS_OK, "lines");
  program_free(p);
  CHECK_INT(operator_program(&ctx, "", "", 0, &p), CANVAS_BAD_INPUT, "no name");
  CHECK_INT(operator_program(&ctx, "gem\xc3\xbc", "", 0, &p), CANVAS_BAD_INPUT, "not ASCII");
  CHECK_TEXT(ctx.message, "no operator has such a name, 'canvas operator' lists them", "not ASCII");
}

CHECK_MAIN(cmocka_unit_test(rows_hold_together), cmocka_unit_test(programs_read_back),
           cmocka_unit_test(hostile_arguments), cmocka_unit_test(names_and_bytes))
