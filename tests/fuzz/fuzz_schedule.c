/* Schedules: both forms, the rules without a program, numbers for loops, the check against a program, and
 * what is made of a legal one. An input is a schedule, or a program, a line `----` and a schedule. */
#include "fuzz.h"

#include <string.h>

#include "schedule/schedule.h"

static const char cut[] = "\n----\n";

/* What is printed parses to the same text, and so does a copy. */
static void check_text(canvas_context *ctx, const canvas_schedule *schedule) {
  canvas_schedule *again = NULL;
  char *once = canvas_schedule_print(schedule);
  must(fine(ctx, canvas_schedule_parse(ctx, once, strlen(once), &again)),
       "a printed schedule parses");
  struct schedule *copy = schedule_copy((const struct schedule *)again);
  canvas_schedule_free(again);
  must(fine(ctx, schedule_verify(ctx, copy)), "a copy is legal");
  char *twice = canvas_schedule_print((const canvas_schedule *)copy);
  must(!strcmp(once, twice), "a schedule's text is stable");
  schedule_free(copy);
  canvas_string_free(once);
  canvas_string_free(twice);
}

static void take_text(canvas_context *ctx, canvas_status status, char *text, const char *what) {
  if (!fine(ctx, status)) return;
  must(text && *text, what);
  canvas_string_free(text);
}

/* What is made of a legal schedule: a table, a picture and, without holes, C. */
static void check_uses(canvas_context *ctx, const canvas_bound *bound, bool holes) {
  char *text = NULL;
  canvas_status status = canvas_bound_explain(ctx, bound, &text);
  take_text(ctx, status, text, "a schedule is explained");
  take_text(ctx, CANVAS_OK, canvas_bound_dot(bound), "a schedule is drawn");
  status = canvas_bound_emit(ctx, bound, NULL, &text);
  must(!holes || status != CANVAS_OK, "a schedule with holes is no code");
  take_text(ctx, status, text, "a schedule becomes code");
}

/* What was printed of a bound program and its schedule is bound again, with the same facts: the program may
 * be what the default schedule's edits made of the one that was given. */
static void check_again(canvas_context *ctx, const canvas_machine *machine,
                        const canvas_bound *bound) {
  canvas_bound_facts facts = canvas_bound_describe(bound), same;
  canvas_program *program = NULL;
  canvas_schedule *again = NULL;
  canvas_bound *second = NULL;
  char *edited = canvas_bound_program_print(bound);
  char *text = canvas_schedule_print(canvas_bound_schedule(bound));
  must(fine(ctx, canvas_program_parse(ctx, edited, strlen(edited), &program)),
       "its program parses again");
  must(fine(ctx, canvas_schedule_parse(ctx, text, strlen(text), &again)), "it parses again");
  must(fine(ctx, canvas_bound_new(ctx, program, again, machine, &second)), "it is legal again");
  same = canvas_bound_describe(second);
  must(!memcmp(&facts, &same, sizeof facts), "it has the same facts");
  canvas_string_free(text);
  canvas_string_free(edited);
  canvas_bound_free(second);
  canvas_schedule_free(again);
  canvas_program_free(program);
}

/* A schedule that the program allows still is what it says after a print. NULL: the default one. */
static void check_for(canvas_context *ctx, const canvas_program *program,
                      const canvas_schedule *schedule) {
  canvas_machine *machine = fuzz_machine(ctx);
  canvas_bound *bound = NULL;
  if (fine(ctx, canvas_bound_new(ctx, program, schedule, machine, &bound))) {
    canvas_bound_facts facts = canvas_bound_describe(bound);
    char *holes = canvas_bound_holes(bound);
    must(!*holes == !facts.holes, "holes have names");
    must(facts.stages > 0 && facts.following >= 0, "a schedule has stages");
    canvas_string_free(holes);
    if (!schedule) check_text(ctx, canvas_bound_schedule(bound));
    check_again(ctx, machine, bound);
    check_uses(ctx, bound, facts.holes);
  }
  canvas_bound_free(bound);
  canvas_machine_free(machine);
}

/* Where the line of the cut is; NULL without one. The text need not end with a NUL. */
static const char *find_cut(const char *text, size_t size) {
  for (size_t i = 0; i + sizeof cut - 1 <= size; i++)
    if (!memcmp(text + i, cut, sizeof cut - 1)) return text + i;
  return NULL;
}

void fuzz(canvas_context *ctx, const char *text, size_t size) {
  canvas_program *program = NULL;
  canvas_schedule *schedule = NULL;
  const char *end = find_cut(text, size), *start = end ? end + sizeof cut - 1 : text;
  if (end && fine(ctx, canvas_program_parse(ctx, text, (size_t)(end - text), &program)))
    check_for(ctx, program, NULL);
  if (fine(ctx, canvas_schedule_parse(ctx, start, size - (size_t)(start - text), &schedule))) {
    check_text(ctx, schedule);
    if (program) check_for(ctx, program, schedule);
    if (fine(ctx, canvas_schedule_set(ctx, schedule, "a=2,b=3"))) check_text(ctx, schedule);
  }
  canvas_schedule_free(schedule);
  canvas_program_free(program);
}
