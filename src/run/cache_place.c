/* Checks that only the user can write to the cache. See cache.h. */
#define _GNU_SOURCE /* O_NOFOLLOW, O_DIRECTORY */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "run/cache.h"

enum {
  UNMAPPED = 65534 /* user id that Linux shows for users without a number in the namespace */
};
#define OTHERS ((mode_t)(S_IWGRP | S_IWOTH))

canvas_status cannot_make_place(canvas_context *ctx, const char *path) {
  return fail(ctx, CANVAS_IO, "cannot make the folder '%.500s': %s; set CANVAS_CACHE to another",
              path, strerror(errno));
}

canvas_status make_place(canvas_context *ctx, const char *path) {
  char *part = mem_strdup(path);
  canvas_status status = CANVAS_OK;
  for (char *p = part + 1;; p++) {
    bool end = !*p;
    if (*p != '/' && !end) continue;
    *p = '\0';
    if (mkdir(part, 0700) && errno != EEXIST && end) status = cannot_make_place(ctx, path);
    if (end) break;
    *p = '/';
  }
  mem_free(part);
  return status;
}

/* ---- folders of the cache -------------------------------------------------------------------- */

static bool is_ours(const struct stat *s) {
  return s->st_uid == geteuid() && !(s->st_mode & OTHERS);
}

static canvas_status check_part(canvas_context *ctx, const char *path, const struct stat *s) {
  if (S_ISLNK(s->st_mode))
    return fail(ctx, CANVAS_IO,
                "'%.500s' is a symbolic link, set CANVAS_CACHE to a folder that is none", path);
  if (!S_ISDIR(s->st_mode))
    return fail(ctx, CANVAS_IO, "'%.500s' is no folder, set CANVAS_CACHE to another", path);
  if (s->st_uid != geteuid())
    return fail(ctx, CANVAS_IO,
                "'%.500s' belongs to another user, set CANVAS_CACHE to a folder of your own", path);
  if (s->st_mode & OTHERS)
    return fail(ctx, CANVAS_IO,
                "others may write to '%.500s': chmod go-w it once you trust what is in it, or set "
                "CANVAS_CACHE to a folder of your own",
                path);
  return CANVAS_OK;
}

canvas_status check_place_part(canvas_context *ctx, const char *path) {
  struct stat s;
  if (lstat(path, &s)) return cannot_make_place(ctx, path);
  return check_part(ctx, path, &s);
}

static int checked(int file, bool folder) {
  struct stat s;
  if (file < 0) return -1;
  bool kind = !fstat(file, &s) && (folder ? S_ISDIR(s.st_mode) : S_ISREG(s.st_mode));
  if (kind && is_ours(&s)) return file;
  close(file);
  return -1;
}

int open_place(int at, const char *name) {
  return checked(openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), true);
}

/* Does not block if the file is a pipe. */
int open_place_file(int at, const char *name) {
  return checked(openat(at, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC), false);
}

/* ---- folders above it ------------------------------------------------------------------------ */

/* Whether the owner may be root, shown as nobody in a namespace without root. */
static bool is_unmapped(uid_t owner) {
  struct buf map = {0};
  if (owner != UNMAPPED) return false;
  bool some =
      file_read("/proc/self/uid_map", 4096, &map) && map.text && !strstr(map.text, "4294967295");
  buf_free(&map);
  return some;
}

/* Whether others may rename entries of the folder. The sticky bit forbids it. A group with its
 * owner's number has, by convention, no other members. */
static bool others_may_rename(const struct stat *s) {
  if (s->st_mode & S_ISVTX) return false;
  return s->st_mode & S_IWOTH || (s->st_mode & S_IWGRP && s->st_gid != s->st_uid);
}

static canvas_status check_owner(canvas_context *ctx, const char *path, const struct stat *s) {
  if (!s->st_uid || s->st_uid == geteuid() || is_unmapped(s->st_uid)) return CANVAS_OK;
  return fail(ctx, CANVAS_IO,
              "'%.500s' belongs to another user, who could exchange what is in it: set "
              "CANVAS_CACHE to a folder of your own",
              path);
}

static canvas_status check_above(canvas_context *ctx, const char *path) {
  struct stat s;
  if (lstat(path, &s)) return cannot_make_place(ctx, path);
  TRY(check_owner(ctx, path, &s));
  if (others_may_rename(&s))
    return fail(ctx, CANVAS_IO,
                "others could exchange what is in '%.500s': chmod go-w it, or set CANVAS_CACHE to "
                "a folder of your own",
                path);
  return CANVAS_OK;
}

/* Checks that symbolic links on the path belong to root or to us; their owner could redirect
 * them. */
static canvas_status check_links(canvas_context *ctx, char *path) {
  canvas_status status = CANVAS_OK;
  struct stat s;
  for (char *p = path; status == CANVAS_OK && (p = strchr(p + 1, '/'));) {
    *p = '\0';
    if (!lstat(path, &s) && S_ISLNK(s.st_mode)) status = check_owner(ctx, path, &s);
    *p = '/';
  }
  return status;
}

/* Checks from the root down, so that nobody can change what was checked. */
static canvas_status check_all_above(canvas_context *ctx, char *real) {
  canvas_status status = check_above(ctx, "/");
  for (char *p = real; status == CANVAS_OK && (p = strchr(p + 1, '/'));) {
    *p = '\0';
    status = check_above(ctx, real);
    *p = '/';
  }
  return status;
}

static void drop_slashes(char *path) {
  size_t length = strlen(path);
  while (length > 1 && path[length - 1] == '/') path[--length] = '\0';
}

canvas_status check_place(canvas_context *ctx, const char *path, char **out) {
  char *bare = mem_strdup(path), real[PATH_MAX];
  struct stat s;
  drop_slashes(bare);
  canvas_status status = CANVAS_OK;
  if (!lstat(bare, &s) && S_ISLNK(s.st_mode)) status = check_part(ctx, bare, &s);
  if (status == CANVAS_OK) status = check_links(ctx, bare);
  if (status == CANVAS_OK && !realpath(bare, real)) status = cannot_make_place(ctx, bare);
  if (status == CANVAS_OK) status = check_all_above(ctx, real);
  if (status == CANVAS_OK) *out = mem_strdup(real);
  mem_free(bare);
  return status;
}
