/* canvas sample: draw kernels.
 *
 * Indices are tried in order from --start; one that is skipped, that equals an earlier kernel of the
 * stream or that has no solution within --budget is passed over and counted. The number of indices is
 * bounded, so that the stream always ends.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"

enum { TRIES_EACH = 100, TRIES_LEAST = 1000, DRAWS_LENGTH = 1000 };
enum { LINES = 3 }; /* of the options, before the kernels of --learn */

/* The hashes that were printed: open addressing, at most half full. */
struct printed {
  canvas_hash *slot;
  size_t capacity, count;
};

static size_t first_slot(const struct printed *set, const canvas_hash *hash) {
  size_t at = 0;
  for (const char *p = hash->hex; *p; p++) at = at * 31 + (size_t)*p;
  return at & (set->capacity - 1);
}

static canvas_hash *find(const struct printed *set, const canvas_hash *hash) {
  size_t i = first_slot(set, hash);
  while (set->slot[i].hex[0] && strcmp(set->slot[i].hex, hash->hex) != 0)
    i = (i + 1) & (set->capacity - 1);
  return &set->slot[i];
}

/* Room for one more; false if there is no memory. */
static bool grow(struct printed *set) {
  if (2 * set->count < set->capacity) return true;
  struct printed larger = {.capacity = set->capacity ? 2 * set->capacity : 64, .count = set->count};
  larger.slot = calloc(larger.capacity, sizeof *larger.slot);
  if (!larger.slot) return false;
  for (size_t i = 0; i < set->capacity; i++)
    if (set->slot[i].hex[0]) *find(&larger, &set->slot[i]) = set->slot[i];
  free(set->slot);
  *set = larger;
  return true;
}

struct stream {
  canvas_targets *targets;
  canvas_budget *budget; /* NULL: no budget */
  canvas_sampler *sampler;
  int64_t start, count;
  canvas_solve_options solving;
  bool verbose;
  struct printed printed;
  int64_t tried, skipped, repeated, unsolved;
};

static void stream_free(struct stream *s) {
  canvas_sampler_free(s->sampler);
  canvas_budget_free(s->budget);
  canvas_targets_free(s->targets);
  free(s->printed.slot);
}

/* An error message about the options' text without its column, which the user did not type. */
static const char *without_column(const char *why) {
  const char *column = strstr(why, "column "), *colon = column ? strchr(column, ':') : NULL;
  return colon ? colon + 2 : why;
}

/* The flag whose text an error message about the options is about: that of --draws is line 2. */
static const char *blamed(const char *why) {
  if (!strstr(why, "column ")) return "sample";
  return strncmp(why, "line 2", 6) ? "--primitives" : "--draws";
}

/* Whether it looks like 5..12; the core judges the numbers. */
static bool is_range(const char *text) {
  size_t length = strlen(text);
  return length > 0 && length <= 40 && strspn(text, "0123456789.") == length;
}

/* The sampler's options as text; false for a bad flag. */
static bool write_options(struct arguments *a, char *out, size_t size) {
  int64_t groups;
  const char *primitives = option_text(a, "--primitives", NULL);
  const char *require = option_text(a, "--require", "reach");
  const char *draws = option_text(a, "--draws", "rules");
  const char *space = option_text(a, "--space", NULL);
  if (!option_whole(a, "--groups", 0, 1, INT64_C(1) << 24, &groups)) return false;
  if (strcmp(require, "reach") && strcmp(require, "none"))
    return report_error("--require takes reach or none, not '%.60s'", require), false;
  if (primitives && !is_range(primitives))
    return report_error("--primitives takes a range such as 5..12, not '%.60s'", primitives), false;
  if (space && strcmp(space, "paper") && strcmp(space, "published") && strcmp(space, "wide"))
    return report_error("--space takes paper, published or wide, not '%.60s'", space), false;
  if (strlen(draws) > DRAWS_LENGTH || strchr(draws, '\n'))
    return report_error(
               "--draws takes rules, learned or paper, with changes such as rules,free=0.2, not "
               "'%.60s...'",
               draws),
           false;
  int length = snprintf(out, size, "require=%s ", require);
  if (space) length += snprintf(out + length, size - (size_t)length, "space=%s ", space);
  if (groups)
    length += snprintf(out + length, size - (size_t)length, "groups=%lld ", (long long)groups);
  if (primitives)
    length += snprintf(out + length, size - (size_t)length, "primitives=%s", primitives);
  length += snprintf(out + length, size - (size_t)length, "\ndraws=");
  snprintf(out + length, size - (size_t)length, "%s", draws);
  return true;
}

