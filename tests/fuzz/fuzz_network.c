/* Networks: the language, its verifier, the plan of memory. */
#include "fuzz.h"

void fuzz(canvas_context *ctx, const char *text, size_t size) {
  canvas_network *network = NULL;
  if (fine(ctx, canvas_network_parse(ctx, text, size, &network))) check_network(ctx, network);
  canvas_network_free(network);
}
