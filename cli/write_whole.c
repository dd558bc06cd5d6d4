/* Write a file completely or not at all.
 *
 *     .NAME.TOKEN.new   is written, synced to disk, then renamed to   NAME
 *
 * A symbolic link stays: NAME is the file that it leads to. What is no regular file, such as a pipe
 * or a device, is written directly, and so is an open file that /proc names, such as /dev/stdout.
 *
 * TOKEN is random, and the file is new: two writers never share one. A writer locks its own; what a
 * killed writer has left is not locked, and the next writer of NAME removes it. python/canvas/files.py
 * does the same.
 */
#define _DEFAULT_SOURCE /* flock, getentropy beside the rest */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef __APPLE__
#include <sys/random.h>
#endif

#include "command.h"

enum {
  STEM = 200, /* bytes of NAME that a temporary name holds: systems take names of 255 */
  TOKEN = 16, /* hexadecimal digits */
  LONGEST = STEM + TOKEN + 8,
  LINKS = 40,   /* that are followed: as many as Linux follows */
  TARGET = 4096 /* bytes of a link's target: systems take paths of so many */
};

struct place {
  int folder; /* open */
  const char *name;
  char head[STEM + 3]; /* ".NAME." */
  char temporary[LONGEST];
};

static int cannot_write(const char *path, int why) {
  return report_error("cannot write '%.900s': %s", path, strerror(why));
}

static bool is_at(int folder, const char *name, int handle) {
  struct stat there, here;
  return !fstatat(folder, name, &there, AT_SYMLINK_NOFOLLOW) && !fstat(handle, &here) &&
         there.st_dev == here.st_dev && there.st_ino == here.st_ino;
}

/* ---- what killed writers left ---------------------------------------------------------------- */

static bool is_temporary(const char *entry, const char *head) {
  size_t length = strlen(head);
  return !strncmp(entry, head, length) && strspn(entry + length, "0123456789abcdef") == TOKEN &&
         !strcmp(entry + length + TOKEN, ".new");
}

