/* Compiles a network to one shared object in the cache.
 *
 * Each function of a program is an object file, found by content: a layer that many networks share
 * is compiled once. Several are compiled in parallel. Small functions share files, since starting a
 * compiler takes longer than compiling one. The linked result is found by the texts of all files.
 */
#ifndef CANVAS_NET_NETWORK_COMPILE_H
#define CANVAS_NET_NETWORK_COMPILE_H

#include "net/network_code.h"
#include "run/compiler.h"

struct network_object {
  char *path;      /* path of the shared object; freed with mem_free */
  bool cached;     /* it was in the cache */
  int made, found; /* functions compiled; functions found in the cache */
  bool *failed;    /* by program of the network: its file does not compile, so there is no `path`;
                      freed with mem_free; NULL: no such program */
};

/* CANVAS_IO: the compiler rejects a file, crashes, hangs or writes nothing; only out->failed is
 * left then. */
canvas_status network_compile(canvas_context *ctx, const struct network_code *code,
                              const struct compiler *compiler, struct network_object *out);

#endif
