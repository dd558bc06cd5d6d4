/* Compiled code by content. See cache.h. */
#define _DEFAULT_SOURCE /* mkdtemp beside the rest */
#include "run/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"

enum { STALE = 24 * 3600 }; /* seconds after which a work folder is nobody's */

char *path_join(const char *folder, const char *name) {
  struct buf path = {0};
  buf_printf(&path, "%s/%s", folder, name);
  return buf_take(&path);
}

static void close_file(void *file) {
  fclose(file);
}

static void close_folder(void *folder) {
  closedir(folder);
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

/* ---- the folder ----------------------------------------------------------------------------- */

/* mkdir -p; the new folders are ours alone. */
static canvas_status make_folder(canvas_context *ctx, const char *path) {
  char *part = mem_strdup(path);
  canvas_status status = CANVAS_OK;
  for (char *p = part + 1;; p++) {
    bool end = !*p;
    if (*p != '/' && !end) continue;
    *p = '\0';
    if (mkdir(part, 0700) && errno != EEXIST && end)
      status =
          fail(ctx, CANVAS_IO, "cannot make the folder '%.500s': %s; set CANVAS_CACHE to another",
               path, strerror(errno));
    if (end) break;
    *p = '/';
  }
  mem_free(part);
  return status;
}

static canvas_status from_environment(canvas_context *ctx, char **out) {
  const char *own = getenv("CANVAS_CACHE"), *shared = getenv("XDG_CACHE_HOME");
  const char *home = getenv("HOME");
  if (own && *own) {
    *out = mem_strdup(own);
  } else if (shared && *shared == '/') {
    *out = path_join(shared, "canvas");
  } else if (home && *home) {
    *out = path_join(home, ".cache/canvas");
  } else {
    return fail(ctx, CANVAS_IO,
                "HOME is not set, so say in CANVAS_CACHE where compiled code is kept");
  }
  return CANVAS_OK;
}

/* Code from there will be run: nobody else may put any there. */
static canvas_status check_owner(canvas_context *ctx, const char *folder) {
  struct stat s;
  if (stat(folder, &s) || !S_ISDIR(s.st_mode))
    return fail(ctx, CANVAS_IO, "'%.500s' is no folder, set CANVAS_CACHE to another", folder);
  if (s.st_uid != geteuid() || (s.st_mode & S_IWOTH))
    return fail(ctx, CANVAS_IO,
                "others may write to '%.500s', set CANVAS_CACHE to a folder of your own", folder);
  return CANVAS_OK;
}

static canvas_status make_parts(canvas_context *ctx, const char *folder) {
  TRY(make_folder(ctx, folder));
  TRY(check_owner(ctx, folder));
  char *objects = path_join(folder, "objects"), *work = path_join(folder, "work");
  canvas_status status = make_folder(ctx, objects);
  if (status == CANVAS_OK) status = make_folder(ctx, work);
  mem_free(objects);
  mem_free(work);
  return status;
}

char *path_absolute(const char *path) {
  char here[4096];
  return *path == '/' || !getcwd(here, sizeof here) ? mem_strdup(path) : path_join(here, path);
}

canvas_status cache_open(canvas_context *ctx, const char *folder, char **out) {
  char *path, *from = NULL;
  if (!folder) TRY(from_environment(ctx, &from));
  path = path_absolute(folder ? folder : from); /* compilers run in folders of their own */
  mem_free(from);
  canvas_status status = make_parts(ctx, path);
  if (status == CANVAS_OK)
    *out = path;
  else
    mem_free(path);
  return status;
}

/* ---- objects -------------------------------------------------------------------------------- */

static uint64_t scramble(uint64_t h) {
  h = (h ^ (h >> 32)) * UINT64_C(0xD6E8FEB86659FD93);
  h = (h ^ (h >> 32)) * UINT64_C(0xD6E8FEB86659FD93);
  return h ^ (h >> 32);
}

/* objects/5f/5f03...a1: two hashes that walk over the key with different steps. */
static char *object_name(const char *cache, const char *key, size_t length) {
  uint64_t a = length, b = ~(uint64_t)length;
  for (size_t i = 0; i < length; i++) {
    a = (a ^ (unsigned char)key[i]) * UINT64_C(0x100000001B3);
    b = scramble(b + (unsigned char)key[i]);
  }
  a = scramble(a);
  struct buf path = {0};
  buf_printf(&path, "%s/objects/%02x/%016llx%016llx", cache, (unsigned)(a >> 56),
             (unsigned long long)a, (unsigned long long)b);
  return buf_take(&path);
}

static char *with_ending(const char *name, const char *ending) {
  struct buf path = {0};
  buf_printf(&path, "%s%s", name, ending);
  return buf_take(&path);
}

static bool holds(const char *path, const char *key, size_t length) {
  struct buf text = {0};
  bool same = file_read(path, length, &text) && text.length == length &&
              (!length || !memcmp(text.text, key, length));
  buf_free(&text);
  return same;
}

static uint64_t number_at(const unsigned char *bytes, int count) {
  uint64_t number = 0;
  for (int i = count - 1; i >= 0; i--) number = number << 8 | bytes[i];
  return number;
}

/* The table of sections stands at the end of what linkers and assemblers write: an ELF file of 64 bits, low byte
 * first, that ends before it was cut off, and what is beyond its end is a signal to whoever loads it. */
static bool is_cut_off(const char *path, int64_t size) {
  unsigned char head[64];
  FILE *file = fopen(path, "rb");
  bool known =
      file && fread(head, 1, sizeof head, file) == sizeof head && !memcmp(head, "\177ELF\2\1", 6);
  if (file) fclose(file);
  if (!known) return false;
  uint64_t at = number_at(head + 40, 8),
           sections = number_at(head + 58, 2) * number_at(head + 60, 2);
  return at > (uint64_t)size || sections > (uint64_t)size - at;
}

char *cache_find(const char *cache, const char *key, size_t length) {
  char *name = object_name(cache, key, length);
  char *source = with_ending(name, ".c"), *object = with_ending(name, ".so");
  struct stat s;
  if (stat(object, &s) || !s.st_size || !holds(source, key, length) ||
      is_cut_off(object, s.st_size)) {
    mem_free(object);
    object = NULL;
  }
  mem_free(source);
  mem_free(name);
  return object;
}

static canvas_status move(canvas_context *ctx, const char *from, const char *to) {
  if (!rename(from, to)) return CANVAS_OK;
  return fail(ctx, CANVAS_IO, "cannot write '%.500s': %s", to, strerror(errno));
}

/* The key comes first: an object without its key is not found, a key without its object neither. */
canvas_status cache_keep(canvas_context *ctx, const char *cache, const char *key, size_t length,
                         const char *work, const char *made, char **out) {
  char *name = object_name(cache, key, length), *folder = mem_strdup(name);
  *strrchr(folder, '/') = '\0';
  char *source = with_ending(name, ".c"), *object = with_ending(name, ".so");
  char *new_source = path_join(work, "key.c"), *new_object = path_join(work, made);
  canvas_status status = make_folder(ctx, folder);
  if (status == CANVAS_OK) status = file_write(ctx, new_source, key, length);
  if (status == CANVAS_OK) status = move(ctx, new_source, source);
  if (status == CANVAS_OK) status = move(ctx, new_object, object);
  if (status == CANVAS_OK)
    *out = object;
  else
    mem_free(object);
  mem_free(new_object);
  mem_free(new_source);
  mem_free(source);
  mem_free(folder);
  mem_free(name);
  return status;
}

void cache_drop(const char *object) {
  unlink(object);
}

/* ---- work folders --------------------------------------------------------------------------- */

/* Removes a folder and the files in it. */
static void remove_folder(const char *path) {
  DIR *folder = opendir(path);
  struct dirent *entry;
  if (!folder) return;
  while ((entry = readdir(folder))) {
    if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
    unlinkat(dirfd(folder), entry->d_name, 0);
  }
  closedir(folder);
  rmdir(path);
}

static void mix(uint64_t *hash, const char *text, ssize_t length) {
  for (ssize_t i = 0; i < length; i++)
    *hash = (*hash ^ (unsigned char)text[i]) * UINT64_C(0x100000001B3);
}

/* Where the numbers of processes mean the same: one start of one machine, one namespace of its
 * processes. 0: nobody knows. */
static uint64_t here(void) {
  char text[64];
  uint64_t hash = 1;
  int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  ssize_t length = file < 0 ? -1 : read(file, text, sizeof text);
  if (file >= 0) close(file);
  if (length <= 0) return 0;
  mix(&hash, text, length);
  length = readlink("/proc/self/ns/pid", text, sizeof text);
  if (length <= 0) return 0;
  mix(&hash, text, length);
  return hash;
}

/* A work folder is called PLACE-PROCESS-XXXXXX: its process of this place runs no more. */
static bool is_left(const char *name) {
  char *end;
  uint64_t place = strtoull(name, &end, 16);
  if (*end != '-' || !place || place != here()) return false;
  long process = strtol(end + 1, &end, 10);
  return *end == '-' && process > 0 && kill((pid_t)process, 0) && errno == ESRCH;
}

static void remove_stale(const char *parent) {
  DIR *folder = opendir(parent);
  struct dirent *entry;
  struct mem_deferred closing;
  struct stat s;
  if (!folder) return;
  mem_defer(&closing, close_folder, folder);
  while ((entry = readdir(folder))) {
    if (entry->d_name[0] == '.') continue;
    char *work = path_join(parent, entry->d_name);
    bool old = !stat(work, &s) && s.st_mtime < time(NULL) - STALE;
    if (old || is_left(entry->d_name)) remove_folder(work);
    mem_free(work);
  }
  mem_undefer(&closing);
  closedir(folder);
}

canvas_status cache_work(canvas_context *ctx, const char *cache, char **out) {
  struct buf path = {0};
  char *parent = path_join(cache, "work");
  remove_stale(parent);
  buf_printf(&path, "%s/%llx-%ld-XXXXXX", parent, (unsigned long long)here(), (long)getpid());
  mem_free(parent);
  if (mkdtemp(path.text)) {
    *out = buf_take(&path);
    return CANVAS_OK;
  }
  int why = errno;
  canvas_status status =
      fail(ctx, CANVAS_IO, "cannot make the folder '%.500s': %s; set CANVAS_CACHE to another",
           path.text, strerror(why));
  buf_free(&path);
  return status;
}

void cache_work_drop(void *work) {
  remove_folder(work);
}

void cache_work_end(char *work) {
  if (!work) return;
  remove_folder(work);
  mem_free(work);
}

canvas_status cache_has_room(canvas_context *ctx, const char *cache) {
  static const char bytes[1 << 16];
  canvas_context inner = {.message = ""};
  char *work;
  struct mem_deferred dropping;
  TRY(cache_work(ctx, cache, &work));
  mem_defer(&dropping, cache_work_drop, work);
  char *path = path_join(work, "room");
  canvas_status status = file_write(&inner, path, bytes, sizeof bytes);
  if (status != CANVAS_OK)
    status = fail(ctx, status, "%.800s; make room, or set CANVAS_CACHE to another folder",
                  inner.message);
  mem_free(path);
  mem_undefer(&dropping);
  cache_work_end(work);
  return status;
}
