// The edits before default schedules keep what programs compute.
#include "autoschedule/default.h"
#include "default_programs.h"
#include "machines.h"
#include "same_values.h"

static canvas_context ctx;

static void edits_keep_values(void **state) {
  int edited = 0;
  CHECK_ROWS (default_programs, row) {
    struct program *p = default_program_of(&ctx, row->program);
    struct program *q = default_program(p, machine_model(row->machine));
    if (q) same_values(&ctx, p, q, row->program, 1999, -1);
    edited += q != NULL;
    program_free(q);
    program_free(p);
  }
  CHECK(edited >= 100, "programs are edited");
}

CHECK_MAIN(cmocka_unit_test(edits_keep_values))
