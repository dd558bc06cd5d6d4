// Default schedules of many programs: each is legal, no fallback, and predicted to be no slower than it was. Better
// schedules pass as they are. Some rows show a text: a mechanism, or what would be wrong. default_times.py
// writes longer times where they are meant.
#include "default_programs.h"
#include "machines.h"
#include "no_slower.h"

static canvas_context ctx;

static void none_is_slower(void **state) {
  int worse = 0;
  CHECK_ROWS (default_programs, row) {
    struct program *p = default_program_of(&ctx, row->program);
    const struct machine *machine = machine_model(row->machine);
    bool good = default_no_slower(&ctx, p, machine, row->program, row->most, row->shows);
    if (!good) print_error("row %d\n", (int)(row - default_programs));
    worse += !good;
    program_free(p);
  }
  CHECK_INT(worse, 0, "schedules that are worse");
}

CHECK_MAIN(cmocka_unit_test(none_is_slower))
