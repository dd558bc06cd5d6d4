/* Filters records, chooses the best and sorts them. See log.h. */
#include <stdlib.h>
#include <string.h>

#include "tune/log.h"

/* ---- origin of records ----------------------------------------------------------------------- */

/* The next line of a machine's text that affects code; NULL after the last. */
static const char *relevant_line(const char *p) {
  static const char *const other[] = {"machine ", "cores ", "memory "};
  for (;; p = strchr(p, '\n') + 1) {
    bool skipped = false;
    for (int i = 0; i < 3; i++) skipped |= !strncmp(p, other[i], strlen(other[i]));
    if (!*p) return NULL;
    if (!skipped) return p;
    if (!strchr(p, '\n')) return NULL;
  }
}

static bool same_machine(const char *a, const char *b) {
  if (a == b) return true;
  for (;; a = strchr(a, '\n') + 1, b = strchr(b, '\n') + 1) {
    a = relevant_line(a);
    b = relevant_line(b);
    if (!a || !b) return !a && !b;
    size_t length = strcspn(a, "\n");
    if (length != strcspn(b, "\n") || memcmp(a, b, length) != 0) return false;
    if (!a[length] || !b[length]) return a[length] == b[length];
  }
}

static bool same(const char *wanted, const char *text) {
  return !wanted || !strcmp(wanted, text);
}

static bool rounds_little(const struct record *r, const struct record_filter *f) {
  return !f->exact || record_winograd(r) <= f->winograd;
}

static bool is_refused(const struct record *r, const struct record_filter *f) {
  return f->refused && f->refused[r - f->first];
}

bool record_passes(const struct record *r, const struct record_filter *f) {
  if (is_refused(r, f)) return false;
  return (!f->threads || f->threads == r->threads) && same(f->version, r->version) &&
         (r->screened || same(f->compiler, r->compiler)) && same(f->processor, r->processor) &&
         (!f->machine || same_machine(f->machine, r->machine)) && rounds_little(r, f);
}

/* ---- program of records ---------------------------------------------------------------------- */

static const char *without_name(const char *text) {
  const char *line = strstr(text, "\nprogram ");
  return line ? line + strlen("\nprogram ") + strcspn(line + strlen("\nprogram "), "\n") : text;
}

bool record_is_of(const struct record *r, const char *program, const struct record_filter *f) {
  if (f->nameless) return !strcmp(without_name(r->program), without_name(program));
  return !strcmp(r->program, program);
}

/* ---- the best -------------------------------------------------------------------------------- */

/* Whether the record was measured under the same conditions as the other one. */
static bool is_from_there(const struct record *r, const struct record *other) {
  const struct record_filter there = {.machine = other->machine,
                                      .processor = other->processor,
                                      .compiler = other->screened ? NULL : other->compiler,
                                      .version = other->version,
                                      .threads = other->threads};
  return record_passes(r, &there);
}

/* Correct records timed as calls of a network, of all programs: few of many records. */
struct in_networks {
  VEC(const struct record *);
};

static struct in_networks find_in_networks(const struct records *all,
                                           const struct record_filter *f) {
  struct in_networks found = {0};
  for (int i = 0; i < all->count; i++) {
    const struct record *r = &all->data[i];
    if (r->network > 0 && !r->failure && record_passes(r, f)) VEC_PUSH(&found, r);
  }
  return found;
}

/* Last time the program of `like` was timed in a network under the conditions of `like`; INT64_MIN:
 * never. */
static int64_t last_in_network(const struct in_networks *found, const struct record *like,
                               const struct record_filter *f) {
  int64_t last = INT64_MIN;
  for (int i = 0; i < found->count; i++) {
    const struct record *r = found->data[i];
    if (r->time > last && record_is_of(r, like->program, f) && is_from_there(r, like))
      last = r->time;
  }
  return last;
}

/* Whether a later timing in a network replaces the record. In networks a pass chooses Winograd's
 * convolution, so records with it are not replaced. */
