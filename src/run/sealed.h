/* Sealed files: detect bytes that changed after writing.
 *
 *     bytes of the file | mark | their number | hash of the name | hash of all of these
 *
 * The seal follows the end of an object, where loaders and linkers do not look. It is no signature:
 * it detects bytes that a disk has changed, truncated or swapped. Owner and mode protect against
 * others (cache.h).
 */
#ifndef CANVAS_RUN_SEALED_H
#define CANVAS_RUN_SEALED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* Hash of the bytes; changing one bit always changes it. */
uint64_t sealed_hash(const void *bytes, size_t length);

/* Appends the seal to a file and flushes it to disk; false: failed, errno has the reason. */
bool sealed_put(const char *path, uint64_t name);

/* Whether the seal of an open file is valid; *name is the hash passed to sealed_put. */
bool sealed_check(int file, uint64_t *name);

/* Copies the bytes without the seal to a new file, and verifies them. */
bool sealed_copy(int file, const char *to);

/* Reads the bytes of a checked file without the seal; false: more than `most`. */
bool sealed_read(int file, size_t most, struct buf *out);

/* dlopen of an open, checked file, whatever its path refers to now; without /proc/self/fd, by its
 * path. NULL: `ctx` has the reason with the path. */
void *sealed_load(canvas_context *ctx, int file, const char *path);

#endif
