/* Stores compiled code by content. See cache.h. */
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
#include "run/sealed.h"

enum {
  STALE = 24 * 3600, /* age in seconds of an abandoned work folder */
  AGAIN = 20         /* attempts to create folders that others remove */
};

/* ---- the folder ------------------------------------------------------------------------------ */

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

static canvas_status make_part(canvas_context *ctx, const char *cache, const char *name) {
  char *path = path_join(cache, name);
  canvas_status status = make_place(ctx, path);
  if (status == CANVAS_OK) status = check_place_part(ctx, path);
  mem_free(path);
  return status;
}

static canvas_status make_all(canvas_context *ctx, const char *cache) {
  TRY(make_place(ctx, cache));
  TRY(check_place_part(ctx, cache));
  TRY(make_part(ctx, cache, "objects"));
  return make_part(ctx, cache, "work");
}

/* Retries, since the cache may be removed between two mkdir calls. */
canvas_status cache_again(canvas_context *ctx, const char *cache) {
  canvas_status status = CANVAS_IO;
  for (int again = 0; again < AGAIN && status != CANVAS_OK; again++) status = make_all(ctx, cache);
  return status;
}

canvas_status cache_open(canvas_context *ctx, const char *folder, char **out) {
  char *path, *real = NULL, *from = NULL;
  if (!folder) TRY(from_environment(ctx, &from));
  path = path_absolute(folder ? folder : from); /* compilers run in other folders */
  mem_free(from);
  canvas_status status = make_place(ctx, path);
  if (status == CANVAS_OK) status = check_place(ctx, path, &real);
  if (status == CANVAS_OK) status = cache_again(ctx, real);
  mem_free(path);
  if (status == CANVAS_OK)
    *out = real;
  else
    mem_free(real);
  return status;
}

/* ---- objects --------------------------------------------------------------------------------- */

static uint64_t scramble(uint64_t h) {
  h = (h ^ (h >> 32)) * UINT64_C(0xD6E8FEB86659FD93);
  h = (h ^ (h >> 32)) * UINT64_C(0xD6E8FEB86659FD93);
  return h ^ (h >> 32);
}

/* objects/5f/5f03...a1, from two independent hashes of the key. */
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

/* Opens CACHE/objects/5f/NAME.so folder by folder, checking each. */
static int open_object(const char *object, uint64_t *name) {
  enum { PARTS = 3 };
  char *path = mem_strdup(object), *part[PARTS];
  for (int i = PARTS - 1; i >= 0; i--) {
    char *end = strrchr(path, '/');
    if (!end) return mem_free(path), -1;
    *end = '\0';
    part[i] = end + 1;
  }
  int at = open_place(AT_FDCWD, path);
  for (int i = 0; at >= 0 && i < PARTS; i++) {
    int next = i < PARTS - 1 ? open_place(at, part[i]) : open_place_file(at, part[i]);
    close(at);
    at = next;
  }
  mem_free(path);
  if (at < 0 || sealed_check(at, name)) return at;
  close(at);
  return -1;
}

/* Hash of the name in the seal: an object under another name is rejected. */
static uint64_t name_seal(const char *object) {
  const char *name = strrchr(object, '/') + 1;
  return sealed_hash(name, strlen(name));
}

int cache_open_object(const char *object) {
  uint64_t name;
  int file = open_object(object, &name);
  if (file < 0 || name == name_seal(object)) return file;
  close(file);
  return -1;
}

static void close_held(void *held) {
  int file = ((struct held_file *)held)->file;
  if (file >= 0) close(file);
}

void file_hold(struct held_file *held, int file) {
  held->file = file;
  mem_defer(&held->closing, close_held, held);
}

int file_take(struct held_file *held) {
  mem_undefer(&held->closing);
  return held->file;
}

void file_release(struct held_file *held) {
  file_take(held);
  close_held(held);
}

bool cache_copy_object(const char *object, const char *to) {
  int file = cache_open_object(object);
  if (file < 0) return false;
  bool good = sealed_copy(file, to);
  close(file);
  return good;
}

static bool is_object(const char *path) {
  int file = cache_open_object(path);
  if (file >= 0) close(file);
  return file >= 0;
}

char *cache_find(const char *cache, const char *key, size_t length) {
  char *name = object_name(cache, key, length);
  char *source = with_ending(name, ".c"), *object = with_ending(name, ".so");
  if (!holds(source, key, length) || !is_object(object)) {
    mem_free(object);
    object = NULL;
  }
  mem_free(source);
  mem_free(name);
  return object;
}

/* Flushes the new name to disk. A failure costs only a compilation after a power loss. */
static void sync_folder(const char *path) {
  int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  fsync(folder);
  close(folder);
}

/* A new file and its place in the cache. */
struct keeping {
  const char *key, *made;
  size_t length;
  char *folder, *source, *object; /* paths in the cache */
};

/* Renames, also over an empty folder. */
static bool rename_over(const char *made, const char *object) {
  if (!rename(made, object)) return true;
  return errno == EISDIR && !rmdir(object) && !rename(made, object);
}

/* Moves the key, then the object; one without the other is ignored. False: errno has the reason. */
static bool rename_both(const struct keeping *k, const char *work, bool sealed) {
  canvas_context ctx;
  char *source = path_join(work, "key.c"), *made = path_join(work, k->made);
  bool good = (sealed || sealed_put(made, name_seal(k->object))) &&
              file_write(&ctx, source, k->key, k->length) == CANVAS_OK &&
              !rename(source, k->source) && rename_over(made, k->object);
  int why = errno;
  mem_free(source);
  mem_free(made);
  errno = why;
  return good;
}

