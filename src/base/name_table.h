/* A table from names to numbers: what a parser looks its tensors up in. */
#ifndef CANVAS_BASE_NAME_TABLE_H
#define CANVAS_BASE_NAME_TABLE_H

#include <stddef.h>

struct name_entry {
  const char *name; /* borrowed; NULL: free */
  size_t length;
  int value;
};

struct name_table {
  struct name_entry *entries;
  int count, capacity;
};

int name_table_find(const struct name_table *t, const char *name,
                    size_t length);                                     /* -1: not there */
void name_table_add(struct name_table *t, const char *name, int value); /* one that is not there */
/* Adds it, or replaces the value of one that is there. */
void name_table_set(struct name_table *t, const char *name, int value);
void name_table_free(struct name_table *t);

#endif
