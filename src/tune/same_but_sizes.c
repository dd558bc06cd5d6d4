/* Compares texts of programs without their numbers. See same_but_sizes.h. */
#include "tune/same_but_sizes.h"

#include <ctype.h>

bool same_but_sizes(const char *a, const char *b) {
  while (*a && *b) {
    bool number = isdigit((unsigned char)*a) && isdigit((unsigned char)*b);
    if (!number && *a != *b) return false;
    a++, b++;
    if (!number) continue;
    while (isdigit((unsigned char)*a)) a++;
    while (isdigit((unsigned char)*b)) b++;
  }
  return *a == *b;
}
