/* Places tensors, packed weights and workspaces in memory. See network_code.h. */
#include <stdlib.h>
#include <string.h>

#include "net/network_code.h"

static int64_t rounded(int64_t bytes) {
  return (bytes + PLAN_ALIGNMENT - 1) / PLAN_ALIGNMENT * PLAN_ALIGNMENT;
}

static int64_t take(int64_t *end, int64_t bytes) {
  int64_t at = *end;
  *end += rounded(bytes);
  return at;
}

static const struct net_form *form_of(const struct network_code *code, int call) {
  return &code->forms.data[code->form_of[call]];
}

/* ---- tensors --------------------------------------------------------------------------------- */

/* Sets read[tensor] if NAME_run reads the tensor itself, not only what is packed from it. */
static void find_read(const struct network_code *code, bool *read) {
  const struct network *n = code->network;
  for (int c = 0; c < n->calls.count; c++) {
    const struct net_call *call = &n->calls.data[c];
    const struct prepared *p = form_of(code, c)->prepared;
    for (int i = 0; i < call->arguments.count && !code->calls[c].constant; i++)
      read[call->arguments.data[i]] |= !p || p->rest.uses_input[i];
  }
  for (int i = 0; i < n->outputs.count; i++) read[n->outputs.data[i]] = true;
}

static void place_constants(struct network_code *code) {
  const struct network *n = code->network;
  bool *read = mem_alloc((size_t)n->tensors.count + 1);
  find_read(code, read);
  for (int i = 0; i < n->tensors.count; i++) {
    const struct net_tensor *t = &n->tensors.data[i];
    if (t->kind != NET_VALUE || !code->calls[t->call].constant) continue;
    int64_t *end = read[i] ? &code->packed_bytes : &code->scratch_bytes;
    code->places[i].kind = read[i] ? PLACE_PACKED : PLACE_SCRATCH;
    code->places[i].at = take(end, network_bytes(t));
  }
  mem_free(read);
}

static void place_tensors(struct network_code *code) {
  const struct network *n = code->network;
  int64_t inputs = 0, weights = 0;
  for (int i = 0; i < n->tensors.count; i++) {
    struct net_place *place = &code->places[i];
    if (n->tensors.data[i].kind == NET_INPUT) *place = (struct net_place){PLACE_INPUT, inputs++};
    if (n->tensors.data[i].kind == NET_WEIGHT) *place = (struct net_place){PLACE_WEIGHT, weights++};
    if (code->plan.values[i].offset >= 0)
      *place = (struct net_place){PLACE_ARENA, code->plan.values[i].offset};
  }
  place_constants(code);
  for (int i = 0; i < n->outputs.count; i++) {
    struct net_place *place = &code->places[n->outputs.data[i]];
    if (place->kind != PLACE_PACKED) *place = (struct net_place){PLACE_OUTPUT, i};
  }
}

/* ---- packed weights -------------------------------------------------------------------------- */

/* An earlier call that packs the same from the same tensors; -1: none. */
static int prepared_before(const struct network_code *code, int call) {
  const struct net_call *calls = code->network->calls.data;
  const struct prepared *p = form_of(code, call)->prepared;
  for (int c = 0; c < call; c++) {
    bool same = code->form_of[c] == code->form_of[call] && code->calls[c].prepares;
    for (int i = 0; same && i < calls[call].arguments.count; i++)
      same =
          !p->prepare.uses_input[i] || calls[c].arguments.data[i] == calls[call].arguments.data[i];
    if (same) return c;
  }
  return -1;
}

static void place_packed(struct network_code *code) {
  for (int c = 0; c < code->network->calls.count; c++) {
    struct net_call_code *call = &code->calls[c];
    const struct prepared *p = form_of(code, c)->prepared;
    call->packed = -1;
    if (!p) continue;
    int before = prepared_before(code, c);
    call->prepares = before < 0;
    call->packed = before < 0 ? take(&code->packed_bytes, p->bytes) : code->calls[before].packed;
  }
}

/* ---- workspaces ------------------------------------------------------------------------------ */

static int by_offset(const void *a, const void *b) {
  const struct planned_value *x = *(const struct planned_value *const *)a;
  const struct planned_value *y = *(const struct planned_value *const *)b;
  return (x->offset > y->offset) - (x->offset < y->offset);
}

/* The lowest offset into the arena that is free during the call. */
static int64_t free_at(const struct network_code *code, int call, int64_t bytes) {
  int tensors = code->network->tensors.count, count = 0;
  const struct planned_value **alive = mem_alloc((size_t)(tensors + 1) * sizeof *alive);
  int64_t at = 0;
  for (int i = 0; i < tensors; i++) {
    const struct planned_value *v = &code->plan.values[i];
    if (v->offset >= 0 && v->first <= call && v->last >= call) alive[count++] = v;
  }
  qsort(alive, (size_t)count, sizeof *alive, by_offset);
  for (int i = 0; i < count && alive[i]->offset - at < bytes; i++) {
    int64_t end = rounded(alive[i]->offset + alive[i]->bytes);
    if (end > at) at = end;
  }
  mem_free(alive);
  return at;
}

static int64_t place_in_arena(struct network_code *code, int call, int64_t bytes) {
  int64_t at = free_at(code, call, bytes), end = rounded(at + bytes);
  if (end > code->arena_bytes) code->arena_bytes = end;
  return at;
}

/* NAME_load is sequential: its workspaces share the scratch memory after the constant values. */
static void place_workspaces(struct network_code *code) {
  int64_t end = code->scratch_bytes, most = 0;
  for (int c = 0; c < code->network->calls.count; c++) {
    struct net_call_code *call = &code->calls[c];
    call->workspace = call->prepare_workspace = -1;
    if (code->plan.skipped[c]) continue;
    const struct net_unit *u = &code->units.data[call->unit];
    if (u->workspace && !call->constant)
      call->workspace = place_in_arena(code, c, u->workspace);
    else if (u->workspace)
      call->workspace = end;
    if (u->prepare_workspace) call->prepare_workspace = end;
    if (call->constant && u->workspace > most) most = u->workspace;
    if (u->prepare_workspace > most) most = u->prepare_workspace;
  }
  code->scratch_bytes += rounded(most);
}

void network_places(struct network_code *code) {
  code->arena_bytes = rounded(code->plan.bytes);
  place_tensors(code);
  place_packed(code);
  place_workspaces(code);
}
