/* See layout.h. */
#include "spell/layout.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { ORDER_SWEEPS = 12, COLUMN_SWEEPS = 48, CHAIN = 8, LANE = 14, GAP = 18 };

/* ---- layers and lanes ---------------------------------------------------------------------- */

static int inputs_of(const struct kernel *k, int node) {
  return node_row(&k->nodes[node])->arity;
}

static void make_layers(const struct kernel *k, struct layout *l) {
  for (int i = 0; i < k->count; i++) {
    for (int j = 0; j < inputs_of(k, i); j++) {
      int above = l->first[k->nodes[i].in[j]];
      if (l->first[i] <= above) l->first[i] = above + 1;
    }
    l->last[i] = l->first[i];
    if (l->layers <= l->first[i]) l->layers = l->first[i] + 1;
  }
  for (int i = 0; i < k->count; i++)
    for (int j = 0; j < inputs_of(k, i); j++) {
      int *last = &l->last[k->nodes[i].in[j]];
      if (*last < l->first[i] - 1) *last = l->first[i] - 1;
    }
}

static void make_cells(const struct kernel *k, struct layout *l) {
  for (int i = 0; i < k->count; i++)
    for (int layer = l->first[i]; layer <= l->last[i]; layer++) {
      l->place[layer][i] = l->count[layer];
      l->order[layer][l->count[layer]++] = i;
    }
}

/* The tensors above a cell that it is joined to: a lane to itself, a box to its inputs. */
static int above(const struct kernel *k, const struct layout *l, int layer, int tensor,
                 int out[2]) {
  if (l->first[tensor] < layer) return out[0] = tensor, 1;
  memcpy(out, k->nodes[tensor].in, 2 * sizeof *out);
  return inputs_of(k, tensor);
}

/* Sums the entries of `at` for each cell's neighbours in the next layer up (step -1) or down (step 1). */
static void gather(const struct kernel *k, const struct layout *l, int layer, int step,
                   int at[][KERNEL_NODES_MAX], int64_t *sum, int *joined) {
  int lower = step < 0 ? layer : layer + 1, ends[2];
  memset(sum, 0, KERNEL_NODES_MAX * sizeof *sum);
  memset(joined, 0, KERNEL_NODES_MAX * sizeof *joined);
  if (lower < 1 || lower >= l->layers) return;
  for (int p = 0; p < l->count[lower]; p++) {
    int below = l->order[lower][p], count = above(k, l, lower, below, ends);
    for (int j = 0; j < count; j++) {
      int here = step < 0 ? below : ends[j], there = step < 0 ? ends[j] : below;
      sum[here] += at[layer + step][there];
      joined[here]++;
    }
  }
}

/* The neighbour above or below of a cell that has one there. */
static int link_of(const struct kernel *k, const struct layout *l, int layer, int step,
                   int tensor) {
  int ends[2];
  if (step < 0) return above(k, l, layer, tensor, ends), ends[0];
  for (int p = 0; p < l->count[layer + 1]; p++) {
    int below = l->order[layer + 1][p], count = above(k, l, layer + 1, below, ends);
    for (int j = 0; j < count; j++)
      if (ends[j] == tensor) return below;
  }
  return tensor;
}

/* ---- order --------------------------------------------------------------------------------- */

static int64_t crossings(const struct kernel *k, const struct layout *l) {
  int64_t total = 0;
  for (int layer = 1; layer < l->layers; layer++) {
    int from[2 * KERNEL_NODES_MAX], to[2 * KERNEL_NODES_MAX], edges = 0, ends[2];
    for (int p = 0; p < l->count[layer]; p++) {
      int count = above(k, l, layer, l->order[layer][p], ends);
      for (int j = 0; j < count; j++, edges++)
        from[edges] = l->place[layer - 1][ends[j]], to[edges] = p;
    }
    for (int a = 0; a < edges; a++)
      for (int b = a + 1; b < edges; b++) total += to[a] < to[b] && from[a] > from[b];
  }
  return total;
}

/* Sorts a layer by the mean place of its neighbours; equals and cells without keep their order. */
static void sort_layer(const struct kernel *k, struct layout *l, int layer, int step) {
  int64_t sum[KERNEL_NODES_MAX];
  int joined[KERNEL_NODES_MAX], *order = l->order[layer];
  gather(k, l, layer, step, l->place, sum, joined);
  for (int p = 1; p < l->count[layer]; p++)
    for (int q = p; q > 0; q--) {
      int a = order[q - 1], b = order[q];
      if (!joined[a] || !joined[b] || sum[a] * joined[b] <= sum[b] * joined[a]) break;
      order[q - 1] = b, order[q] = a;
    }
  for (int p = 0; p < l->count[layer]; p++) l->place[layer][order[p]] = p;
}

static void make_order(const struct kernel *k, struct layout *l) {
  struct layout *best = mem_alloc(sizeof *best);
  int64_t fewest = crossings(k, l);
  *best = *l;
  for (int sweep = 0; sweep < ORDER_SWEEPS && fewest; sweep++) {
    int step = sweep % 2 ? 1 : -1;
    for (int i = 1; i < l->layers; i++) sort_layer(k, l, step < 0 ? i : l->layers - 1 - i, step);
    int64_t now = crossings(k, l);
    if (now < fewest) *best = *l, fewest = now;
  }
  *l = *best;
  mem_free(best);
}

