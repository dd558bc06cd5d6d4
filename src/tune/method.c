/* The table of search methods. See method.h. */
#include "tune/method.h"

#include <string.h>

const struct method methods[] = {
#define X(name, trials, summary) {#name, trials, summary, method_##name},
    METHODS(X)
#undef X
};
const int method_count = sizeof methods / sizeof methods[0];

const struct method *method_find(const char *name) {
  for (int i = 0; i < method_count; i++)
    if (strcmp(methods[i].name, name) == 0) return &methods[i];
  return NULL;
}
