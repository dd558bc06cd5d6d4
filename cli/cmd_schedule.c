/* canvas schedule: check, print, explain or draw the schedule of a program. */
#include <stdio.h>
#include <string.h>

#include "command.h"

/* ---- the actions --------------------------------------------------------------------------- */

static int counted(int count, const char *one, const char *many) {
  return printf("%d %s", count, count == 1 ? one : many);
}

static canvas_status check(canvas_context *ctx, const canvas_bound *bound) {
  (void)ctx;
  canvas_bound_facts facts = canvas_bound_describe(bound);
  char *holes = canvas_bound_holes(bound);
  warnings_print(bound, stdout);
  printf("ok: ");
  counted(facts.stages, "stage, ", "stages, ");
  counted(facts.loops, "loop", "loops");
  if (facts.holes) printf(", holes: %s", holes);
  if (facts.following) printf(" (%d more would follow)", facts.following);
  printf("\n");
  canvas_string_free(holes);
  return CANVAS_OK;
}

static canvas_status explain(canvas_context *ctx, const canvas_bound *bound) {
  char *text;
  canvas_status status = canvas_bound_explain(ctx, bound, &text);
  if (status == CANVAS_OK) put_text(text);
  return status;
}

static canvas_status dot(canvas_context *ctx, const canvas_bound *bound) {
  (void)ctx;
  put_text(canvas_bound_dot(bound));
  return CANVAS_OK;
}

static const struct action {
  const char *name;
  canvas_status (*run)(canvas_context *ctx,
                       const canvas_bound *bound); /* NULL: print it, unbound */
} actions[] = {{"check", check}, {"print", NULL}, {"explain", explain}, {"dot", dot}};
enum { ACTIONS = sizeof actions / sizeof *actions };

static const struct action *find_action(const char *name) {
  const char *names[ACTIONS];
  for (int i = 0; i < ACTIONS; i++) {
    if (!strcmp(actions[i].name, name)) return &actions[i];
    names[i] = actions[i].name;
  }
  const char *near = nearest(name, names, ACTIONS);
  if (near)
    report_error("'schedule' has no action '%.60s', did you mean '%s'?", name, near);
  else
    report_error("'schedule' has no action '%.60s', it has check, print, explain and dot", name);
  return NULL;
}

static int print(struct arguments *a, const canvas_program *program,
                 const canvas_machine *machine) {
  canvas_schedule *schedule = schedule_read(a, a->operand[2], program, machine);
  if (!schedule) return EXIT_BAD;
  put_text(canvas_schedule_print(schedule));
  canvas_schedule_free(schedule);
  return EXIT_OK;
}

static int act(struct arguments *a, const struct action *action, const canvas_program *program,
               const canvas_machine *machine) {
  const char *file = a->operand[2];
  struct bound_item item;
  if (!action->run) return print(a, program, machine);
  if (!bound_read(a, file, program, machine, &item)) return EXIT_BAD;
  canvas_status status = action->run(a->ctx, item.bound);
  bound_drop(&item);
  return status == CANVAS_OK ? EXIT_OK : report_status(a, text_name(file), status);
}

static int run(struct arguments *a) {
  const struct action *action = find_action(a->operand[0]);
  if (!action) return EXIT_BAD;
  if (!strcmp(a->operand[1], "-") && !strcmp(a->operand[2], "-"))
    return report_error("'schedule' can read only one of PROGRAM and SCHEDULE from standard input");
  canvas_machine *machine = machine_chosen(a);
  canvas_program *program = machine ? program_read(a, a->operand[1]) : NULL;
  int answer = program ? act(a, action, program, machine) : EXIT_BAD;
  canvas_program_free(program);
  canvas_machine_free(machine);
  return answer;
}

const struct command command_schedule = {
    .subcommand = "schedule",
    .operands = "check|print|explain|dot PROGRAM SCHEDULE",
    .least = 3,
    .most = 3,
    .summary = "check, print, explain or draw the schedule of a program",
    .details =
        "SCHEDULE is a file, or the word default: the default schedule of PROGRAM without edits.\n"
        "(canvas run and compile first edit a program, for example to pack its weights. canvas\n"
        "compile PROGRAM -o FILE.c writes the edited program and its schedule above the C.)\n"
        "    check    whether the schedule is legal, with warnings, and which loops are holes\n"
        "    print    the schedule in canonical form\n"
        "    explain  what each loop touches, which cache that fits, and the cost of each stage\n"
        "    dot      loops, stages and splits as a graph for Graphviz\n"
        "See docs/schedule.md for the language.\n",
    .example =
        "canvas sample --targets \"16,8,8\" --groups 4 |\n"
        "  canvas solve - --targets \"16,8,8\" --budget macs=0.5x --at G=4 |\n"
        "  canvas lower - >a.program\n"
        "canvas schedule print a.program default",
    .options = {{"--set", "NUMBERS",
                 "loop extents that replace holes of the schedule, such as iw=14,yo=4"},
                {"--machine", "FILE", "machine that the schedule is for (default: here)"}},
    .run = run,
};
