/* canvas schedule: the textual schedule of a program. */
#include <stdio.h>
#include <string.h>

#include "command.h"

struct scheduled {
  canvas_program *program;
  canvas_schedule *schedule;
};

/* ---- the actions --------------------------------------------------------------------------- */

static int counted(int count, const char *one, const char *many) {
  return printf("%d %s", count, count == 1 ? one : many);
}

static canvas_status check(canvas_context *ctx, const struct scheduled *s) {
  canvas_schedule_facts facts;
  char *holes;
  canvas_status status = canvas_schedule_check(ctx, s->program, s->schedule, &facts, &holes);
  if (status != CANVAS_OK) return status;
  schedule_warn(ctx, s->program, s->schedule, stdout);
  printf("ok: ");
  counted(facts.stages, "stage, ", "stages, ");
  counted(facts.loops, "loop", "loops");
  if (facts.holes) printf(", holes: %s", holes);
  if (facts.following) printf(" (%d more would follow)", facts.following);
  printf("\n");
  canvas_string_free(holes);
  return CANVAS_OK;
}

static canvas_status print(canvas_context *ctx, const struct scheduled *s) {
  (void)ctx;
  put_text(canvas_schedule_print(s->schedule));
  return CANVAS_OK;
}

static canvas_status explain(canvas_context *ctx, const struct scheduled *s) {
  char *text;
  canvas_status status = canvas_schedule_explain(ctx, s->program, s->schedule, &text);
  if (status == CANVAS_OK) put_text(text);
  return status;
}

static canvas_status dot(canvas_context *ctx, const struct scheduled *s) {
  char *text;
  canvas_status status = canvas_schedule_dot(ctx, s->program, s->schedule, &text);
  if (status == CANVAS_OK) put_text(text);
  return status;
}

static const struct action {
  const char *name;
  canvas_status (*run)(canvas_context *ctx, const struct scheduled *s);
} actions[] = {{"check", check}, {"print", print}, {"explain", explain}, {"dot", dot}};
enum { ACTIONS = sizeof actions / sizeof *actions };

static const struct action *find_action(const char *name) {
  const char *names[ACTIONS];
  for (int i = 0; i < ACTIONS; i++) {
    if (!strcmp(actions[i].name, name)) return &actions[i];
    names[i] = actions[i].name;
  }
  const char *near = nearest(name, names, ACTIONS);
  if (near)
    complain("'schedule' cannot '%.60s', did you mean '%s'?", name, near);
  else
    complain("'schedule' cannot '%.60s', it can check, print, explain and dot", name);
  return NULL;
}

static int act(struct arguments *a, const struct action *action, struct scheduled *s) {
  const char *file = a->operand[2];
  s->program = program_read(a, a->operand[1]);
  if (s->program) s->schedule = schedule_read(a, file, s->program);
  if (!s->schedule) return EXIT_BAD;
  canvas_status status = action->run(a->ctx, s);
  return status == CANVAS_OK ? EXIT_OK : complain_status(a, text_name(file), status);
}

static int run(struct arguments *a) {
  struct scheduled s = {.schedule = NULL};
  const struct action *action = find_action(a->operand[0]);
  if (!action) return EXIT_BAD;
  if (!strcmp(a->operand[1], "-") && !strcmp(a->operand[2], "-"))
    return complain("'schedule' can read only one of PROGRAM and SCHEDULE from standard input");
  int answer = act(a, action, &s);
  canvas_program_free(s.program);
  canvas_schedule_free(s.schedule);
  return answer;
}

const struct command command_schedule = {
    .subcommand = "schedule",
    .operands = "check|print|explain|dot PROGRAM SCHEDULE",
    .least = 3,
    .most = 3,
    .summary = "check, print, explain and draw how the loops of a program run",
    .details =
        "SCHEDULE is a file, or the word default: the one that a program has without a search.\n"
        "check says whether it is legal for the program, with warnings, and which loops need a "
        "number;\n"
        "print writes it in its canonical form; explain tells what each loop touches and where "
        "that\n"
        "fits, and what each stage costs; dot draws loops, stages and splits for Graphviz.\n"
        "docs/schedule.md is the language.\n",
    .example =
        "canvas sample --targets \"16,8,8\" --groups 4 |\n"
        "    canvas solve - --targets \"16,8,8\" --budget macs=0.5x --at G=4 |\n"
        "    canvas lower - >a.program\n"
        "canvas schedule print a.program default",
    .options = {{"--set", "NUMBERS", "numbers for loops: iw=14,yo=4"}},
    .run = run,
};
