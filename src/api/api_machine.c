/* Machines: the one that this process runs on, or a text. */
#include <stdlib.h>

#include "api/api_call.h"
#include "api/handle.h"
#include "base/memory.h"

static canvas_machine *keep(const struct machine *machine) {
  struct machine *copy = mem_alloc(sizeof *copy);
  *copy = *machine;
  return (canvas_machine *)copy;
}

API_VALUE(canvas_machine *, canvas_machine_here, (void), (), NULL) {
  struct machine m = machine_here();
  return keep(&m);
}

API_STATUS(canvas_machine_parse,
           (canvas_context * ctx, const char *text, size_t length, canvas_machine **out),
           (ctx, text, length, out)) {
  NEED(out);
  struct machine m;
  TRY(machine_parse(ctx, text, length, &m));
  *out = keep(&m);
  return CANVAS_OK;
}

void canvas_machine_free(canvas_machine *machine) {
  mem_free(machine);
}

API_VALUE(char *, canvas_machine_print, (const canvas_machine *machine), (machine), NULL) {
  if (!machine) return NULL;
  struct buf out = {0};
  machine_print(machine_of(machine), &out);
  return buf_take(&out);
}
