/* Programs and schedules of the command line. FILE is a program, a network, or a kernel or pack, which --at,
 * --target and -N lower to programs. --schedule and --set give the schedule, --machine the machine. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"

/* False after an error message: it is for kernels. */
static bool no_sizes_given(struct arguments *a, const struct text *text, const char *what) {
  static const char *const others[] = {"--at", "--target", "-N"};
  for (int i = 0; i < 3; i++)
    if (option_given(a, others[i])) {
      report_error("%s: %s is for kernels, a %s has fixed sizes", text->name, others[i], what);
      return false;
    }
  return true;
}

static int visit_program(struct arguments *a, const struct text *text, program_visit *visit,
                         void *data) {
  struct program_item item = {.calls = 1};
  if (!no_sizes_given(a, text, "program")) return EXIT_BAD;
  item.program = text_program(a, text);
  if (!item.program) return EXIT_BAD;
  char *name = canvas_program_function(item.program);
  item.name = name;
  int answer = visit(a, &item, data);
  canvas_string_free(name);
  canvas_program_free(item.program);
  return answer;
}

static int visit_call(struct arguments *a, const canvas_network *n, int index, program_visit *visit,
                      void *data) {
  struct program_item item = {0};
  int answer = EXIT_OK;
  item.program = canvas_network_program(n, index, &item.calls);
  char *name = canvas_program_function(item.program);
  item.name = name;
  if (item.calls) answer = visit(a, &item, data);
  canvas_string_free(name);
  canvas_program_free(item.program);
  return answer;
}

/* The programs that a run of the network calls, as its text has them. That of canvas.compile is after all passes; a
 * second time these may choose other layouts, and what is tuned would not be what is called. */
static int visit_network(struct arguments *a, const struct text *text, program_visit *visit,
                         void *data) {
  canvas_network *n = NULL;
  if (!no_sizes_given(a, text, "network")) return EXIT_BAD;
  canvas_status status = canvas_network_parse(a->ctx, text->bytes, text->length, &n);
  int answer = status == CANVAS_OK ? EXIT_OK : EXIT_BAD;
  if (status != CANVAS_OK) report_status(a, text->name, status);
  for (int i = 0; n && answer != EXIT_BAD && i < canvas_network_programs(n); i++) {
    int one = visit_call(a, n, i, visit, data);
    if (one != EXIT_OK) answer = one;
  }
  canvas_network_free(n);
  return answer;
}

struct visit {
  program_visit *visit;
  void *data;
  int64_t batch;
};

/* "involution", or "involution layer1.0" for a pack's target. */
static char *item_name(const canvas_pack *pack, bool bare, int target) {
  const char *kernel = canvas_kernel_name(canvas_pack_kernel_of(pack, target));
  const char *layer = bare ? "" : canvas_pack_target(pack, target);
  size_t size = strlen(kernel) + strlen(layer) + 2;
  char *name = malloc(size);
  if (name) snprintf(name, size, "%s%s%s", kernel, *layer ? " " : "", layer);
  return name;
}

static int visit_target(struct arguments *a, const canvas_pack *pack, bool bare, int target,
                        const struct visit *v) {
  struct program_item item = {.calls = 1};
  canvas_status status = canvas_pack_lower(a->ctx, pack, target, v->batch, &item.program);
  if (status != CANVAS_OK) return report_kernel(a, canvas_pack_kernel_of(pack, target), status);
  char *name = item_name(pack, bare, target), *source = canvas_pack_print(pack);
  item.name = name ? name : "";
  item.source = source;
  int answer = v->visit(a, &item, v->data);
  canvas_program_free(item.program);
  canvas_string_free(source);
  free(name);
  return answer;
}

static int visit_pack(struct arguments *a, canvas_pack *pack, void *data) {
  canvas_pack *made;
  const canvas_pack *sized = pack_sized(a, pack, &made);
  int first, end, answer = EXIT_OK;
  if (!sized) return EXIT_BAD;
  if (!targets_chosen(a, sized, &first, &end)) answer = EXIT_BAD;
  for (; (answer == EXIT_OK || answer == EXIT_NONE) && first < end; first++) {
    int one = visit_target(a, sized, made != NULL, first, data);
    if (one != EXIT_OK) answer = one;
  }
  canvas_pack_free(made);
  return answer;
}

