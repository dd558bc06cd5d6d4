/* Footprints of loops, and the traffic into each cache that follows from them: see cost_parts.h.
 *
 * A cache keeps the footprint of one iteration of a loop if all of it fits. The outermost such loop
 * decides. Data that two of its iterations share is loaded once. Data that does not depend on this
 * loop, nor on the loops around it, stays in the cache, too. Everything else is reloaded.
 */
#include <math.h>

#include "cost/cost_parts.h"
#include "cost/policy.h"

enum { LINES = 128, SET_MOST = 256 };

static double touch(struct cost_walk *w, const struct nest *n, int steps, enum fetched by) {
  double sum = 0;
  for (int i = 0; i < n->count; i++) {
    const struct access *a = &w->accesses.data[n->first + i];
    double more = a->touched[by][steps] - w->scratch[a->tensor];
    if (more <= 0) continue;
    w->scratch[a->tensor] += more;
    sum += more;
  }
  return sum;
}

static void clear_scratch(struct cost_walk *w, const struct nest *n) {
  for (int i = 0; i < n->count; i++) w->scratch[w->accesses.data[n->first + i].tensor] = 0;
}

/* The number of steps down to the node, itself included; -1 if the node is not around the stage. */
static int steps_to(const struct bound_stage *s, int node) {
  if (node == 0) return 0;
  for (int i = s->steps; i > 0; i--)
    if (s->path[i - 1].node == node) return i;
  return -1;
}

/* Fills the footprint of a node. Stages below it have the order of the text, from `from` on. */
static int fill_node(struct cost_walk *w, int node, int from, enum fetched by) {
  const struct schedule_node *nodes = w->tree->schedule->nodes.data;
  double sum = 0;
  int to = from;
  if (nodes[node].kind == NODE_LEAF) return from + 1;
  for (int child = nodes[node].first; child >= 0; child = nodes[child].next)
    to = fill_node(w, child, to, by);
  for (int i = from; i < to; i++)
    if (w->nests[i].count) sum += touch(w, &w->nests[i], steps_to(w->nests[i].stage, node), by);
  for (int i = from; i < to; i++) clear_scratch(w, &w->nests[i]);
  w->footprint[by][node] = sum;
  return to;
}

void footprints_fill(struct cost_walk *w) {
  for (int by = 0; by < FETCHED; by++) fill_node(w, 0, 0, (enum fetched)by);
}

/* Bytes that an access brings into a cache, which holds one iteration of the first `fits` loops. */
static double access_traffic(const struct nest *n, const struct access *a, int fits,
                             enum fetched by) {
  const double *touched = a->touched[by];
  double times = 1;
  while (fits > 0 && (touched[fits - 1] == touched[fits] && !(a->depends_on >> (fits - 1) & 1)))
    fits--;
  for (int i = 0; i < fits - 1; i++) times *= n->extent[i];
  return times * touched[fits > 0 ? fits - 1 : 0];
}

static bool same_strides(const struct access *a, const struct access *b) {
  for (size_t i = 0; i < sizeof a->stride / sizeof *a->stride; i++)
    if (a->stride[i] != b->stride[i]) return false;
  return true;
}

/* Whether an access with the same strides to the same tensor is larger, and counts instead. */
static bool covered(const struct cost_walk *w, const struct nest *n, int at) {
  const struct access *a = &w->accesses.data[n->first + at];
  for (int i = 0; i < n->count; i++) {
    const struct access *other = &w->accesses.data[n->first + i];
    if (i == at || other->tensor != a->tensor || other->depends_on != a->depends_on) continue;
    if (!same_strides(other, a)) continue;
    double more = other->touched[LINE][0] - a->touched[LINE][0];
    if (more > 0 || (more == 0 && i < at)) return true;
  }
  return false;
}

/* Slowdown of accesses that are not prefetched. Rows that are far apart are separate streams, and
 * processors prefetch a limited number of streams; fewer if all rows are in one L1 set. */
static double prefetch_penalty(const struct cost_walk *w, const struct nest *n,
                               const struct access *a) {
  const struct machine *m = &w->tree->machine;
  double streams = 1, most = COST_STREAMS;
  for (int i = 0; i < n->stage->steps; i++) {
    double bytes = fabs(a->stride[i]) * a->bytes;
    if (n->copies[i] <= 1 || i == n->lane || bytes < (double)machine_prefetch_stride(m)) continue;
    streams *= n->copies[i];
    if (fmod(bytes, (double)machine_l1_way(m)) == 0) most = COST_STREAMS_OF_SET;
  }
  return fmin(COST_LATE, fmax(1, streams / most));
}

