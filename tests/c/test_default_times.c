// Default schedules of many programs: each is legal, the edits before it keep what is computed, and it is predicted
// to be no slower than it was. Better schedules pass as they are. A row of each mechanism shows its text.
#include "default_programs.h"
#include "machines.h"
#include "no_slower.h"
#include "operator/operator.h"
#include "operator_calls.h"
#include "same_values.h"

static canvas_context ctx;

static struct program *program_of(const char *text) {
  struct program *p;
  if (strncmp(text, BEGIN, strlen(BEGIN)) != 0)
    CHECK_INT(operator_called(&ctx, text, &p), CANVAS_OK, ctx.message);
  else
    CHECK_INT(program_parse(&ctx, text, strlen(text), &p), CANVAS_OK, ctx.message);
  return p;
}

static void none_is_slower(void **state) {
  int worse = 0;
  CHECK_ROWS (default_programs, row) {
    struct program *p = program_of(row->program);
    const struct machine *machine = machine_model(row->machine);
    worse += !default_no_slower(&ctx, p, machine, row->program, row->most, row->shows);
    program_free(p);
  }
  CHECK_INT(worse, 0, "schedules that are worse");
}

static void edits_keep_values(void **state) {
  int edited = 0;
  CHECK_ROWS (default_programs, row) {
    struct program *p = program_of(row->program);
    struct program *q = default_program(p, machine_model(row->machine));
    if (q) same_values(&ctx, p, q, row->program, 1999, -1);
    edited += q != NULL;
    program_free(q);
    program_free(p);
  }
  CHECK(edited >= 100, "programs are edited");
}

CHECK_MAIN(cmocka_unit_test(none_is_slower), cmocka_unit_test(edits_keep_values))