int programs_each(struct arguments *a, const char *file, program_visit *visit, void *data) {
  struct visit v = {.visit = visit, .data = data};
  struct text text;
  if (!option_whole(a, "-N", 1, 1, 65536, &v.batch)) return EXIT_BAD;
  if (!text_read(file, &text)) return EXIT_BAD;
  int answer = text_is_program(&text)   ? visit_program(a, &text, visit, data)
               : text_is_network(&text) ? visit_network(a, &text, visit, data)
                                        : text_each(a, &text, visit_pack, &v);
  text_free(&text);
  return answer;
}

/* ---- machines -------------------------------------------------------------------------------- */

canvas_machine *machine_read(struct arguments *a, const char *file) {
  canvas_machine *machine = NULL;
  struct text text;
  if (!strcmp(file, "here")) return canvas_machine_here();
  if (!text_read(file, &text)) return NULL;
  canvas_status status = canvas_machine_parse(a->ctx, text.bytes, text.length, &machine);
  if (status != CANVAS_OK) report_status(a, text.name, status);
  text_free(&text);
  return machine;
}

canvas_machine *machine_chosen(struct arguments *a) {
  return machine_read(a, option_text(a, "--machine", "here"));
}

/* ---- schedules ------------------------------------------------------------------------------- */

static bool read_schedule(struct arguments *a, const char *file, const canvas_program *program,
                          const canvas_machine *machine, canvas_schedule **out) {
  struct text text = {.name = file};
  canvas_status status;
  if (!strcmp(file, "default")) {
    status = canvas_schedule_default(a->ctx, program, machine, out);
  } else {
    if (!text_read(file, &text)) return false;
    status = canvas_schedule_parse(a->ctx, text.bytes, text.length, out);
  }
  if (status != CANVAS_OK) report_status(a, text.name, status);
  text_free(&text);
  return status == CANVAS_OK;
}

canvas_schedule *schedule_read(struct arguments *a, const char *file, const canvas_program *program,
                               const canvas_machine *machine) {
  const char *numbers = option_text(a, "--set", NULL);
  canvas_schedule *schedule = NULL;
  if (!read_schedule(a, file, program, machine, &schedule)) return NULL;
  canvas_status status = numbers ? canvas_schedule_set(a->ctx, schedule, numbers) : CANVAS_OK;
  if (status == CANVAS_OK) return schedule;
  report_flag(a, "--set", status);
  canvas_schedule_free(schedule);
  return NULL;
}

void warnings_print(const canvas_bound *bound, FILE *to) {
  char *warnings = canvas_bound_warnings(bound);
  fputs(warnings, to);
  canvas_string_free(warnings);
}

void bound_drop(struct bound_item *item) {
  canvas_bound_free(item->bound);
  canvas_schedule_free(item->schedule);
  *item = (struct bound_item){0};
}

bool bound_read(struct arguments *a, const char *file, const canvas_program *program,
                const canvas_machine *machine, struct bound_item *out) {
  *out = (struct bound_item){.schedule = schedule_read(a, file, program, machine)};
  if (!out->schedule) return false;
  canvas_status status = canvas_bound_new(a->ctx, program, out->schedule, machine, &out->bound);
  if (status == CANVAS_OK) return true;
  report_status(a, text_name(file), status);
  bound_drop(out);
  return false;
}

/* The default one, of the program after the edits that come before it. */
static bool bound_default(struct arguments *a, const canvas_program *program,
                          const canvas_machine *machine, struct bound_item *out) {
  *out = (struct bound_item){0};
  canvas_status status = canvas_bound_new(a->ctx, program, NULL, machine, &out->bound);
  if (status != CANVAS_OK) report_status(a, "default", status);
  return status == CANVAS_OK;
}

static bool bound_named(struct arguments *a, const canvas_program *program,
                        const canvas_machine *machine, struct bound_item *out) {
  const char *file = option_text(a, "--schedule", "default");
  bool edited = !strcmp(file, "default") && !option_given(a, "--set");
  if (edited ? !bound_default(a, program, machine, out)
             : !bound_read(a, file, program, machine, out))
    return false;
  if (!edited) warnings_print(out->bound, stderr); /* the default one is not the user's to change */
  if (!canvas_bound_describe(out->bound).holes) return true;
  char *holes = canvas_bound_holes(out->bound);
  report_error("%s: it has holes, give their extents with --set: %s", text_name(file), holes);
  canvas_string_free(holes);
  bound_drop(out);
  return false;
}

bool bound_chosen(struct arguments *a, const canvas_program *given, const canvas_program *program,
                  const canvas_machine *machine, const struct tuned *tuned,
                  struct bound_item *out) {
  *out = (struct bound_item){.bound = tuned_best(a, tuned, given)};
  return out->bound || bound_named(a, program, machine, out);
}
