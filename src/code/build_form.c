/* The form of an expression in a vec loop: uniform over the lanes, a vector, or a gather. See
 * build_parts.h.
 *
 * A branch of a select is evaluated only if it is taken, so a select with a gather inside is
 * gathered as a whole.
 */
#include "code/build_parts.h"

static const struct px_node *node_of(const struct builder *b, int expr) {
  return &b->px->nodes.data[expr];
}

static int index_of(const struct builder *b, const struct px_node *load) {
  return b->px->indices.data[load->first];
}

bool build_in_vectors(const struct builder *b) {
  return b->lane >= 0 && !b->one_by_one;
}

/* ---- stored values ---- */

const struct stored *build_stored_of(struct builder *b, int tensor, struct stored *input) {
  int stage = b->space.stage_of[tensor];
  if (stage >= 0) return &b->stages[stage].value;
  *input = (struct stored){
      b->tensor_variable[tensor],
      {.dtype = b->program->tensors.data[tensor].dtype, .lanes = 1, .lane_stride = 1}};
  return input;
}

enum form build_storage_form(struct builder *b, const struct stored *h, int place) {
  int64_t stride;
  bool vector =
      h->at.dtype == b->computed || (h->at.dtype == PROGRAM_BF16 && b->computed == PROGRAM_F32);
  if (!build_in_vectors(b)) return FORM_UNIFORM;
  if (h->at.per_lane) return vector ? FORM_VECTOR : FORM_GATHER;
  if (!build_stride(b, place, b->lane, &stride)) return FORM_GATHER;
  if (stride == 0) return FORM_UNIFORM;
  if (stride != h->at.lane_stride || !vector) return FORM_GATHER;
  return h->at.kind == STORAGE_NAMED && h->at.lanes != b->lanes ? FORM_GATHER : FORM_VECTOR;
}

/* ---- known facts about a node in this statement ---- */

/* Two bits each; 0: not known yet. */
enum { KNOWN_FORM = 0, KNOWN_SCATTERED = 2, KNOWN_HARMLESS = 4 };

static int recall(const struct builder *b, int expr, int what) {
  return expr < b->known.count ? (b->known.data[expr] >> what & 3) - 1 : -1;
}

static int remember(struct builder *b, int expr, int what, int value) {
  while (b->known.count <= expr) VEC_PUSH(&b->known, 0);
  b->known.data[expr] |= (uint8_t)((value + 1) << what);
  return value;
}

static enum form most(enum form a, enum form bound) {
  return a > bound ? a : bound;
}

/* A part of the expression is a gather. */
static bool gathers(struct builder *b, int expr) {
  if (expr < 0) return false;
  int known = recall(b, expr, KNOWN_SCATTERED);
  if (known >= 0) return known;
  struct px_node n = *node_of(b, expr);
  bool is = build_form(b, expr) == FORM_GATHER;
  if (!is && n.sort != PX_INDEX && n.op != PX_LOAD && n.op != PX_REAL)
    is = gathers(b, n.arg[0]) || gathers(b, n.arg[1]) || gathers(b, n.arg[2]);
  return remember(b, expr, KNOWN_SCATTERED, is);
}

static bool harmless(struct builder *b, int expr);

static bool look_for_harm(struct builder *b, const struct px_node *n) {
  if (n->sort == PX_INDEX) return true;
  if (n->op == PX_LOAD) {
    struct px_range r = px_range(b->px, index_of(b, n));
    struct stored input;
    const struct stored *h = build_stored_of(b, n->tensor, &input);
    int64_t elements = h == &input ? program_elements(b->program, n->tensor) : h->at.elements;
    return !r.data && !r.overflow && r.low >= 0 && r.high < elements;
  }
  return harmless(b, n->arg[0]) && harmless(b, n->arg[1]) && harmless(b, n->arg[2]);
}

/* No load of the expression leaves its tensor, whatever its conditions. */
static bool harmless(struct builder *b, int expr) {
  if (expr < 0) return true;
  int known = recall(b, expr, KNOWN_HARMLESS);
  if (known >= 0) return known;
  return remember(b, expr, KNOWN_HARMLESS, look_for_harm(b, node_of(b, expr)));
}

static enum form select_form(struct builder *b, const struct px_node *n) {
  enum form condition = build_form(b, n->arg[0]);
  if (condition == FORM_GATHER || gathers(b, n->arg[1]) || gathers(b, n->arg[2]))
    return FORM_GATHER;
  enum form branches = most(build_form(b, n->arg[1]), build_form(b, n->arg[2]));
  if (condition == FORM_UNIFORM) return branches;
  return harmless(b, n->arg[1]) && harmless(b, n->arg[2]) ? FORM_VECTOR : FORM_GATHER;
}

/* The form of a condition: a vector of masks cannot be combined with a scalar by &&. */
static enum form condition_form(struct builder *b, const struct px_node *n) {
  if (n->op == PX_NOT) return build_form(b, n->arg[0]);
  enum form a = build_form(b, n->arg[0]), bound = build_form(b, n->arg[1]);
  if (n->op != PX_AND && n->op != PX_OR) {
    if (node_of(b, n->arg[0])->sort == PX_INDEX && most(a, bound) != FORM_UNIFORM)
      return FORM_GATHER;
    return gathers(b, n->arg[0]) || gathers(b, n->arg[1]) ? FORM_GATHER : most(a, bound);
  }
  if (a == bound && (a != FORM_VECTOR || harmless(b, n->arg[1]))) return a;
  return FORM_GATHER;
}

static enum form find_form(struct builder *b, int expr) {
  const struct px_node node = *node_of(b, expr), *n = &node; /* the scratch program may grow */
  if (n->sort == PX_INDEX) return px_mentions(b->px, expr, b->lane) ? FORM_GATHER : FORM_UNIFORM;
  switch (n->op) {
    case PX_NUMBER:
    case PX_BOOL: return FORM_UNIFORM;
    case PX_REAL: return build_form(b, n->arg[0]);
    case PX_LOAD: {
      struct stored input;
      return build_storage_form(b, build_stored_of(b, n->tensor, &input), index_of(b, n));
    }
    case PX_SELECT: return select_form(b, n);
    default: break;
  }
  if (n->sort == PX_CONDITION) return condition_form(b, n);
  enum form s = FORM_UNIFORM; /* operators: gathers are done before */
  for (int i = 0; i < 3; i++)
    if (n->arg[i] >= 0 && build_form(b, n->arg[i]) != FORM_UNIFORM) s = FORM_VECTOR;
  return s;
}

enum form build_form(struct builder *b, int expr) {
  if (!build_in_vectors(b)) return FORM_UNIFORM;
  int known = recall(b, expr, KNOWN_FORM);
  if (known >= 0) return (enum form)known;
  return (enum form)remember(b, expr, KNOWN_FORM, (int)find_form(b, expr));
}
