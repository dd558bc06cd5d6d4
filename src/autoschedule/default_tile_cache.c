/* A cache of tiles that were chosen before: edits and passes ask for those of a stage again and again, in programs
 * that differ elsewhere. The answers are the same without this file. See default.h.
 *
 * The key is all that chooser_tile looks at. The table is one for all threads; who finds it in use chooses anew.
 */
#include <pthread.h>
#include <string.h>

#include "autoschedule/default_chooser.h"
#include "program/program_cost.h"

enum { SLOTS = 1024, WORDS = 256 }; /* what has a longer key is not remembered */

struct key {
  int count;
  bool full;
  int64_t words[WORDS];
};

struct slot {
  struct key key;
  struct default_tile tile;
};

static struct slot slots[SLOTS];
static pthread_mutex_t in_use = PTHREAD_MUTEX_INITIALIZER;

static void add(struct key *k, int64_t word) {
  if (k->count == WORDS)
    k->full = true;
  else
    k->words[k->count++] = word;
}

static void add_two(struct key *k, uint32_t high, uint32_t low) {
  add(k, (int64_t)((uint64_t)high << 32 | low));
}

static void add_real(struct key *k, double real) {
  int64_t word;
  memcpy(&word, &real, sizeof word);
  add(k, word);
}

/* Without what makes no difference to a stage of which nothing can be packed, nor a loop be split. */
static struct default_options that_matter(const struct default_facts *f, struct default_options o) {
  bool plain = false, asked = false;
  for (int i = 0; i < f->loads; i++) {
    plain = plain || f->load[i].packable;
    asked = asked || f->load[i].guarded;
  }
  o.pack = o.pack && plain;
  o.stored = o.stored && !o.free_layout;
  o.split = o.split && asked && f->reduction == 1;
  return o;
}

/* The first load of the same tensor. */
static int first_of_tensor(const struct default_facts *f, int load) {
  int i = 0;
  while (f->load[i].tensor != f->load[load].tensor) i++;
  return i;
}

/* What can be packed, and at what cost, only where something is. */
static void add_load(struct key *k, const struct default_facts *f, int load, bool pack) {
  const struct default_load *l = &f->load[load];
  const struct program_tensor *t = &f->p->tensors.data[l->tensor];
  bool constant = pack && t->constant, plain = pack && l->packable;
  add(k, first_of_tensor(f, load));
  add(k, program_elements(f->p, l->tensor));
  add(k, (int64_t)t->dtype << 3 | constant << 2 | plain << 1 | l->cold);
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
  add(k, (int64_t)t->rank << 32 | t->reductions);
  add(k, (int64_t)t->dtype << 16 | t->reducer << 8 | f->p->nodes.data[t->body].op);
  add_two(k, f->guarded, f->non_monotone);
  add_two(k, f->bounds_reduction, (uint32_t)f->operations);
  add(k, (int64_t)f->loads << 3 | f->truncated << 2 | f->periodic << 1 | f->has_boundary);
  add(k, f->points);
  add(k, f->reduction);
  for (int i = 0; i < t->rank + t->reductions; i++) {
    add(k, t->axes[i].size);
    add(k, f->period[i]);
    add(k, t->axes[i].low >= 0);
  }
  for (int i = 0; i < t->rank; i++) {
    add(k, f->order[i]);
    add(k,
        t->reductions ? f->out_stride[i] == 1 : f->out_stride[i]); /* no more is asked of a sum */
    add_real(k, f->inside_share[i]);
  }
  for (int i = 0; i < f->loads; i++) add_load(k, f, i, pack);
}

static void add_rest(struct key *k, const struct machine *m, struct default_options o) {
  add(k, (int64_t)m->vector_bytes << 32 | m->registers);
  add(k, m->line);
  add(k, m->l1);
  add(k, m->l2);
#define X(fact, ...) add(k, machine_##fact(m));
  MACHINE_FACTS(X)
#undef X
  add_two(k, o.non_affine, o.outside);
  add(k, o.lanes);
  add(k, o.pack << 4 | o.free_layout << 3 | o.k_blocking << 2 | o.stored << 1 | o.split);
}

/* Two halves, so that products of one need not wait for those of the other. */
static unsigned slot_of(const struct key *k) {
  const uint64_t prime = UINT64_C(0x9e3779b97f4a7c15);
  uint64_t even = 0, odd = 1;
  for (int i = 0; i + 1 < k->count; i += 2) {
    even = (even ^ (uint64_t)k->words[i]) * prime;
    odd = (odd ^ (uint64_t)k->words[i + 1]) * prime;
    even ^= even >> 29;
    odd ^= odd >> 29;
  }
  if (k->count % 2) even = (even ^ (uint64_t)k->words[k->count - 1]) * prime;
  even ^= odd * prime;
  return (unsigned)((even ^ even >> 32) % SLOTS);
}

static bool same_key(const struct key *a, const struct key *b) {
  return a->count == b->count && !memcmp(a->words, b->words, (size_t)a->count * sizeof *a->words);
}

void default_choose_tile(const struct default_facts *f, const struct machine *machine,
                         struct default_options options, struct default_tile *out) {
  struct key key;
  key.count = 0;
  key.full = false;
  options = that_matter(f, options);
  if (!options.constraint) {
    add_rest(&key, machine, options);
    add_facts(&key, f, options.pack);
  }
  bool may = key.count && !key.full, known = false;
  struct slot *slot = &slots[may ? slot_of(&key) : 0];
  if (may && !pthread_mutex_trylock(&in_use)) {
    known = same_key(&slot->key, &key);
    if (known) *out = slot->tile;
    pthread_mutex_unlock(&in_use);
  }
  if (known) return;
  chooser_tile(f, machine, options, out);
  if (may && !pthread_mutex_trylock(&in_use)) {
    slot->key = key;
    slot->tile = *out;
    pthread_mutex_unlock(&in_use);
  }
}

void default_clear_cache(void) {
  if (pthread_mutex_lock(&in_use)) return;
  for (int i = 0; i < SLOTS; i++) slots[i].key.count = 0;
  pthread_mutex_unlock(&in_use);
}