static bool is_overruled(const struct record *r, int64_t in_network) {
  if (r->network > 0) return r->time < in_network;
  return r->time <= in_network && !record_winograd(r);
}

/* Whether the record is better than `best` (NULL: none). Ties go by the order of merged logs, so
 * that the order of files does not matter. */
static bool is_better(const struct record *r, const struct record *best) {
  if (r->failure || !best) return !r->failure;
  return r->median < best->median || (r->median == best->median && record_compare(r, best) < 0);
}

/* Whether no search of the program for that many threads reached its finals. */
static bool never_ended(const struct records *all, const struct record *r,
                        const struct record_filter *f) {
  for (int i = 0; i < all->count; i++) {
    const struct record *one = &all->data[i];
    if (one->screened || one->threads != r->threads || is_refused(one, f)) continue;
    if (one->program == r->program || (f->nameless && record_is_of(one, r->program, f)))
      return false;
  }
  return true;
}

const struct record *records_best(const struct records *r, const char *program,
                                  const struct record_filter *filter) {
  const struct record *best = NULL, *trial = NULL;
  struct in_networks networks = find_in_networks(r, filter);
  int threads = 0; /* threads for which trials_only was computed */
  bool trials_only = false;
  for (int i = 0; i < r->count; i++) {
    const struct record *one = &r->data[i];
    const struct record **of = one->screened ? &trial : &best;
    if (!is_better(one, *of) || !record_is_of(one, program, filter) || !record_passes(one, filter))
      continue;
    if (threads != one->threads) {
      threads = one->threads;
      trials_only = never_ended(r, one, filter);
    }
    bool overruled = is_overruled(one, last_in_network(&networks, one, filter));
    if (!overruled && (!one->screened || trials_only)) *of = one;
  }
  mem_free(networks.data);
  return best ? best : trial;
}

