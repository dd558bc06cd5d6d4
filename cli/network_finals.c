/* The last part of canvas tune for a network: time the schedules of the log against the default ones inside the
 * network.
 *
 * A program that is run again and again finds its data in the caches; as a call of a network it finds what the call
 * before has left there, and its weights seldom. So a schedule that won its trials may lose there. Both
 * networks are compiled and run interleaved, call by call; where the default schedule is the faster one the log gets a
 * record of it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "network_tensors.h"

enum { DEFAULT, TUNED, SIDES, LEAST_ROUNDS = 5, MOST_ROUNDS = 31 };

#define SHARE 0.1 /* of the time of the search may be for all rounds, ... */
#define LONG  3.0 /* seconds, if there is no time limit */

/* A program of the network: the seconds of all of its calls, in each round. */
struct finalist {
  const char *name;
  int calls;
  bool tuned; /* its schedule is of the log, and not the default one */
  double seconds[SIDES][MOST_ROUNDS], median[SIDES];
  bool refused; /* in the network the default is faster */
};

struct network_finals {
  struct arguments *a;
  const struct tuning *how;
  canvas_log_place place;
  canvas_log *log;
  canvas_network *network;
  canvas_network_code *code[SIDES];
  struct tensors inputs, weights, outputs;
  struct finalist *finalists;
  int count, rounds;
  double rest[SIDES][MOST_ROUNDS]; /* of copies */
  double median[SIDES], kept; /* of the whole network; kept: by the faster one of each program */
};

/* ---- both networks -------------------------------------------------------------------------- */

static canvas_status compile_both(struct network_finals *f) {
  canvas_network_options options = {.machine = f->how->machine, .threads = f->how->threads};
  for (int side = 0; side < SIDES; side++) {
    options.log = side == TUNED ? f->log : NULL;
    canvas_status status = canvas_network_compile(f->a->ctx, f->network, &options, &f->code[side]);
    if (status != CANVAS_OK) return status;
  }
  return CANVAS_OK;
}

static bool differ(const struct network_finals *f) {
  return strcmp(canvas_network_code_describe(f->code[DEFAULT]).path,
                canvas_network_code_describe(f->code[TUNED]).path) != 0;
}

static int calls_of(const struct network_finals *f, int side) {
  return canvas_network_code_describe(f->code[side]).calls;
}

/* Whether the default schedule has won its trials. */
static bool has_default(const struct network_finals *f, int index) {
  canvas_bound *bound;
  int best;
  bool same = false;
  canvas_program *program = canvas_network_program(f->network, index, NULL);
  bool known = canvas_log_best(f->a->ctx, f->log, program, &f->place, &best) == CANVAS_OK;
  if (known && canvas_bound_new(f->a->ctx, program, NULL, f->how->machine, &bound) == CANVAS_OK) {
    char *schedule = canvas_schedule_print(canvas_bound_schedule(bound));
    char *edits = canvas_bound_edits(bound);
    const canvas_record r = canvas_log_record(f->log, best);
    same = !strcmp(r.schedule, schedule) && !strcmp(r.edits, edits);
    canvas_string_free(schedule);
    canvas_string_free(edits);
    canvas_bound_free(bound);
  }
  canvas_program_free(program);
  return same;
}

static void find_finalists(struct network_finals *f) {
  for (int i = 0; i < calls_of(f, TUNED); i++) {
    canvas_network_call call = canvas_network_code_call(f->code[TUNED], i);
    if (call.index < 0) continue;
    struct finalist *one = &f->finalists[call.index];
    one->name = call.program;
    one->calls++;
    one->tuned |= call.tuned;
  }
  for (int i = 0; i < f->count; i++)
    if (f->finalists[i].tuned) f->finalists[i].tuned = !has_default(f, i);
}

static bool make_tensors(struct network_finals *f) {
  f->count = canvas_network_programs(f->network);
  f->finalists = calloc((size_t)f->count + 1, sizeof *f->finalists);
  return f->finalists && tensors_new(f->network, CANVAS_INPUT, false, &f->inputs) &&
         tensors_new(f->network, CANVAS_WEIGHT, false, &f->weights) &&
         tensors_new(f->network, CANVAS_OUTPUT, false, &f->outputs) &&
         tensors_fill(f->network, CANVAS_INPUT, 1, &f->inputs) &&
         tensors_fill(f->network, CANVAS_WEIGHT, 1, &f->weights);
}

