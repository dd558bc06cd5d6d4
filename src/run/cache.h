/* Compiled code by content: what was compiled once is found again.
 *
 * The folder is $CANVAS_CACHE, or $XDG_CACHE_HOME/canvas, or ~/.cache/canvas. A text that says
 * everything the result depends on (compiler, flags, machine, source) is itself the key: it lies beside
 * the object as its .c file and is compared byte for byte, a hash of it only names the two. New files
 * are written in a work folder and renamed into place, so any number of processes may share a cache.
 * It may be removed at any time: what is missing is made again.
 *
 *     objects/5f/5f03...a1.c    the key, which is also the source
 *     objects/5f/5f03...a1.so   the object, and behind it the seal that it was written with (sealed.h)
 *     work/4711-x3kf9a/         of a compilation under way; removed after it
 *
 * Code from there is run, so nobody else may put any there. The cache, its folders and each object belong to the
 * effective user, others may not write to them, and none is a symbolic link (cache_place.c); whoever could
 * exchange a folder above the cache is root or that user. An object is loaded by the descriptor by which it was
 * checked. Where there is no /proc it is loaded by its path, which only the same user can change.
 */
#ifndef CANVAS_RUN_CACHE_H
#define CANVAS_RUN_CACHE_H

#include "base/buf.h"
#include "base/memory.h"

/* Makes the folder where it is missing; `folder` NULL: the one that the environment says. Rejects one
 * that others could put code into. *out is the path, freed with mem_free. */
canvas_status cache_open(canvas_context *ctx, const char *folder, char **out);

/* Makes folders of the cache that are missing, and checks all of them; for one that was removed after
 * cache_open. */
canvas_status cache_again(canvas_context *ctx, const char *cache);

/* The object of a key, whose seal fits, freed with mem_free; NULL if there is none. */
char *cache_find(const char *cache, const char *key, size_t length);

/* Seals the file `made` of a work folder and renames it to the object of the key; *out is its path. */
canvas_status cache_keep(canvas_context *ctx, const char *cache, const char *key, size_t length,
                         const char *work, const char *made, char **out);

/* Forgets an object that turned out to be damaged. */
void cache_drop(const char *object);

/* An object by its path, opened once folders, owner, mode and seal are checked: -1 where they do not fit, or
 * it is gone. sealed_load loads it. */
int cache_open_object(const char *object);

/* A descriptor that is closed also where a call ends for lack of memory (base/memory.h); -1: none. */
struct held_file {
  int file;
  struct mem_deferred closing;
};
void file_hold(struct held_file *held, int file);
int file_take(struct held_file *held); /* no longer held: the caller closes it */
void file_release(struct held_file *held);

/* Copies an object without its seal to a new file; false: as above. */
bool cache_copy_object(const char *object, const char *to);

/* A new folder for one compilation, and its end with all files in it. Folders that a process
 * left when it was killed are removed, too: at once those of this machine, others after a day. */
canvas_status cache_work(canvas_context *ctx, const char *cache, char **out);
void cache_work_end(char *work);  /* NULL is fine */
void cache_work_drop(void *work); /* removes the folder, for mem_defer */

/* The same in $TMPDIR, or /tmp, for where somebody removes the cache again and again. */
canvas_status cache_work_outside(canvas_context *ctx, char **out);
bool cache_work_gone(const char *work); /* it was removed meanwhile */

/* Whether what a compiler writes of a small file could be written now, too; says why not. */
canvas_status cache_has_room(canvas_context *ctx, const char *cache);

/* ---- cache_place.c ---- */

canvas_status cannot_make_place(canvas_context *ctx, const char *path); /* errno says why */
/* mkdir -p; the new folders are ours alone, whatever the umask says. */
canvas_status make_place(canvas_context *ctx, const char *path);
/* The path without symbolic links, freed with mem_free, once it is checked with all that is above it. */
canvas_status check_place(canvas_context *ctx, const char *path, char **out);
/* A folder in a folder of the cache, and a file in one: opened if it is checked, else -1. */
int open_place(int at, const char *name);
int open_place_file(int at, const char *name);
/* Says in words what is wrong with a folder of the cache. */
canvas_status check_place_part(canvas_context *ctx, const char *path);

/* ---- cache_files.c ---- */

/* All of a file of at most `most` bytes; false if there is no such file. */
bool file_read(const char *path, size_t most, struct buf *out);
canvas_status file_write(canvas_context *ctx, const char *path, const char *bytes, size_t length);
char *path_join(const char *folder, const char *name); /* freed with mem_free, as the next */
char *path_absolute(const char *path);

#endif