/* The reason why the best of all records does not match the filter. */
static canvas_status from_elsewhere(canvas_context *ctx, const char *title, const struct record *r,
                                    const struct record_filter *f) {
  const struct {
    const char *what, *wanted, *text;
  } rows[] = {{"version of canvas", f->version, r->version},
              {"processor", f->processor, r->processor},
              {"compiler", r->screened ? NULL : f->compiler, r->compiler}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (!same(rows[i].wanted, rows[i].text))
      return fail(ctx, CANVAS_NONE, "the best record of '%.100s' is of another %s, '%.300s'", title,
                  rows[i].what, rows[i].text);
  if (f->machine && !same_machine(f->machine, r->machine))
    return fail(ctx, CANVAS_NONE, "the best record of '%.100s' is of another machine", title);
  if (!rounds_little(r, f))
    return fail(ctx, CANVAS_NONE,
                "the best record of '%.100s' is of Winograd's convolution in tiles of %d, which "
                "rounds more",
                title, record_winograd(r));
  return fail(ctx, CANVAS_NONE, "the best record of '%.100s' is of %d threads, not of %d", title,
              r->threads, f->threads);
}

static canvas_status why_none(canvas_context *ctx, const struct records *r, const char *program,
                              const struct record_filter *filter) {
  const struct record_filter any = {
      .nameless = filter->nameless, .first = filter->first, .refused = filter->refused};
  const struct record *elsewhere = records_best(r, program, &any);
  char title[PROGRAM_NAME];
  int failed = 0, count = 0;
  task_title(program, title, sizeof title);
  if (elsewhere) return from_elsewhere(ctx, title, elsewhere, filter);
  for (int i = 0; i < r->count; i++) {
    bool ours = record_is_of(&r->data[i], program, filter);
    count += ours;
    failed += ours && r->data[i].failure;
  }
  if (!count) return fail(ctx, CANVAS_NONE, "no record is of the program '%.100s'", title);
  return fail(
      ctx, CANVAS_NONE,
      "of %d records of '%.100s' %d failed, and the others were screened only: the best are "
      "timed in full when a search comes to its end",
      count, title, failed);
}

canvas_status records_choose(canvas_context *ctx, const struct records *r, const char *program,
                             const struct record_filter *filter, const struct record **out) {
  *out = records_best(r, program, filter);
  return *out ? CANVAS_OK : why_none(ctx, r, program, filter);
}

/* ---- by tasks -------------------------------------------------------------------------------- */

/* The slot of a task in a hash table of indices plus one. Equal texts have equal pointers. */
static int *find_task(const struct log_tasks *tasks, int *slots, size_t mask,
                      const struct record *r) {
  uint64_t h =
      ((uint64_t)(uintptr_t)r->program + (uint64_t)r->threads) * UINT64_C(0x9E3779B97F4A7C15);
  for (size_t slot = (size_t)(h >> 32) & mask;; slot = (slot + 1) & mask) {
    if (!slots[slot]) return &slots[slot];
    const struct log_task *t = &tasks->data[slots[slot] - 1];
    if (t->program == r->program && t->threads == r->threads) return &slots[slot];
  }
}

static void count_in_task(struct log_task *t, const struct record *r,
                          const struct record_filter *filter) {
  if (r->time < t->first) t->first = r->time;
  if (r->time > t->last) t->last = r->time;
  if (!r->screened && !is_refused(r, filter)) t->ended = true;
  if (r->network > 0) {
    if (r->time > t->in_network && !r->failure && record_passes(r, filter)) t->in_network = r->time;
    return;
  }
  t->trials++;
  t->failed[r->failure]++;
  t->screened += !r->failure && r->screened;
}

static void choose_in_task(struct log_task *t, const struct records *all,
                           const struct in_networks *networks, int index,
                           const struct record_filter *filter) {
  const struct record *r = &all->data[index];
  int *best = r->screened ? &t->trial : &t->best;
  if (!is_better(r, *best < 0 ? NULL : &all->data[*best])) return;
  if (!record_passes(r, filter)) return;
  bool late = t->in_network > INT64_MIN;
  if (late && is_overruled(r, last_in_network(networks, r, filter))) return;
  *best = index;
}

void records_tasks(const struct records *r, const struct record_filter *filter,
                   struct log_tasks *out) {
  size_t slots = 64;
  while (slots < 2 * (size_t)r->count) slots *= 2;
  int *table = mem_alloc(slots * sizeof *table);
  for (int i = 0; i < r->count; i++) {
    const struct record *one = &r->data[i];
    int *place = find_task(out, table, slots - 1, one);
    if (!*place) {
      struct log_task task = {.program = one->program,
                              .threads = one->threads,
                              .in_network = INT64_MIN,
                              .best = -1,
                              .trial = -1,
                              .first = one->time,
                              .last = one->time};
      VEC_PUSH(out, task);
      *place = out->count;
    }
    count_in_task(&out->data[*place - 1], one, filter);
  }
  struct in_networks networks = find_in_networks(r, filter);
  for (int i = 0; i < r->count; i++) {
    int task = *find_task(out, table, slots - 1, &r->data[i]) - 1;
    choose_in_task(&out->data[task], r, &networks, i, filter);
  }
  for (int i = 0; i < out->count; i++)
    if (!out->data[i].ended) out->data[i].best = out->data[i].trial;
  mem_free(networks.data);
  mem_free(table);
}

/* ---- in order -------------------------------------------------------------------------------- */

static int in_order(const void *a, const void *b) {
  return record_compare(a, b);
}

void records_merge(struct records *r) {
  int kept = 0;
  if (r->count) qsort(r->data, (size_t)r->count, sizeof *r->data, in_order);
  for (int i = 0; i < r->count; i++)
    if (!i || record_compare(&r->data[i], &r->data[kept - 1])) r->data[kept++] = r->data[i];
  r->count = kept;
}
