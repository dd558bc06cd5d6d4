/* Machines: print -> parse -> print is stable, and a program's default schedule is legal on each. */
#include "fuzz.h"

#include <string.h>

void fuzz(canvas_context *ctx, const char *text, size_t size) {
  canvas_machine *machine = NULL, *again = NULL;
  if (!fine(ctx, canvas_machine_parse(ctx, text, size, &machine))) return;
  char *once = canvas_machine_print(machine);
  must(fine(ctx, canvas_machine_parse(ctx, once, strlen(once), &again)),
       "a printed machine parses");
  char *twice = canvas_machine_print(again);
  must(strcmp(once, twice) == 0, "the text of a machine is stable");
  canvas_string_free(once);
  canvas_string_free(twice);
  canvas_machine_free(machine);
  canvas_machine_free(again);
}
