/* "Did you mean ...?": the word of a list that a mistyped one is nearest to. */
#ifndef CANVAS_BASE_NEAREST_H
#define CANVAS_BASE_NEAREST_H

/* One that begins with it, else by edit distance; NULL if none is near. `word` need not end with a NUL. */
const char *word_nearest(const char *word, int length, const char *const *words, int count);

#endif