/* ---- interleaved runs ---- */

/* The first of two runs brings back what the other network has put out of the caches. */
static canvas_status turn(struct network_finals *f, int side, int round) {
  const void *const *inputs = (const void *const *)f->inputs.memory;
  canvas_status status =
      canvas_network_code_run(f->a->ctx, f->code[side], inputs, f->outputs.memory);
  for (int i = 0; status == CANVAS_OK && i < calls_of(f, side); i++) {
    int index = canvas_network_code_call(f->code[side], i).index;
    double *sum = index < 0 ? &f->rest[side][round] : &f->finalists[index].seconds[side][round];
    double began = clock_of_calls(f->how->threads);
    status = canvas_network_code_step(f->a->ctx, f->code[side], i, inputs, f->outputs.memory);
    *sum += clock_of_calls(f->how->threads) - began;
  }
  return status;
}

static canvas_status take_turns(struct network_finals *f) {
  double began = wall_clock(), limit = f->how->seconds > 0 ? SHARE * f->how->seconds : LONG;
  for (; f->rounds < MOST_ROUNDS && !f->how->stopped(); f->rounds++) {
    if (f->rounds >= LEAST_ROUNDS && wall_clock() - began > limit) break;
    for (int i = 0; i < SIDES; i++) {
      canvas_status status = turn(f, (i + f->rounds) % SIDES, f->rounds);
      if (status != CANVAS_OK) return status;
    }
  }
  return CANVAS_OK;
}

/* ---- judged --------------------------------------------------------------------------------- */

static double quantile(const double *of, int count, int quarter) {
  double sorted[MOST_ROUNDS];
  memcpy(sorted, of, (size_t)count * sizeof *of);
  sort_numbers(sorted, count);
  return sorted[(count - 1) * quarter / 4];
}

static double median(const double *of, int count) {
  return quantile(of, count, 2);
}

static void judge(struct network_finals *f) {
  double whole[SIDES][MOST_ROUNDS], ratio[MOST_ROUNDS];
  memcpy(whole, f->rest, sizeof whole);
  for (int i = 0; i < f->count; i++) {
    struct finalist *one = &f->finalists[i];
    for (int round = 0; round < f->rounds; round++) {
      ratio[round] = one->seconds[TUNED][round] / one->seconds[DEFAULT][round];
      for (int side = 0; side < SIDES; side++) whole[side][round] += one->seconds[side][round];
    }
    one->refused = one->tuned && median(ratio, f->rounds) > 1;
    for (int side = 0; side < SIDES; side++)
      one->median[side] = median(one->seconds[side], f->rounds);
    f->kept += one->median[one->refused ? DEFAULT : TUNED];
  }
  f->kept += median(f->rest[TUNED], f->rounds);
  for (int side = 0; side < SIDES; side++) f->median[side] = median(whole[side], f->rounds);
}

static canvas_status log_default(const struct network_finals *f, int index) {
  const struct finalist *one = &f->finalists[index];
  const double *seconds = one->seconds[DEFAULT];
  const canvas_verdict time = {.median = one->median[DEFAULT] / one->calls,
                               .lower = quantile(seconds, f->rounds, 1) / one->calls,
                               .upper = quantile(seconds, f->rounds, 3) / one->calls,
                               .repeats = f->rounds};
  canvas_bound *bound;
  canvas_program *program = canvas_network_program(f->network, index, NULL);
  canvas_status status = canvas_bound_new(f->a->ctx, program, NULL, f->how->machine, &bound);
  if (status == CANVAS_OK) {
    status = canvas_log_add_network(f->a->ctx, f->how->log, bound, &f->place, &time);
    canvas_bound_free(bound);
  }
  canvas_program_free(program);
  return status;
}

static canvas_status log_all(const struct network_finals *f) {
  canvas_status status = CANVAS_OK;
  for (int i = 0; status == CANVAS_OK && i < f->count; i++)
    if (f->finalists[i].refused) status = log_default(f, i);
  return status;
}

/* ---- reports ---- */

static void print_time(double seconds) {
  const struct time_unit *unit = time_unit_of(seconds);
  printf("%s %s", short_number(seconds / unit->seconds).text, unit->name);
}

