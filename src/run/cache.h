/* Compiled code by content: what was compiled once is found again.
 *
 * The folder is $CANVAS_CACHE, or $XDG_CACHE_HOME/canvas, or ~/.cache/canvas. A text that says
 * everything the result depends on (compiler, flags, machine, source) is itself the key: it lies beside
 * the object as its .c file and is compared byte for byte, a hash of it only names the two. New files
 * are written in a work folder and renamed into place, so any number of processes may share a cache,
 * and it may be removed at any time.
 *
 *     objects/5f/5f03...a1.c    the key, which is also the source
 *     objects/5f/5f03...a1.so
 *     work/4711-x3kf9a/         of a compilation under way; removed after it
 */
#ifndef CANVAS_RUN_CACHE_H
#define CANVAS_RUN_CACHE_H

#include "base/buf.h"

/* Makes the folder where it is missing; `folder` NULL: the one that the environment says. Rejects one
 * that others could put code into. *out is the path, freed with mem_free. */
canvas_status cache_open(canvas_context *ctx, const char *folder, char **out);

/* The object of a key, freed with mem_free; NULL if there is none. */
char *cache_find(const char *cache, const char *key, size_t length);

/* Renames the file `made` of a work folder to the object of the key; *out is its path. */
canvas_status cache_keep(canvas_context *ctx, const char *cache, const char *key, size_t length,
                         const char *work, const char *made, char **out);

/* Forgets an object that turned out to be damaged. */
void cache_drop(const char *object);

/* A new folder for one compilation, and its end with all files in it. Folders that a process
 * left when it was killed are removed, too: at once those of this machine, others after a day. */
canvas_status cache_work(canvas_context *ctx, const char *cache, char **out);
void cache_work_end(char *work);  /* NULL is fine */
void cache_work_drop(void *work); /* removes the folder, for mem_defer */

/* Whether what a compiler writes of a small file could be written now, too; says why not. */
canvas_status cache_has_room(canvas_context *ctx, const char *cache);

/* All of a file of at most `most` bytes; false if there is no such file. */
bool file_read(const char *path, size_t most, struct buf *out);
canvas_status file_write(canvas_context *ctx, const char *path, const char *bytes, size_t length);
char *path_join(const char *folder, const char *name); /* freed with mem_free, as the next */
char *path_absolute(const char *path);

#endif
