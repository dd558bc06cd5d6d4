/* Open addressing, at most half full. See name_table.h. */
#include "base/name_table.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static uint32_t hash_of(const char *name, size_t length) {
  uint32_t hash = 2166136261u;
  for (size_t i = 0; i < length; i++) hash = (hash ^ (unsigned char)name[i]) * 16777619u;
  return hash;
}

/* The entry of this name, or the free one where it belongs. */
static struct name_entry *entry_of(const struct name_table *t, const char *name, size_t length) {
  for (uint32_t hash = hash_of(name, length);; hash++) {
    struct name_entry *e = &t->entries[hash % (uint32_t)t->capacity];
    if (!e->name || (e->length == length && memcmp(e->name, name, length) == 0)) return e;
  }
}

int name_table_find(const struct name_table *t, const char *name, size_t length) {
  if (!t->count) return -1;
  const struct name_entry *e = entry_of(t, name, length);
  return e->name ? e->value : -1;
}

static void grow(struct name_table *t) {
  struct name_table wide = {.capacity = t->capacity ? 2 * t->capacity : 64, .count = t->count};
  wide.entries = mem_alloc((size_t)wide.capacity * sizeof *wide.entries);
  for (int i = 0; i < t->capacity; i++) {
    const struct name_entry *e = &t->entries[i];
    if (e->name) *entry_of(&wide, e->name, e->length) = *e;
  }
  mem_free(t->entries);
  *t = wide;
}

void name_table_add(struct name_table *t, const char *name, int value) {
  if (2 * t->count >= t->capacity) grow(t);
  size_t length = strlen(name);
  *entry_of(t, name, length) = (struct name_entry){name, length, value};
  t->count++;
}

void name_table_set(struct name_table *t, const char *name, int value) {
  struct name_entry *e = t->count ? entry_of(t, name, strlen(name)) : NULL;
  if (e && e->name)
    e->value = value;
  else
    name_table_add(t, name, value);
}

void name_table_free(struct name_table *t) {
  mem_free(t->entries);
  *t = (struct name_table){0};
}
