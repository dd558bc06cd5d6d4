/* A fuzz target without a fuzzer: runs it over files, or over all files of folders, and answers a
 * line `ok NAME` each. A broken promise ends the process, so that the plan `1..N` is not kept.
 *
 *   fuzz_kernel tests/fuzz/corpus/kernel
 */
#include "fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"

static struct {
  VEC(char *);
} files;

static void add_folder(const char *path) {
  struct dirent **entries;
  int count = scandir(path, &entries, NULL, alphasort);
  if (count < 0) return;
  for (int i = 0; i < count; i++) {
    if (entries[i]->d_name[0] != '.') {
      char *file = mem_alloc(strlen(path) + strlen(entries[i]->d_name) + 2);
      sprintf(file, "%s/%s", path, entries[i]->d_name);
      VEC_PUSH(&files, file);
    }
    free(entries[i]);
  }
  free(entries);
}

static void add(const char *path) {
  struct stat s;
  if (stat(path, &s) == 0 && S_ISDIR(s.st_mode))
    add_folder(path);
  else
    VEC_PUSH(&files, mem_strdup(path));
}

/* The bytes in memory of their own, so that a sanitizer sees a read past the end. */
static bool replay(const char *path) {
  FILE *file = fopen(path, "rb");
  struct stat s;
  if (!file || fstat(fileno(file), &s)) return false;
  size_t size = (size_t)s.st_size;
  uint8_t *data = malloc(size ? size : 1);
  bool good = data && fread(data, 1, size, file) == size;
  if (good) LLVMFuzzerTestOneInput(data, size);
  free(data);
  fclose(file);
  return good;
}

int main(int argc, char **argv) {
  int failed = 0;
  for (int i = 1; i < argc; i++) add(argv[i]);
  printf("1..%d\n", files.count ? files.count : 1);
  for (int i = 0; i < files.count; i++) {
    bool good = replay(files.data[i]);
    printf("%s %s\n", good ? "ok" : "not ok", files.data[i]);
    fflush(stdout);
    failed += !good;
    free(files.data[i]);
  }
  free(files.data);
  return failed || !files.count;
}
