/* Files that carry a seal: what is read is what was written.
 *
 *     bytes of the file | mark | their number | hash of its name | hash of all of these
 *
 * The seal stands behind the end of an object, where no loader and no linker looks. It is no signature: it finds
 * bytes that a disk has changed, cut off or exchanged; who may write is checked by owner and mode (cache.h).
 */
#ifndef CANVAS_RUN_SEALED_H
#define CANVAS_RUN_SEALED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* Equal for equal bytes; a changed bit always changes it. */
uint64_t sealed_hash(const void *bytes, size_t length);

/* Puts the seal at the end of a file and brings both to the disk; false: errno says why not. */
bool sealed_put(const char *path, uint64_t name);

/* Whether the seal of an open file fits; *name is the hash that sealed_put was given. */
bool sealed_check(int file, uint64_t *name);

/* Copies the bytes without the seal into a new file, and checks the copy. */
bool sealed_copy(int file, const char *to);

/* At most `most` of the bytes without the seal, of a file that was checked; false: there are more. */
bool sealed_read(int file, size_t most, struct buf *out);

/* dlopen of an open file, as it was checked, whatever its path leads to meanwhile. Where the system has no
 * /proc/self/fd it is loaded by its path. NULL: `ctx` has the reason, which names the path. */
void *sealed_load(canvas_context *ctx, int file, const char *path);

#endif