/* Whether each iteration reads a few lines of another page. */
static bool crosses_pages(const struct cost_walk *w, const struct nest *n, const struct access *a) {
  double page = (double)machine_prefetch_stride(&w->tree->machine);
  double run = n->lane >= 0 && a->stride[n->lane] == 1 ? n->lanes * n->copies[n->lane] : 1;
  int i = n->stage->steps - 1;
  while (i >= 0 && !((a->depends_on & n->loops) >> i & 1)) i--;
  return i >= 0 && fabs(a->stride[i]) * a->bytes >= page && run * a->bytes < page;
}

static double traffic(struct cost_walk *w, const struct nest *n, double cache, enum fetched by) {
  const double *body = w->footprint[by];
  double bytes = 0;
  int fits = 0;
  if (body[0] <= cache) return 0;
  while (fits < n->stage->steps && body[n->stage->path[fits].node] > cache) fits++;
  if (fits < n->stage->steps) fits++;
  for (int i = 0; i < n->count; i++) {
    const struct access *a = &w->accesses.data[n->first + i];
    if (covered(w, n, i)) continue;
    bytes += prefetch_penalty(w, n, a) * (crosses_pages(w, n, a) ? COST_HOPPING : 1) *
             access_traffic(n, a, fits, by);
  }
  return bytes;
}

/* ---- sets ------------------------------------------------------------------------------------ */

/* Numbers of the cache lines that the unrolled steps of one innermost iteration load. */
struct lines {
  int64_t line[LINES];
  int count;
};

static void add_line(struct lines *l, int64_t line) {
  for (int i = 0; i < l->count; i++)
    if (l->line[i] == line) return;
  if (l->count < LINES) l->line[l->count++] = line;
}

/* Adds the lines of address `at`, and those of all unrolled steps from `step` on. */
static void add_lines(const struct nest *n, const struct access *a, int step, double at,
                      double line, struct lines *out) {
  while (step < n->stage->steps && (n->copies[step] <= 1 || !(a->depends_on >> step & 1))) step++;
  if (step == n->stage->steps) {
    if (fabs(at) < COST_ADDRESS_MOST) add_line(out, (int64_t)floor(at * a->bytes / line));
    return;
  }
  double stride = a->stride[step] * (step == n->lane ? n->lanes : 1);
  for (int64_t i = 0; (double)i < n->copies[step] && out->count < LINES; i++)
    add_lines(n, a, step + 1, at + (double)i * stride, line, out);
}

/* Lines that are evicted before they are read again, as their set has more lines than ways. */
static double evicted(const struct lines *l, double way, double line, double ways) {
  int sets = (int)(way / line), in[SET_MOST] = {0};
  double all = 0;
  if (sets < 1 || sets > SET_MOST) return 0;
  for (int i = 0; i < l->count; i++) in[((l->line[i] % sets) + sets) % sets]++;
  for (int i = 0; i < sets; i++)
    if (in[i] > ways) all += in[i] * fmin(1, (in[i] - ways) / (COST_EVICTED * ways));
  return all;
}

/* Bytes that are reloaded into L1 because of conflict misses. Rows whose distance is a multiple of
 * a large power of two fall into few sets of L1, which evict lines needed by later iterations. */
static double conflict_misses(const struct cost_walk *w, const struct nest *n,
                              const struct access *a) {
  const struct machine *m = &w->tree->machine;
  double line = (double)m->line, way = (double)machine_l1_way(m), ways = (double)m->l1 / way;
  int loop = n->stage->steps - 1;
  struct lines l = {.count = 0};
  while (loop >= 0 && !(n->loops >> loop & 1)) loop--;
  if (loop < 0 || !(a->depends_on >> loop & 1) || a->nonaffine >> loop & 1 || a->gathered) return 0;
  double stride = fabs(a->stride[loop]) * a->bytes;
  if (stride >= line || nest_addresses(n, a, 0) <= ways) return 0;
  add_lines(n, a, 0, 0, line, &l);
  return (1 - stride / line) * evicted(&l, way, line, ways) * line * n->begun[n->stage->steps] *
         n->part;
}

static double all_conflict_misses(const struct cost_walk *w, const struct nest *n) {
  double bytes = 0;
  for (int i = 0; i < n->count; i++)
    if (!covered(w, n, i)) bytes += conflict_misses(w, n, &w->accesses.data[n->first + i]);
  return bytes;
}

/* ---- all ------------------------------------------------------------------------------------- */

/* The mean of two sizes of the cache: data that is slightly too large stays in it in part. */
double nest_traffic(struct cost_walk *w, int stage, double cache, enum fetched by) {
  const struct nest *n = &w->nests[stage];
  if (!n->count) return 0;
  return (traffic(w, n, COST_FULL * cache, by) + traffic(w, n, COST_OVERFULL * cache, by)) / 2;
}

double nest_conflict_misses(const struct cost_walk *w, int stage) {
  const struct nest *n = &w->nests[stage];
  return n->count ? all_conflict_misses(w, n) : 0;
}
