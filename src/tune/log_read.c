/* Reads a tuning log. See log.h. */
#define _DEFAULT_SOURCE /* flock beside the rest */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fnv.h"
#include "tune/log.h"

/* ---- records --------------------------------------------------------------------------------- */

static size_t slot_of(const struct records *r, const char *text) {
  uint64_t h = fnv(text, strlen(text));
  size_t mask = (size_t)r->text_slots - 1, slot = (size_t)(h ^ h >> 32) & mask;
  while (r->texts[slot] && strcmp(r->texts[slot], text) != 0) slot = (slot + 1) & mask;
  return slot;
}

/* Grows the hash table; a quarter of the slots stays free. */
static void make_room(struct records *r) {
  if (4 * (r->text_count + 1) <= 3 * r->text_slots) return;
  const char **old = r->texts;
  int slots = r->text_slots;
  r->text_slots = slots ? 2 * slots : 64;
  r->texts = mem_alloc((size_t)r->text_slots * sizeof *r->texts);
  for (int i = 0; i < slots; i++)
    if (old[i]) r->texts[slot_of(r, old[i])] = old[i];
  mem_free(old);
}

/* The shared copy of a text; NULL counts as "". */
static char *keep(struct records *r, const char *text) {
  if (!text) text = "";
  make_room(r);
  size_t slot = slot_of(r, text);
  if (!r->texts[slot]) {
    r->texts[slot] = arena_strndup(&r->arena, text, strlen(text));
    r->text_count++;
  }
  return (char *)(uintptr_t)r->texts[slot];
}

void records_add(struct records *out, const struct record *r) {
  struct record kept = *r;
  char **texts[] = {&kept.program, &kept.edits,   &kept.schedule,  &kept.rule,     &kept.method,
                    &kept.message, &kept.machine, &kept.processor, &kept.compiler, &kept.version};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) *texts[i] = keep(out, *texts[i]);
  VEC_PUSH(out, kept);
}

void records_free(struct records *r) {
  mem_free(r->data);
  mem_free(r->texts);
  arena_free(&r->arena);
  *r = (struct records){0};
}

/* ---- lines ----------------------------------------------------------------------------------- */

enum { CHUNK = 1 << 20 };

struct lines {
  int file;
  int64_t left; /* unread bytes of the file */
  char *bytes;
  size_t capacity, start, end; /* [start, end): read but not yet returned */
};

/* Reads more bytes after `end`; false: failed, errno is set. A truncated file just ends. */
static bool read_more(struct lines *l) {
  if (l->start) memmove(l->bytes, l->bytes + l->start, l->end - l->start);
  l->end -= l->start;
  l->start = 0;
  if (l->capacity - l->end < CHUNK) {
    size_t capacity = 2 * l->capacity + CHUNK;
    l->bytes = mem_grow(l->bytes, capacity);
    l->capacity = capacity;
  }
  ssize_t got;
  do got = read(l->file, l->bytes + l->end, l->left < CHUNK ? (size_t)l->left : CHUNK);
  while (got < 0 && errno == EINTR);
  if (got < 0) return false;
  l->left = got ? l->left - got : 0;
  l->end += (size_t)got;
  return true;
}

/* The end of a line: \n, \r\n, or a lone \r of old editors; records contain neither. A \r in the
 * last byte may be followed by \n. NULL: not found. */
static const char *line_end(const char *bytes, size_t length) {
  const char *stop = memchr(bytes, '\n', length);
  size_t before = stop ? (size_t)(stop - bytes) : length;
  const char *alone = before ? memchr(bytes, '\r', before - 1) : NULL;
  return alone ? alone : stop;
}

/* The next line without its end, or a piece of one that is too long; *line is NULL after the last.
 * False: failed, errno is set. */
