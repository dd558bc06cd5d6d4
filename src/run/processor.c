/* Reads the name of the processor. See processor.h. */
#include "run/processor.h"

#include <stdbool.h>
#include <string.h>

#include "base/memory.h"
#include "run/cache.h"

/* The value after the colon of the line that starts with `key`; NULL: none. */
static char *value_of(const char *text, const char *key) {
  for (const char *line = text; line; line = strchr(line, '\n')) {
    line += *line == '\n';
    const char *end = line + strcspn(line, "\n"), *colon = memchr(line, ':', (size_t)(end - line));
    if (strncmp(line, key, strlen(key)) != 0 || !colon) continue;
    for (colon++; colon < end && *colon == ' ';) colon++;
    return mem_strndup(colon, (size_t)(end - colon));
  }
  return NULL;
}

char *processor_name(void) {
  static const char *const keys[] = {"model name", "CPU part", "uarch"};
  struct buf text = {0};
  char *found = NULL;
  bool read = file_read("/proc/cpuinfo", 4 << 20, &text);
  for (int i = 0; read && !found && i < 3; i++) found = value_of(text.text, keys[i]);
  buf_free(&text);
  return found ? found : mem_strdup("");
}
