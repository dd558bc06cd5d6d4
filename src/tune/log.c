/* Appends to a tuning log. See log.h. */
#define _DEFAULT_SOURCE /* flock beside the rest */
#include "tune/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

struct log {
  struct mem_deferred closing;
  int file;
  char *path;
  int64_t cut;
};

/* Accepts RECORD_BEGIN, and blanks that other tools insert before the first key. */
bool log_begins(const char *bytes, size_t size) {
  static const char wanted[] = "{\"canvas_log\"";
  const char *p = bytes, *end = bytes + (size < LOG_HEAD ? size : LOG_HEAD);
  if (size < sizeof RECORD_BEGIN - 1 && !memcmp(bytes, RECORD_BEGIN, size)) return true;
  for (const char *w = wanted; *w; w++) {
    while (p < end && (*p == ' ' || *p == '\t') && (w == wanted || w == wanted + 1)) p++;
    if (p == end || *p++ != *w) return false;
  }
  return true;
}

static canvas_status broken(canvas_context *ctx, const struct log *log, const char *what) {
  return fail(ctx, CANVAS_IO, "cannot %s '%.500s': %s", what, log->path, strerror(errno));
}

static bool ends_line(char byte) {
  return byte == '\n' || byte == '\r';
}

/* ---- under the lock -------------------------------------------------------------------------- */

static canvas_status find_size(canvas_context *ctx, const struct log *log, int64_t *size) {
  struct stat s;
  if (log->file < 0 || fstat(log->file, &s)) return broken(ctx, log, "read");
  *size = s.st_size;
  return CANVAS_OK;
}

/* Reads [from, from + length); fails if the file ends before. */
static canvas_status read_at(canvas_context *ctx, const struct log *log, int64_t from,
                             size_t length, char *out) {
  for (size_t done = 0; done < length;) {
    ssize_t got = pread(log->file, out + done, length - done, from + (int64_t)done);
    if (got < 0 && errno == EINTR) continue;
    if (!got) errno = EIO; /* the file was truncated meanwhile */
    if (got <= 0) return broken(ctx, log, "read");
    done += (size_t)got;
  }
  return CANVAS_OK;
}

static canvas_status check_begin(canvas_context *ctx, const struct log *log, int64_t size) {
  char bytes[LOG_HEAD];
  size_t length = size < LOG_HEAD ? (size_t)size : LOG_HEAD;
  TRY(read_at(ctx, log, 0, length, bytes));
  if (log_begins(bytes, length)) return CANVAS_OK;
  return fail(ctx, CANVAS_BAD_INPUT, "'%.500s' is no tuning log, give another file", log->path);
}

/* Start of an unterminated last line; `size` if all lines are terminated. */
static canvas_status find_torn(canvas_context *ctx, const struct log *log, int64_t size,
                               int64_t *out) {
  char bytes[4096];
  for (int64_t end = size; end > 0;) {
    int64_t from = end > (int64_t)sizeof bytes ? end - (int64_t)sizeof bytes : 0;
    size_t length = (size_t)(end - from);
    TRY(read_at(ctx, log, from, length, bytes));
    for (size_t i = length; i-- > 0;)
      if (ends_line(bytes[i])) {
        *out = from + (int64_t)i + 1;
        return CANVAS_OK;
      }
    end = from;
  }
  *out = 0;
  return CANVAS_OK;
}

/* Whether the bytes are a record that lacks only its line break. */
static bool only_lacks_end(const struct log *log, int64_t from, int64_t size) {
  canvas_context aside = {0};
  struct record r;
  char *line = size - from <= LOG_LINE ? mem_alloc((size_t)(size - from)) : NULL;
  bool good = line && read_at(&aside, log, from, (size_t)(size - from), line) == CANVAS_OK &&
              record_parse(&aside, line, (size_t)(size - from), &r) == CANVAS_OK;
  if (good) record_free(&r);
  mem_free(line);
  return good;
}

/* Appends all of the bytes to a file of `size`, or none. */
static canvas_status put(canvas_context *ctx, const struct log *log, int64_t size,
                         const char *bytes, size_t length) {
  for (size_t done = 0; done < length;) {
    ssize_t now = write(log->file, bytes + done, length - done);
    if (now < 0 && errno == EINTR) continue;
    if (now <= 0) {
      int why = now ? errno : ENOSPC;
      if (done && ftruncate(log->file, size)) why = errno; /* the next log_open repairs it */
      errno = why;
      return broken(ctx, log, "write to the log");
    }
    done += (size_t)now;
  }
  return CANVAS_OK;
}

/* Terminates or removes an unterminated last line; *size is the file's size. */
static canvas_status mend(canvas_context *ctx, struct log *log, int64_t *size) {
  char last;
  TRY(find_size(ctx, log, size));
  if (!*size) return CANVAS_OK;
  TRY(check_begin(ctx, log, *size));
  TRY(read_at(ctx, log, *size - 1, 1, &last));
  if (ends_line(last)) return CANVAS_OK;
  int64_t from;
  TRY(find_torn(ctx, log, *size, &from));
  if (only_lacks_end(log, from, *size)) {
    TRY(put(ctx, log, *size, "\n", 1));
    ++*size;
    return CANVAS_OK;
  }
  if (ftruncate(log->file, from)) return broken(ctx, log, "repair the log");
  log->cut += *size - from;
  *size = from;
  return CANVAS_OK;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static canvas_status lock(canvas_context *ctx, const struct log *log) {
  while (flock(log->file, LOCK_EX))
    if (errno != EINTR) return broken(ctx, log, "lock the log");
  return CANVAS_OK;
}

static canvas_status open_file(canvas_context *ctx, struct log *log) {
  struct stat s;
  log->file =
      open(log->path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666);
  if (log->file < 0) return broken(ctx, log, "open the log");
  if (fstat(log->file, &s)) return broken(ctx, log, "read");
  if (!S_ISREG(s.st_mode))
    return fail(ctx, CANVAS_BAD_INPUT, "'%.500s' is no file, a tuning log has to be one",
                log->path);
  return CANVAS_OK;
}

static void close_log(void *log) {
  log_close(log);
}

canvas_status log_open(canvas_context *ctx, const char *path, struct log **out) {
  struct log *log = mem_alloc(sizeof *log);
  int64_t size;
  log->file = -1;
  mem_defer(&log->closing, close_log, log);
  log->path = mem_strdup(path);
  canvas_status status = open_file(ctx, log);
  if (status == CANVAS_OK) status = lock(ctx, log);
  if (status == CANVAS_OK) {
    status = mend(ctx, log, &size);
    flock(log->file, LOCK_UN);
  }
  if (status == CANVAS_OK)
    *out = log;
  else
    log_close(log);
  return status;
}

canvas_status log_append(canvas_context *ctx, struct log *log, const struct record *r) {
  struct buf line = {0};
  int64_t size;
  record_print(r, &line);
  canvas_status status = lock(ctx, log);
  if (status == CANVAS_OK) {
    status = mend(ctx, log, &size); /* another process may have been killed meanwhile */
    if (status == CANVAS_OK) status = put(ctx, log, size, line.text, line.length);
    flock(log->file, LOCK_UN);
  }
  buf_free(&line);
  return status;
}

int64_t log_cut(const struct log *log) {
  return log->cut;
}

void log_close(struct log *log) {
  if (!log) return;
  mem_undefer(&log->closing);
  if (log->file >= 0) close(log->file);
  mem_free(log->path);
  mem_free(log);
}
