/* Reads and writes whole files, joins paths. See cache.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "run/cache.h"

char *path_join(const char *folder, const char *name) {
  struct buf path = {0};
  buf_printf(&path, "%s/%s", folder, name);
  return buf_take(&path);
}

static void close_file(void *file) {
  fclose(file);
}

bool file_read(const char *path, size_t most, struct buf *out) {
  char bytes[1 << 14];
  struct mem_deferred closing;
  FILE *file = fopen(path, "rb");
  if (!file) return false;
  mem_defer(&closing, close_file, file);
  while (!feof(file) && !ferror(file) && out->length <= most)
    buf_bytes(out, bytes, fread(bytes, 1, sizeof bytes, file));
  bool good = !ferror(file) && out->length <= most;
  mem_undefer(&closing);
  fclose(file);
  return good;
}

canvas_status file_write(canvas_context *ctx, const char *path, const char *bytes, size_t length) {
  FILE *file = fopen(path, "wb");
  bool good = file && fwrite(bytes, 1, length, file) == length;
  int why = errno;
  if (file && fclose(file)) {
    if (good) why = errno;
    good = false;
  }
  return good ? CANVAS_OK : fail(ctx, CANVAS_IO, "cannot write '%.500s': %s", path, strerror(why));
}

char *path_absolute(const char *path) {
  char here[4096];
  return *path == '/' || !getcwd(here, sizeof here) ? mem_strdup(path) : path_join(here, path);
}
