/* A network compiled: one shared object in the cache.
 *
 * Each function of a program is an object file of its own, found by content, so that a layer is compiled
 * once however many networks have it; several are compiled at once. Functions of little text stand together in
 * files, as a compiler takes longer to begin than to compile one. All are linked with the network's own
 * functions, and the result is found by all of their texts.
 */
#ifndef CANVAS_NET_NETWORK_COMPILE_H
#define CANVAS_NET_NETWORK_COMPILE_H

#include "net/network_code.h"
#include "run/compiler.h"

struct network_object {
  char *path;      /* of the shared object; freed with mem_free */
  bool cached;     /* as it was found */
  int made, found; /* functions of programs that were compiled, and that were in the cache */
  bool
      *failed; /* by program of the network: it stands in a file that does not compile, which is why
                      there is no object; freed with mem_free; NULL: that is not why */
};

/* CANVAS_IO: the compiler rejects, dies, hangs or writes nothing; of the rest nothing is left then. */
canvas_status network_compile(canvas_context *ctx, const struct network_code *code,
                              const struct compiler *compiler, struct network_object *out);

#endif
