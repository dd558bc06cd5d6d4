/* A file written whole or not at all. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"

static int cannot_write(const char *path, int why) {
  return report_error("cannot write '%.900s': %s", path, strerror(why));
}

static bool put_bytes(FILE *file, const char *bytes, size_t length, int mode) {
  bool good = fwrite(bytes, 1, length, file) == length && !fflush(file);
  mode_t mask = umask(0);
  umask(mask);
  return good && !fchmod(fileno(file), (mode_t)mode & ~mask);
}

/* Beside its place under another name, then renamed. */
int write_whole(const char *path, const char *bytes, size_t length, int mode) {
  struct stat s;
  if (!stat(path, &s) && !S_ISREG(s.st_mode)) return report_error("'%.900s' is no file", path);
  size_t size = strlen(path) + 8;
  char *temporary = malloc(size);
  if (!temporary) return cannot_write(path, ENOMEM);
  snprintf(temporary, size, "%s.XXXXXX", path);
  int handle = mkstemp(temporary), why = errno;
  FILE *file = handle >= 0 ? fdopen(handle, "wb") : NULL;
  bool good = file && put_bytes(file, bytes, length, mode);
  if (file) {
    why = errno;
    good = !fclose(file) && good;
    if (good) {
      good = !rename(temporary, path);
      why = errno;
    }
    if (!good) unlink(temporary);
  }
  free(temporary);
  return good ? EXIT_OK : cannot_write(path, why);
}