static void remove_if_free(int folder, const char *entry) {
  struct stat s;
  if (fstatat(folder, entry, &s, AT_SYMLINK_NOFOLLOW) || !S_ISREG(s.st_mode) ||
      s.st_uid != geteuid())
    return;
  int handle = openat(folder, entry, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (handle < 0) return;
  if (!flock(handle, LOCK_EX | LOCK_NB) && is_at(folder, entry, handle)) unlinkat(folder, entry, 0);
  close(handle);
}

static void remove_left(const struct place *p) {
  struct dirent *entry;
  int handle = openat(p->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *all = handle < 0 ? NULL : fdopendir(handle);
  if (!all) {
    if (handle >= 0) close(handle);
    return;
  }
  while ((entry = readdir(all)))
    if (is_temporary(entry->d_name, p->head)) remove_if_free(p->folder, entry->d_name);
  closedir(all);
}

/* ---- symbolic links -------------------------------------------------------------------------- */

/* The path of what a link at `path` names, to be freed; NULL without memory. */
static char *target_path(const char *path, const char *target) {
  const char *slash = strrchr(path, '/');
  size_t folder = slash && *target != '/' ? (size_t)(slash - path) + 1 : 0;
  char *out = malloc(folder + strlen(target) + 1);
  if (!out) return NULL;
  memcpy(out, path, folder);
  strcpy(out + folder, target);
  return out;
}

/* The link is one of /proc: it stands for an open file, which may have no name. */
static bool is_of_process(const char *link) {
  struct stat s, proc;
  return !lstat(link, &s) && !stat("/proc/self/", &proc) && s.st_dev == proc.st_dev;
}

/* The path at the end of the links that begin at `path`, to be freed; it need not be there. NULL
 * with errno. `direct`: the end is no file that another may replace. */
static char *end_of_links(const char *path, bool *direct) {
  char *at = target_path("", path), target[TARGET + 1];
  struct stat s;
  ssize_t length = 0;
  *direct = false;
  for (int i = 0; at && (length = readlink(at, target, TARGET)) >= 0; i++) {
    char *next = NULL;
    *direct = *direct || is_of_process(at);
    target[length] = '\0';
    errno = i == LINKS ? ELOOP : ENOMEM;
    if (i < LINKS) next = target_path(at, target);
    free(at);
    at = next;
  }
  if (at && !stat(path, &s) && !S_ISREG(s.st_mode) && !S_ISDIR(s.st_mode)) *direct = true;
  return at;
}

/* ---- the new file ---------------------------------------------------------------------------- */

/* The folder of `path`, opened, and the names in it. False with errno. */
static bool find_place(const char *path, struct place *p) {
  const char *slash = strrchr(path, '/');
  size_t length = slash ? (size_t)(slash - path) + 1 : 0;
  char *parent = malloc(length + 2);
  if (!parent) return false;
  memcpy(parent, path, length);
  memcpy(parent + length, ".", 2);
  p->name = path + length;
  p->folder = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  int why = errno;
  free(parent);
  errno = why;
  snprintf(p->head, sizeof p->head, ".%.*s.", STEM, p->name);
  return p->folder >= 0;
}

/* A file that is ours alone and holds its lock; -1 with errno. Where files cannot be locked nobody
 * removes what is left. */
static int open_new(struct place *p) {
  unsigned char token[TOKEN / 2];
  for (;;) {
    if (getentropy(token, sizeof token)) return -1;
    int at = snprintf(p->temporary, sizeof p->temporary, "%s", p->head);
    for (int i = 0; i < TOKEN / 2; i++)
      at += snprintf(p->temporary + at, sizeof p->temporary - (size_t)at, "%02x", token[i]);
    snprintf(p->temporary + at, sizeof p->temporary - (size_t)at, ".new");
    int handle =
        openat(p->folder, p->temporary, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (handle < 0 && errno == EEXIST) continue;
    if (handle < 0) return -1;
    bool held = !flock(handle, LOCK_EX | LOCK_NB) || errno != EWOULDBLOCK;
    if (held && is_at(p->folder, p->temporary, handle)) return handle;
    close(handle);
  }
}

static bool put_bytes(FILE *file, const char *bytes, size_t length, int mode) {
  bool good = fwrite(bytes, 1, length, file) == length && !fflush(file);
  mode_t mask = umask(0);
  umask(mask);
  return good && !fchmod(fileno(file), (mode_t)mode & ~mask) && !fsync(fileno(file));
}

/* Renamed while it is locked. 0, or errno. */
static int put_file(struct place *p, const char *bytes, size_t length, int mode) {
  int handle = open_new(p);
  if (handle < 0) return errno;
  FILE *file = fdopen(handle, "wb");
  bool good = file && put_bytes(file, bytes, length, mode) &&
              !renameat(p->folder, p->temporary, p->folder, p->name);
  int why = good ? 0 : errno;
  if (!good) unlinkat(p->folder, p->temporary, 0);
  if (file)
    fclose(file);
  else
    close(handle);
  if (good) fsync(p->folder); /* some file systems sync no folders */
  return why;
}

/* 0, or errno. */
static int replace(const char *path, const char *bytes, size_t length, int mode) {
  struct place p;
  if (!find_place(path, &p)) return errno;
  remove_left(&p);
  int why = put_file(&p, bytes, length, mode);
  close(p.folder);
  return why;
}

/* 0, or errno. */
static int write_directly(const char *path, const char *bytes, size_t length) {
  int handle = open(path, O_WRONLY | O_TRUNC | O_NOCTTY | O_CLOEXEC);
  FILE *file = handle < 0 ? NULL : fdopen(handle, "wb");
  if (!file) return errno;
  bool good = fwrite(bytes, 1, length, file) == length;
  int why = good ? 0 : errno;
  return fclose(file) && good ? errno : why;
}

int write_whole(const char *path, const char *bytes, size_t length, int mode) {
  struct stat s;
  bool direct;
  if (!stat(path, &s) && S_ISDIR(s.st_mode))
    return report_error("'%.900s' is not a regular file", path);
  char *end = end_of_links(path, &direct);
  if (!end) return cannot_write(path, errno);
  int why = direct ? write_directly(path, bytes, length) : replace(end, bytes, length, mode);
  free(end);
  return why ? cannot_write(path, why) : EXIT_OK;
}
