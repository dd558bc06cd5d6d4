/* A cache of chosen tiles: edits and passes choose the tile of a stage again, in programs that
 * differ elsewhere. Results are the same without it.
 *
 * The key is everything that chooser_tile depends on. All threads share the table; on lock
 * contention the tile is computed again.
 */
#include <pthread.h>
#include <string.h>

#include "autoschedule/default_chooser.h"
#include "program/program_cost.h"

/* A longer key is not cached. */
struct key {
  int count;
  bool too_long;
  int64_t words[DEFAULT_KEY_WORDS];
};

struct slot {
  struct key key;
  struct default_tile tile;
};

static struct slot slots[DEFAULT_CACHED_TILES];
static pthread_mutex_t in_use = PTHREAD_MUTEX_INITIALIZER;

static void add(struct key *k, int64_t word) {
  if (k->count == DEFAULT_KEY_WORDS)
    k->too_long = true;
  else
    k->words[k->count++] = word;
}

/* Two numbers in one word. */
static void add_two(struct key *k, uint32_t high, uint32_t low) {
  add(k, (int64_t)(((uint64_t)UINT32_MAX + 1) * high + low));
}

static int64_t with_bit(int64_t word, bool bit) {
  return 2 * word + bit;
}

static void add_real(struct key *k, double real) {
  int64_t word;
  memcpy(&word, &real, sizeof word);
  add(k, word);
}

/* Clears options that make no difference: packing if nothing can be packed, loop partitioning if
 * nothing is guarded. */
static struct default_options relevant_options(const struct default_facts *f,
                                               struct default_options o) {
  bool packable = false, guarded = false;
  for (int i = 0; i < f->loads; i++) {
    packable = packable || f->load[i].packable;
    guarded = guarded || f->load[i].guarded;
  }
  o.pack = o.pack && packable;
  o.stored = o.stored && !o.free_layout;
  o.split = o.split && guarded && f->reduction == 1;
  return o;
}

/* The first load of the same tensor. */
static int first_of_tensor(const struct default_facts *f, int load) {
  int i = 0;
  while (f->load[i].tensor != f->load[load].tensor) i++;
  return i;
}

/* Fields of packing only where operands may be packed. */
static void add_load(struct key *k, const struct default_facts *f, int load, bool pack) {
  const struct default_load *l = &f->load[load];
  const struct program_tensor *t = &f->p->tensors.data[l->tensor];
  bool constant = pack && t->constant, packable = pack && l->packable;
  add(k, first_of_tensor(f, load));
  add(k, program_elements(f->p, l->tensor));
  add(k,
      with_bit(with_bit(with_bit(with_bit(t->dtype, constant), packable), l->cold), l->indirect));
  add_two(k, l->non_affine, l->depends_on);
  add_two(k, l->guarded, pack ? l->inner : 0);
  add(k, pack ? l->outer : 0);
  for (int i = 0; i < f->t->rank + f->t->reductions; i++) {
    add(k, l->stride[i]);
    add(k, l->block[i]);
    add(k, l->jump[i]);
  }
}

static void add_facts(struct key *k, const struct default_facts *f, bool pack) {
  const struct program_tensor *t = f->t;
  add_two(k, (uint32_t)t->rank, (uint32_t)t->reductions);
  add_two(k, (uint32_t)t->dtype, (uint32_t)t->reducer);
  add(k, f->p->nodes.data[t->body].op);
  add_two(k, f->guarded, f->non_monotone);
  add_two(k, f->bounds_reduction, (uint32_t)f->operations);
  add(k, with_bit(with_bit(with_bit(f->loads, f->truncated), f->periodic), f->has_boundary));
  add(k, f->points);
  add_real(k, f->bounded_share);
  add(k, f->reduction);
  for (int i = 0; i < t->rank + t->reductions; i++) {
    add(k, t->axes[i].size);
    add(k, f->period[i]);
    add(k, t->axes[i].low >= 0);
  }
  for (int i = 0; i < t->rank; i++) {
    add(k, f->order[i]);
    /* a reduction only depends on whether the stride is 1 */
    add(k, t->reductions ? f->out_stride[i] == 1 : f->out_stride[i]);
    add_real(k, f->inside_share[i]);
  }
  for (int i = 0; i < f->loads; i++) add_load(k, f, i, pack);
}

static void add_rest(struct key *k, const struct machine *m, struct default_options o) {
  add_two(k, (uint32_t)m->vector_bytes, (uint32_t)m->registers);
  add(k, m->line);
  add(k, m->l1);
  add(k, m->l2);
#define X(fact, ...) add(k, machine_##fact(m));
  MACHINE_FACTS(X)
#undef X
  add_two(k, o.non_affine, o.outside);
  add(k, o.lanes);
  add(k, with_bit(with_bit(o.pack, o.free_layout), o.k_blocking));
  add(k, with_bit(with_bit(o.stored, o.split), o.whole));
}

/* Hashes even and odd words separately, so that their multiplications overlap. */
static unsigned slot_of(const struct key *k) {
  const uint64_t factor = (uint64_t)DEFAULT_HASH_FACTOR * DEFAULT_HASH_FACTOR;
  uint64_t even = 0, odd = 1;
  for (int i = 0; i + 1 < k->count; i += 2) {
    even = (even ^ (uint64_t)k->words[i]) * factor;
    odd = (odd ^ (uint64_t)k->words[i + 1]) * factor;
    even ^= even >> DEFAULT_HASH_SHIFT;
    odd ^= odd >> DEFAULT_HASH_SHIFT;
  }
  if (k->count % 2) even = (even ^ (uint64_t)k->words[k->count - 1]) * factor;
  even ^= odd * factor;
  return (unsigned)((even ^ even >> DEFAULT_HASH_SHIFT) % DEFAULT_CACHED_TILES);
}

static bool same_key(const struct key *a, const struct key *b) {
  return a->count == b->count && !memcmp(a->words, b->words, (size_t)a->count * sizeof *a->words);
}

void default_choose_tile(const struct default_facts *f, const struct machine *machine,
                         struct default_options options, struct default_tile *out) {
  struct key key;
  key.count = 0;
  key.too_long = false;
  options = relevant_options(f, options);
  if (!options.constraint) {
    add_rest(&key, machine, options);
    add_facts(&key, f, options.pack);
  }
  bool cached = key.count && !key.too_long, known = false;
  struct slot *slot = &slots[cached ? slot_of(&key) : 0];
  if (cached && !pthread_mutex_trylock(&in_use)) {
    known = same_key(&slot->key, &key);
    if (known) *out = slot->tile;
    pthread_mutex_unlock(&in_use);
  }
  if (known) return;
  chooser_tile(f, machine, options, out);
  if (cached && !pthread_mutex_trylock(&in_use)) {
    slot->key = key;
    slot->tile = *out;
    pthread_mutex_unlock(&in_use);
  }
}

void default_clear_cache(void) {
  if (pthread_mutex_lock(&in_use)) return;
  for (int i = 0; i < DEFAULT_CACHED_TILES; i++) slots[i].key.count = 0;
  pthread_mutex_unlock(&in_use);
}
