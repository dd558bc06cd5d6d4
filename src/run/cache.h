/* Cache of compiled code, found by content.
 *
 * The folder is $CANVAS_CACHE, or $XDG_CACHE_HOME/canvas, or ~/.cache/canvas. The key is a text
 * with everything that the result depends on (compiler, flags, machine, source). It is stored
 * beside the object as its .c file and compared byte for byte; its hash only names the two files.
 * New files are written to a work folder and renamed, so that any number of processes may share a
 * cache. The cache may be removed at any time.
 *
 *     objects/5f/5f03...a1.c    the key, which is also the source
 *     objects/5f/5f03...a1.so   the object, followed by its seal (sealed.h)
 *     work/4711-x3kf9a/         a compilation in progress; removed afterwards
 *
 * Code from the cache is executed, so nobody else may write to it. The cache, its folders and each
 * object belong to the effective user, are not writable for others and are no symbolic links
 * (cache_place.c). Only root or that user may be able to replace a folder above the cache. An
 * object is loaded by the descriptor that was checked. Without /proc it is loaded by its path,
 * which only the same user can change.
 */
#ifndef CANVAS_RUN_CACHE_H
#define CANVAS_RUN_CACHE_H

#include "base/buf.h"
#include "base/memory.h"

/* Creates the folder if needed; NULL: the folder of the environment. Rejects a folder that others
 * can write to. *out is the path, freed with mem_free. */
canvas_status cache_open(canvas_context *ctx, const char *folder, char **out);

/* Creates missing folders of the cache and checks all, e.g. after someone removed the cache. */
canvas_status cache_again(canvas_context *ctx, const char *cache);

/* The path of the object of a key, with a valid seal, freed with mem_free; NULL: none. */
char *cache_find(const char *cache, const char *key, size_t length);

/* Seals the file `made` of a work folder and moves it to the object of the key; *out is its
 * path. */
canvas_status cache_keep(canvas_context *ctx, const char *cache, const char *key, size_t length,
                         const char *work, const char *made, char **out);

/* Removes a damaged object. */
void cache_drop(const char *object);

/* Opens an object after checking folders, owner, mode and seal; -1: invalid or missing. sealed_load
 * loads it. */
int cache_open_object(const char *object);

/* A descriptor that is closed even if the call runs out of memory (base/memory.h); -1: none. */
struct held_file {
  int file;
  struct mem_deferred closing;
};
void file_hold(struct held_file *held, int file);
int file_take(struct held_file *held); /* returns the descriptor, which the caller closes */
void file_release(struct held_file *held);

/* Copies an object without its seal to a new file; false: invalid or missing. */
bool cache_copy_object(const char *object, const char *to);

/* Creates a folder for one compilation; cache_work_end removes it with its files. Folders of killed
 * processes are removed as well: those of this machine at once, others after a day. */
canvas_status cache_work(canvas_context *ctx, const char *cache, char **out);
void cache_work_end(char *work);  /* NULL is fine */
void cache_work_drop(void *work); /* removes the folder, for mem_defer */

/* As cache_work, in $TMPDIR or /tmp, in case someone keeps removing the cache. */
canvas_status cache_work_outside(canvas_context *ctx, char **out);
bool cache_work_gone(const char *work); /* whether it was removed */

/* Fails with a message if the cache has no room for the output of a small compilation. */
canvas_status cache_has_room(canvas_context *ctx, const char *cache);

/* ---- cache_place.c --------------------------------------------------------------------------- */

canvas_status cannot_make_place(canvas_context *ctx,
                                const char *path); /* with the reason of errno */
/* mkdir -p; new folders are private, whatever the umask is. */
canvas_status make_place(canvas_context *ctx, const char *path);
/* Checks the path and all folders above. *out is the path without symbolic links, freed with
 * mem_free. */
canvas_status check_place(canvas_context *ctx, const char *path, char **out);
/* Opens a folder, or a file, within a folder of the cache if it passes the checks; else -1. */
int open_place(int at, const char *name);
int open_place_file(int at, const char *name);
/* Fails with a message if a folder of the cache is unsafe. */
canvas_status check_place_part(canvas_context *ctx, const char *path);

/* ---- cache_files.c --------------------------------------------------------------------------- */

/* Reads a file of at most `most` bytes; false: missing, unreadable or larger. */
bool file_read(const char *path, size_t most, struct buf *out);
canvas_status file_write(canvas_context *ctx, const char *path, const char *bytes, size_t length);
char *path_join(const char *folder, const char *name); /* both freed with mem_free */
char *path_absolute(const char *path);

#endif