/* Copies the file to a new work folder of the cache, since others may be on another disk. */
static canvas_status bring_in(canvas_context *ctx, const char *cache, const struct keeping *k,
                              const struct buf *bytes, char **work) {
  struct mem_deferred dropping;
  TRY(cache_work(ctx, cache, work));
  mem_defer(&dropping, cache_work_drop, *work);
  char *made = path_join(*work, k->made);
  canvas_status status = file_write(ctx, made, bytes->text, bytes->length);
  mem_free(made);
  mem_undefer(&dropping);
  return status;
}

static canvas_status keep(canvas_context *ctx, const char *cache, const struct keeping *k,
                          const char *work, const struct buf *bytes) {
  canvas_status status = CANVAS_IO;
  for (int again = 0; again < AGAIN; again++) {
    char *inside = NULL;
    int why = 0;
    status = make_place(ctx, k->folder);
    if (status == CANVAS_OK) status = check_place_part(ctx, k->folder);
    if (status == CANVAS_OK && bytes) status = bring_in(ctx, cache, k, bytes, &inside);
    if (status == CANVAS_OK && !rename_both(k, inside ? inside : work, again && !bytes)) {
      why = errno;
      status = fail(ctx, CANVAS_IO, "cannot write '%.500s': %s", k->object, strerror(why));
    }
    cache_work_end(inside);
    if (status == CANVAS_OK) break;
    if (why != ENOENT && !cache_work_gone(k->folder)) break;
  }
  if (status == CANVAS_OK) sync_folder(k->folder);
  return status;
}

canvas_status cache_keep(canvas_context *ctx, const char *cache, const char *key, size_t length,
                         const char *work, const char *made, char **out) {
  char *name = object_name(cache, key, length), *path = path_join(work, made);
  struct keeping k = {.key = key, .made = made, .length = length, .folder = mem_strdup(name)};
  struct buf bytes = {0};
  *strrchr(k.folder, '/') = '\0';
  k.source = with_ending(name, ".c");
  k.object = with_ending(name, ".so");
  bool outside = strncmp(work, cache, strlen(cache)) != 0;
  canvas_status status = CANVAS_OK;
  if (outside && !file_read(path, SIZE_MAX - 1, &bytes))
    status = fail(ctx, CANVAS_IO, "cannot write '%.500s': %s", k.object, strerror(errno));
  if (status == CANVAS_OK) status = keep(ctx, cache, &k, work, outside ? &bytes : NULL);
  if (status == CANVAS_OK)
    *out = k.object;
  else
    mem_free(k.object);
  buf_free(&bytes);
  mem_free(k.source);
  mem_free(k.folder);
  mem_free(path);
  mem_free(name);
  return status;
}

void cache_drop(const char *object) {
  unlink(object);
}

/* ---- work folders ---------------------------------------------------------------------------- */

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

/* Identifies the boot and process namespace in which process ids are comparable. 0: unknown. */
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

/* Parses the name of a work folder, PLACE-PROCESS-XXXXXX. Other names are users' own folders. */
static bool parse_work(const char *name, uint64_t *place, long *process) {
  static const char hex[] = "0123456789abcdef", decimal[] = "0123456789";
  size_t first = strspn(name, hex);
  if (!first || first > 16 || name[first] != '-') return false;
  const char *number = name + first + 1;
  size_t second = strspn(number, decimal);
  if (!second || second > 10 || number[second] != '-') return false;
  const char *drawn = number + second + 1;
  if (strlen(drawn) != 6 || strchr(drawn, '-')) return false;
  *place = strtoull(name, NULL, 16);
  *process = strtol(number, NULL, 10);
  return true;
}

/* Whether the folder is abandoned: its process here has ended, or it is a day old. */
static bool is_left(const char *name, const struct stat *s) {
  uint64_t place;
  long process;
  if (!S_ISDIR(s->st_mode) || s->st_uid != geteuid() || !parse_work(name, &place, &process))
    return false;
  if (s->st_mtime < time(NULL) - STALE) return true;
  return place && place == here() && process > 0 && kill((pid_t)process, 0) && errno == ESRCH;
}

static void close_folder(void *folder) {
  closedir(folder);
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
    if (!lstat(work, &s) && is_left(entry->d_name, &s)) remove_folder(work);
    mem_free(work);
  }
  mem_undefer(&closing);
  closedir(folder);
}

canvas_status cache_work(canvas_context *ctx, const char *cache, char **out) {
  char *parent = path_join(cache, "work");
  canvas_status status = CANVAS_OK;
  remove_stale(parent);
  *out = NULL;
  for (int again = 0; again < AGAIN && !*out && status == CANVAS_OK; again++) {
    struct buf path = {0};
    buf_printf(&path, "%s/%llx-%ld-XXXXXX", parent, (unsigned long long)here(), (long)getpid());
    if (mkdtemp(path.text))
      *out = buf_take(&path);
    else if (errno != ENOENT || again == AGAIN - 1)
      status = cannot_make_place(ctx, path.text);
    else
      status = cache_again(ctx, cache);
    buf_free(&path);
  }
  mem_free(parent);
  return status;
}

canvas_status cache_work_outside(canvas_context *ctx, char **out) {
  const char *set = getenv("TMPDIR"), *folder = set && *set == '/' ? set : "/tmp";
  struct buf path = {0};
  char *real;
  TRY(check_place(ctx, folder, &real));
  buf_printf(&path, "%s/canvas-work-XXXXXX", real);
  mem_free(real);
  canvas_status status = mkdtemp(path.text) ? CANVAS_OK : cannot_make_place(ctx, path.text);
  if (status == CANVAS_OK) *out = buf_take(&path);
  buf_free(&path);
  return status;
}

bool cache_work_gone(const char *work) {
  return access(work, F_OK) && errno == ENOENT;
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