/* ---- columns ------------------------------------------------------------------------------- */

/* Cells that touch and move as one. */
struct run {
  int64_t sum; /* of weight times wanted place, each as if the run's first cell stood there */
  int64_t weight;
  int cells;
};

static int64_t run_start(const struct run *r) {
  int64_t half = r->weight / 2;
  return (r->sum >= 0 ? r->sum + half : r->sum - half) / r->weight;
}

static int half_width(const struct layout *l, const int *boxes, int layer, int tensor) {
  return l->first[tensor] == layer ? boxes[tensor] / 2 + GAP / 2 : LANE / 2;
}

/* The places nearest to the wanted ones that keep the order and the distances: runs that would overlap
 * are joined and stand at the mean of what they want (pool adjacent violators). */
static void settle(struct layout *l, const int *boxes, int layer, const int64_t *want,
                   const int *weight) {
  struct run runs[KERNEL_NODES_MAX];
  int64_t offset[KERNEL_NODES_MAX] = {0};
  int count = 0, p = 0;
  for (; p < l->count[layer]; p++) {
    int tensor = l->order[layer][p];
    if (p)
      offset[p] = offset[p - 1] + half_width(l, boxes, layer, l->order[layer][p - 1]) +
                  half_width(l, boxes, layer, tensor);
    runs[count++] = (struct run){weight[tensor] * (want[tensor] - offset[p]), weight[tensor], 1};
    for (; count > 1 && run_start(&runs[count - 2]) > run_start(&runs[count - 1]); count--) {
      runs[count - 2].sum += runs[count - 1].sum;
      runs[count - 2].weight += runs[count - 1].weight;
      runs[count - 2].cells += runs[count - 1].cells;
    }
  }
  p = 0;
  for (int r = 0; r < count; r++)
    for (int i = 0; i < runs[r].cells; i++, p++)
      l->centre[layer][l->order[layer][p]] = (int)(run_start(&runs[r]) + offset[p]);
}

/* Moves a layer to where its neighbours above (step -1) or below stand. With `straight`, only the
 * links of chains count (each end has no other link there): what is in none stays where it is. */
static void move_layer(const struct kernel *k, struct layout *l, const int *boxes, int layer,
                       int step, bool straight) {
  int64_t want[KERNEL_NODES_MAX], unused[KERNEL_NODES_MAX];
  int joined[KERNEL_NODES_MAX], back[KERNEL_NODES_MAX], weight[KERNEL_NODES_MAX];
  gather(k, l, layer, step, l->centre, want, joined);
  gather(k, l, layer + step, -step, l->place, unused, back);
  for (int p = 0; p < l->count[layer]; p++) {
    int tensor = l->order[layer][p];
    bool chain = joined[tensor] == 1 && back[link_of(k, l, layer, step, tensor)] == 1;
    weight[tensor] = 1;
    if (joined[tensor] && (chain || !straight))
      want[tensor] /= joined[tensor], weight[tensor] = straight ? CHAIN : joined[tensor];
    else
      want[tensor] = l->centre[layer][tensor];
  }
  settle(l, boxes, layer, want, weight);
}

/* The last sweep goes down: a chain hangs straight below what it reads. */
static void make_columns(const struct kernel *k, const int *boxes, struct layout *l) {
  int left = INT_MAX, right = INT_MIN;
  for (int sweep = 0; sweep <= COLUMN_SWEEPS; sweep++) {
    int step = sweep % 2 ? 1 : -1;
    for (int i = 0; i < l->layers; i++)
      move_layer(k, l, boxes, step < 0 ? i : l->layers - 1 - i, step, sweep > COLUMN_SWEEPS / 2);
  }
  for (int layer = 0; layer < l->layers; layer++)
    for (int p = 0; p < l->count[layer]; p++) {
      int tensor = l->order[layer][p], x = l->centre[layer][tensor];
      int half = l->first[tensor] == layer ? boxes[tensor] / 2 : LANE / 2;
      if (left > x - half) left = x - half;
      if (right < x + half) right = x + half;
    }
  for (int layer = 0; layer < l->layers; layer++)
    for (int p = 0; p < l->count[layer]; p++) l->centre[layer][l->order[layer][p]] -= left;
  l->width = right - left;
}

static void make_spans(const struct kernel *k, struct layout *l) {
  for (int layer = 1; layer < l->layers; layer++)
    for (int p = 0; p < l->count[layer]; p++) {
      int ends[2], tensor = l->order[layer][p], count = above(k, l, layer, tensor, ends);
      for (int j = 0; j < count; j++) {
        int span = abs(l->centre[layer][tensor] - l->centre[layer - 1][ends[j]]);
        if (l->span[layer] < span) l->span[layer] = span;
      }
    }
}

void layout_make(const struct kernel *k, const int *boxes, struct layout *out) {
  *out = (struct layout){0};
  make_layers(k, out);
  make_cells(k, out);
  make_order(k, out);
  make_columns(k, boxes, out);
  make_spans(k, out);
}