static bool new_sampler(struct arguments *a, struct stream *s, const char *options, size_t length,
                        int64_t seed, const char *learned) {
  static const char head[] = "line ";
  canvas_status status =
      canvas_sampler_new(a->ctx, s->targets, options, length, (uint64_t)seed, &s->sampler);
  const char *why = canvas_context_message(a->ctx);
  if (status == CANVAS_OK) return true;
  char *rest = NULL;
  long line = strncmp(why, head, sizeof head - 1) ? 0 : strtol(why + sizeof head - 1, &rest, 10);
  if (line > LINES)
    report_error("%s: line %ld%s", learned, line - LINES, rest);
  else
    report_error("%s: %s", blamed(why), without_column(why));
  return false;
}

/* The options, and behind them the kernels of --learn. */
static bool open_sampler(struct arguments *a, struct stream *s, int64_t seed) {
  char options[DRAWS_LENGTH + 200];
  const char *file = option_text(a, "--learn", NULL);
  struct text kernels;
  if (!write_options(a, options, sizeof options)) return false;
  if (!file) return new_sampler(a, s, options, strlen(options), seed, "");
  if (!text_read(file, &kernels)) return false;
  size_t size = strlen(options) + kernels.length + 10;
  char *all = malloc(size);
  bool made = all != NULL;
  if (made) {
    int length = snprintf(all, size, "%s\nlearn=\n", options);
    memcpy(all + length, kernels.bytes, kernels.length);
    made = new_sampler(a, s, all, (size_t)length + kernels.length, seed, kernels.name);
  } else {
    report_error("out of memory for the kernels of --learn");
  }
  free(all);
  text_free(&kernels);
  return made;
}

static bool open_stream(struct arguments *a, struct stream *s) {
  int64_t seed;
  const char *budget = option_text(a, "--budget", NULL);
  if (!option_whole(a, "--seed", 1, 0, INT64_MAX, &seed) ||
      !option_whole(a, "--start", 0, 0, INT64_C(1) << 62, &s->start) ||
      !option_whole(a, "--count", 1, 1, 1000000, &s->count) || !norm_chosen(a, &s->solving))
    return false;
  s->verbose = option_given(a, "-v");
  s->targets = targets_read(a);
  if (!s->targets) return false;
  if (budget) {
    canvas_status status = canvas_budget_parse(a->ctx, budget, strlen(budget), &s->budget);
    if (status != CANVAS_OK) report_flag(a, "--budget", status);
    if (status != CANVAS_OK) return false;
  }
  return open_sampler(a, s, seed);
}

static void tell(const struct stream *s, int64_t index, const char *what, const char *why) {
  if (s->verbose) report_error("draw %lld: %s: %s", (long long)index, what, why);
}

/* Whether the kernel has sizes within the budget: CANVAS_OK, CANVAS_NONE, or a failure. */
static canvas_status solvable(struct arguments *a, struct stream *s, const canvas_kernel *kernel,
                              int64_t groups) {
  canvas_solve_options options = s->solving;
  canvas_pack *pack;
  if (!s->budget) return CANVAS_OK;
  options.groups = groups;
  canvas_status status =
      canvas_kernel_solve(a->ctx, kernel, s->targets, s->budget, &options, &pack);
  if (status == CANVAS_OK) canvas_pack_free(pack);
  return status;
}

