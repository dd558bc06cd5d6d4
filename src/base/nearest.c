/* Levenshtein's distance, row by row. */
#include "base/nearest.h"

#include <stddef.h>
#include <string.h>

enum {
  LONGEST = 32, /* longer words are far from everything */
  BEGINNING = 3 /* letters of a word that is cut short */
};

static int least(int a, int b) {
  return a < b ? a : b;
}

static int distance(const char *a, int a_length, const char *b) {
  int row[LONGEST], n = (int)strlen(b);
  if (n >= LONGEST || a_length >= LONGEST) return LONGEST;
  for (int j = 0; j <= n; j++) row[j] = j;
  for (int i = 1; i <= a_length; i++) {
    int corner = row[0];
    row[0] = i;
    for (int j = 1; j <= n; j++) {
      int changed = corner + (a[i - 1] != b[j - 1]);
      corner = row[j];
      row[j] = least(changed, least(row[j], row[j - 1]) + 1);
    }
  }
  return row[n];
}

/* The shortest of `words` that begins with `word`; NULL if `word` has under BEGINNING letters. */
static const char *begun(const char *word, int length, const char *const *words, int count) {
  const char *best = NULL;
  for (int i = 0; i < count && length >= BEGINNING; i++)
    if (!strncmp(word, words[i], (size_t)length) && (!best || strlen(words[i]) < strlen(best)))
      best = words[i];
  return best;
}

const char *word_nearest(const char *word, int length, const char *const *words, int count) {
  const char *best = begun(word, length, words, count);
  if (best) return best;
  int near = length < 4 ? 2 : length < 8 ? 3 : 4;
  for (int i = 0; i < count; i++) {
    int d = distance(word, length, words[i]);
    if (d < near) best = words[i], near = d;
  }
  return best;
}