static bool next_line(struct lines *l, const char **line, size_t *length) {
  for (size_t seen = 0;;) {
    size_t have = l->end - l->start;
    const char *first = l->bytes + l->start;
    const char *stop = have > seen ? line_end(first + seen, have - seen) : NULL;
    if (stop || !l->left || have > LOG_LINE) {
      *line = have ? first : NULL;
      *length = stop ? (size_t)(stop - first) : have;
      l->start += *length + (stop != NULL);
      return true;
    }
    seen = have ? have - 1 : 0;
    if (!read_more(l)) return false;
  }
}

/* ---- a file ---------------------------------------------------------------------------------- */

static canvas_status broken(canvas_context *ctx, const char *path) {
  return fail(ctx, CANVAS_IO, "cannot read '%.500s': %s", path, strerror(errno));
}

/* Locks the file for reading. Without locks in the file system nobody appends either. False:
 * failed, errno is set. */
static bool lock_to_read(int file, bool *locked) {
  int status;
  while ((status = flock(file, LOCK_SH)) && errno == EINTR) continue;
  *locked = !status;
  return !status || errno == ENOSYS || errno == EOPNOTSUPP || errno == EINVAL;
}

/* Opens the file and takes its size while nobody writes; later bytes are not read. */
static canvas_status open_file(canvas_context *ctx, const char *path, struct lines *l) {
  struct stat s;
  l->file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (l->file < 0) return broken(ctx, path);
  bool locked;
  if (!lock_to_read(l->file, &locked)) return broken(ctx, path);
  bool known = !fstat(l->file, &s);
  if (locked) flock(l->file, LOCK_UN);
  if (!known) return broken(ctx, path);
  if (S_ISDIR(s.st_mode)) errno = EISDIR;
  if (S_ISDIR(s.st_mode)) return broken(ctx, path);
  if (!S_ISREG(s.st_mode))
    return fail(ctx, CANVAS_BAD_INPUT, "'%.500s' is no file, a tuning log has to be one", path);
  l->left = s.st_size;
  return CANVAS_OK;
}

static canvas_status check_begin(canvas_context *ctx, const char *path, const struct lines *l) {
  if (l->end == l->start || log_begins(l->bytes + l->start, l->end - l->start)) return CANVAS_OK;
  return fail(ctx, CANVAS_BAD_INPUT, "'%.500s' is no tuning log, give another file", path);
}

static void add_line(struct records *out, const char *line, size_t length, int64_t number) {
  canvas_context aside = {0};
  struct record r;
  if (record_parse(&aside, line, length, &r) == CANVAS_OK) {
    if (!r.outdated)
      records_add(out, &r);
    else if (!out->outdated++)
      out->outdated_line = number;
    record_free(&r);
  } else if (!out->damaged++) {
    out->line = number;
    memcpy(out->why, aside.message, sizeof out->why);
  }
}

static bool is_blank(const char *line, size_t length) {
  size_t i = 0;
  while (i < length && (line[i] == ' ' || line[i] == '\t' || line[i] == '\r')) i++;
  return i == length;
}

static canvas_status read_lines(canvas_context *ctx, const char *path, struct lines *l,
                                struct records *out) {
  if (!read_more(l)) return broken(ctx, path);
  TRY(check_begin(ctx, path, l));
  for (int64_t number = 1;; number++) {
    const char *line;
    size_t length;
    if (!next_line(l, &line, &length)) return broken(ctx, path);
    if (!line) return CANVAS_OK;
    if (!is_blank(line, length)) add_line(out, line, length, number);
  }
}

static void close_lines(void *lines) {
  const struct lines *l = lines;
  if (l->file >= 0) close(l->file);
}

canvas_status log_read(canvas_context *ctx, const char *path, struct records *out) {
  struct lines l = {.file = -1};
  struct mem_deferred closing;
  mem_defer(&closing, close_lines, &l);
  canvas_status status = open_file(ctx, path, &l);
  if (status == CANVAS_OK) status = read_lines(ctx, path, &l, out);
  mem_undefer(&closing);
  close_lines(&l);
  mem_free(l.bytes);
  return status;
}