/* Prints the kernel of an index unless it is passed over; the exit status where the stream ends. */
static int print_draw(struct arguments *a, struct stream *s, int64_t index, canvas_kernel *kernel,
                      int64_t groups) {
  canvas_hash hash = canvas_kernel_hash(kernel);
  if (!grow(&s->printed)) return report_error("out of memory for more kernels");
  canvas_hash *slot = find(&s->printed, &hash);
  if (slot->hex[0]) {
    s->repeated++;
    tell(s, index, "skipped", "equal to an earlier kernel");
    return EXIT_OK;
  }
  canvas_status status = solvable(a, s, kernel, groups);
  if (status == CANVAS_NONE) {
    s->unsolved++;
    tell(s, index, "not solved", canvas_context_message(a->ctx));
    return EXIT_OK;
  }
  if (status != CANVAS_OK) return report_kernel(a, kernel, status);
  printf("%s# G=%lld\n", s->printed.count ? "\n" : "", (long long)groups);
  put_text(canvas_kernel_print(kernel));
  *slot = hash;
  s->printed.count++;
  return EXIT_OK;
}

static int try_index(struct arguments *a, struct stream *s, int64_t index) {
  canvas_kernel *kernel;
  int64_t groups;
  s->tried++;
  canvas_status status = canvas_sampler_draw(a->ctx, s->sampler, (uint64_t)index, &kernel, &groups);
  if (status == CANVAS_NONE) {
    s->skipped++;
    tell(s, index, "skipped", canvas_context_message(a->ctx));
    return EXIT_OK;
  }
  if (status != CANVAS_OK) return report_status(a, "sample", status);
  int answer = print_draw(a, s, index, kernel, groups);
  canvas_kernel_free(kernel);
  return answer;
}

/* Said with -v, and where the stream is shorter than requested. */
static void summarize(const struct stream *s) {
  bool all = (int64_t)s->printed.count == s->count;
  if (all && !s->verbose) return;
  report_error(
      "%s %zu of %lld kernels in %lld draws: %lld skipped, %lld equal to an earlier one, "
      "%lld without a solution",
      s->printed.count ? "printed" : "drew none,", s->printed.count, (long long)s->count,
      (long long)s->tried, (long long)s->skipped, (long long)s->repeated, (long long)s->unsolved);
}

static int run_stream(struct arguments *a, struct stream *s) {
  int64_t most = TRIES_LEAST + TRIES_EACH * s->count;
  while (s->tried < most && (int64_t)s->printed.count < s->count) {
    if (try_index(a, s, s->start + s->tried) != EXIT_OK) return EXIT_BAD;
    if (ferror(stdout)) return EXIT_BAD;
  }
  summarize(s);
  return s->printed.count ? EXIT_OK : EXIT_NONE;
}

static int run(struct arguments *a) {
  struct stream stream = {0};
  int answer = open_stream(a, &stream) ? run_stream(a, &stream) : EXIT_BAD;
  stream_free(&stream);
  return answer;
}

const struct command command_sample = {
    .subcommand = "sample",
    .operands = "",
    .summary = "draw kernels for the layers of a network",
    .details =
        "Prints the text of each kernel after a comment with its G. Draw i depends only on seed,\n"
        "targets and options, on every machine. Draws that fail, repeat an earlier kernel or do\n"
        "not fit the budget are skipped.\n",
    .example = "canvas sample --targets \"64,56,56;128,28,28\" --count 2 --budget macs=0.5x",
    .options = {{"--targets", "FILE|\"C,H,W;...\"",
                 "layers to replace: a file with a line each, or the short form"},
                {"--seed", "S", "seed of the draws (default 1)"},
                {"--start", "I", "index of the first draw (default 0)"},
                {"--count", "N", "number of kernels (default 1)"},
                {"--primitives", "5..12",
                 "number of primitives, without input and output (default 3..8; paper: 5..12)"},
                {"--require", "reach|none",
                 "reach (default): see several pixels along H and W, and mix all channels"},
                {"--draws", "rules|learned|paper",
                 "rules (default): avoid kernels that are usually poor; learned: these, by weights "
                 "from known kernels; paper: as published"},
                {"--learn", "FILE", "kernels that --draws learned learns from, beside known ones"},
                {"--space", "paper|published|wide",
                 "primitives drawn: Table 1 of the paper (default), those of the published code, "
                 "or all"},
                {"--groups", "G", "value of G (default: drawn)"},
                {"--budget", "BUDGET", "only kernels that fit, such as macs=0.5x,params=0.5x"},
                {"--norm", "batch|none", "norms that --budget counts: batch, or none (default)"},
                {"-v", NULL, "report on stderr which draws were skipped, and why"}},
    .run = run,
};
