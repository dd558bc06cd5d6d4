/* The names of a network's tensors and programs, in tables: a pass adds thousands of them. */
#include <stdio.h>
#include <string.h>

#include "net/network.h"

void network_index_tensors(struct network *n) {
  name_table_free(&n->tensor_names.used);
  name_table_free(&n->tensor_names.next);
  for (int i = 0; i < n->tensors.count; i++)
    name_table_set(&n->tensor_names.used, n->tensors.data[i].name, i);
}

void network_index_programs(struct network *n) {
  name_table_free(&n->program_names.used);
  name_table_free(&n->program_names.next);
  for (int i = 0; i < n->programs.count; i++)
    name_table_set(&n->program_names.used, n->programs.data[i]->name, i);
}

int network_find(const struct network *n, const char *name) {
  return name_table_find(&n->tensor_names.used, name, strlen(name));
}

int network_find_program(const struct network *n, const char *name) {
  return name_table_find(&n->program_names.used, name, strlen(name));
}

/* `wanted`, else the first free one of wanted_2, wanted_3 and so on. */
static void free_name(struct network *n, struct network_names *names, const char *wanted,
                      char out[PROGRAM_NAME + 1]) {
  size_t length = strlen(wanted);
  snprintf(out, PROGRAM_NAME + 1, "%s", wanted);
  if (name_table_find(&names->used, out, strlen(out)) < 0) return;
  int known = name_table_find(&names->next, wanted, length), i = known < 0 ? 2 : known;
  for (;; i++) {
    snprintf(out, PROGRAM_NAME + 1, "%.*s_%d", PROGRAM_NAME - 12, wanted, i);
    if (name_table_find(&names->used, out, strlen(out)) < 0) break;
  }
  name_table_set(&names->next, known < 0 ? arena_strndup(&n->arena, wanted, length) : wanted, i);
}

void free_value_name(struct network *n, const char *wanted, char out[PROGRAM_NAME + 1]) {
  free_name(n, &n->tensor_names, wanted, out);
}

void free_program_name(struct network *n, const char *wanted, char out[PROGRAM_NAME + 1]) {
  free_name(n, &n->program_names, wanted, out);
}