static void print_text(const struct network_finals *f) {
  int tuned = 0, refused = 0;
  printf("%s: ", canvas_network_code_describe(f->code[TUNED]).function);
  print_time(f->median[DEFAULT]);
  printf(" as a network with default schedules, ");
  print_time(f->median[TUNED]);
  printf(" with tuned ones");
  for (int i = 0; i < f->count; i++) {
    tuned += f->finalists[i].tuned;
    refused += f->finalists[i].refused;
  }
  if (refused) {
    printf(", ");
    print_time(f->kept);
    printf(" with the faster one of each program: %d of %d keep the default", refused, tuned);
  }
  printf(" (medians of %d runs, interleaved)\n", f->rounds);
}

static void print_json(const struct network_finals *f) {
  const char *before = "";
  printf("{\"network\": ");
  put_json_string(canvas_network_code_describe(f->code[TUNED]).function);
  printf(", \"default\": %.6g, \"tuned\": %.6g, \"kept\": %.6g, \"rounds\": %d, \"programs\": [",
         f->median[DEFAULT], f->median[TUNED], f->kept, f->rounds);
  for (int i = 0; i < f->count; i++) {
    const struct finalist *one = &f->finalists[i];
    if (!one->tuned) continue;
    printf("%s{\"name\": ", before);
    put_json_string(one->name);
    printf(", \"calls\": %d, \"default\": %.6g, \"tuned\": %.6g, \"kept\": \"%s\"}", one->calls,
           one->median[DEFAULT], one->median[TUNED], one->refused ? "default" : "tuned");
    before = ", ";
  }
  printf("]}\n");
}

/* ---- the whole ------------------------------------------------------------------------------ */

static canvas_status compare(struct network_finals *f) {
  canvas_status status = compile_both(f);
  if (status != CANVAS_OK || !differ(f)) return status;
  if (!make_tensors(f)) {
    report_note("%s: out of memory for its tensors, the schedules were not timed in the network",
                text_name(f->a->operand[0]));
    return CANVAS_OK;
  }
  find_finalists(f);
  for (int side = 0; status == CANVAS_OK && side < SIDES; side++)
    status =
        canvas_network_code_load(f->a->ctx, f->code[side], (const void *const *)f->weights.memory);
  if (status == CANVAS_OK) status = take_turns(f);
  if (status != CANVAS_OK || f->how->stopped()) return status;
  judge(f);
  status = log_all(f);
  if (status != CANVAS_OK) return status;
  if (option_given(f->a, "--json"))
    print_json(f);
  else
    print_text(f);
  fflush(stdout);
  return CANVAS_OK;
}

static int judge_network(struct network_finals *f) {
  char *compiler = canvas_compiler_name(f->a->ctx);
  f->place = (canvas_log_place){.machine = f->how->machine,
                                .compiler = compiler,
                                .threads = f->how->threads,
                                .nameless = true};
  canvas_status status = compiler ? CANVAS_OK : CANVAS_IO;
  if (status == CANVAS_OK) status = canvas_log_read(f->a->ctx, f->how->log, &f->log);
  if (status == CANVAS_OK && !f->how->stopped()) status = compare(f);
  bool stopped = f->how->stopped();
  if (status != CANVAS_OK && !stopped) report_status(f->a, text_name(f->a->operand[0]), status);
  for (int side = 0; side < SIDES; side++) canvas_network_code_free(f->code[side]);
  canvas_log_free(f->log);
  canvas_string_free(compiler);
  tensors_free(&f->inputs);
  tensors_free(&f->weights);
  tensors_free(&f->outputs);
  free(f->finalists);
  if (stopped) report_note("stopped before the timing of the network was complete");
  return stopped ? EXIT_INTERRUPTED : status == CANVAS_OK ? EXIT_OK : EXIT_BAD;
}

int network_finals(struct arguments *a, const struct tuning *how) {
  struct text text;
  int answer = EXIT_OK;
  if (!strcmp(a->operand[0], "-")) return EXIT_OK; /* it was read, and is gone */
  if (!text_read(a->operand[0], &text)) return EXIT_BAD;
  struct network_finals *f = calloc(1, sizeof *f);
  if (f && text_is_network(&text)) {
    *f = (struct network_finals){.a = a, .how = how};
    canvas_status status = canvas_network_parse(a->ctx, text.bytes, text.length, &f->network);
    answer = status == CANVAS_OK ? judge_network(f) : EXIT_BAD;
    if (status == CANVAS_OK) canvas_network_free(f->network);
  }
  free(f);
  text_free(&text);
  return answer;
}
