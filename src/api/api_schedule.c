/* Schedules: text, numbers for their loops, and the default one. */
#include "api/api_call.h"
#include "api/handle.h"

API_STATUS(canvas_schedule_parse,
           (canvas_context * ctx, const char *text, size_t length, canvas_schedule **out),
           (ctx, text, length, out)) {
  NEED(out);
  struct schedule *s;
  TRY(schedule_parse(ctx, text, length, &s));
  *out = (canvas_schedule *)s;
  return CANVAS_OK;
}

void canvas_schedule_free(canvas_schedule *schedule) {
  schedule_free((struct schedule *)schedule);
}

API_VALUE(char *, canvas_schedule_print, (const canvas_schedule *schedule), (schedule), NULL) {
  if (!schedule) return NULL;
  struct buf out = {0};
  schedule_print(schedule_of(schedule), &out);
  return buf_take(&out);
}

API_STATUS(canvas_schedule_set,
           (canvas_context * ctx, canvas_schedule *schedule, const char *numbers),
           (ctx, schedule, numbers)) {
  NEED(schedule);
  NEED(numbers);
  return schedule_set(ctx, (struct schedule *)schedule, numbers);
}

API_STATUS(canvas_schedule_default,
           (canvas_context * ctx, const canvas_program *program, const canvas_machine *machine,
            canvas_schedule **out),
           (ctx, program, machine, out)) {
  NEED(program);
  NEED(machine);
  NEED(out);
  (void)ctx;
  *out = (canvas_schedule *)schedule_default(program_of(program), true, machine_of(machine));
  return CANVAS_OK;
}
