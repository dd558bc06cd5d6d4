/* The functions of canvas._core, a row each:
 *
 *   X(name, C function, how it takes arguments, its signature, its meaning in one sentence)
 *
 * METHOD makes a PyMethodDef of a row; help() and inspect.signature() show signature and meaning. A
 * test compares names, signatures and meanings with _core.pyi and _testing.py, so that a new function
 * is a row here and its description there. */
#ifndef CANVAS_METHODS_H
#define CANVAS_METHODS_H

#define WITH_KEYWORDS (METH_VARARGS | METH_KEYWORDS)
#define FASTCALL      METH_FASTCALL

#define METHOD(name, function, flags, signature, meaning) \
  {#name, (PyCFunction)(void (*)(void))(function), flags, #name signature "\n--\n\n" meaning},

/* clang-format off */

/* What the package uses. */
#define CORE_METHODS(X)                                                                            \
  X(version, core_version, METH_NOARGS, "($module)", "The version of Canvas, such as \"0.1.0\".")  \
  X(main, core_main, METH_O, "($module, argv, /)",                                                 \
    "Run the canvas command and return its exit code.")                                            \
  X(primitives, core_primitives, METH_NOARGS, "($module)", "The primitive table as JSON.")         \
  X(print_kernels, core_print_kernels, METH_O, "($module, text, /)",                               \
    "The kernels of a text in canonical form.")                                                    \
  X(hash, core_hash, METH_O, "($module, pack, /)",                                                 \
    "The hash of a kernel or pack: 32 hex digits, equal for isomorphic kernels.")                  \
  X(draw, core_draw, WITH_KEYWORDS, "($module, targets, seed, index, options)",                    \
    "Draw a kernel and its G, or None if the index gives no kernel.")                              \
  X(mutate, core_mutate, WITH_KEYWORDS, "($module, targets, seed, index, options, parents)",       \
    "Make a child of one or two kernels and its G, or None if no legal child was found.")          \
  X(idle_weights, core_idle_weights, METH_O, "($module, pack, /)",                                 \
    "Targets on whose small images some weight cannot affect the output, a line each.")            \
  X(solve, core_solve, WITH_KEYWORDS, "($module, kernel, targets, budget, options)",               \
    "Choose the sizes of a kernel that fill the budget, and return the pack.")                     \
  X(bind, core_bind, WITH_KEYWORDS, "($module, kernel, at)",                                       \
    "A pack with one binding of the kernel.")                                                      \
  X(strided, core_strided, WITH_KEYWORDS, "($module, kernel, mode)",                               \
    "A kernel that takes the stride of its targets itself.")                                       \
  X(print_pack, core_print_pack, METH_O, "($module, text, /)", "A pack in canonical form.")        \
  X(parts, core_parts, METH_O, "($module, pack, /)",                                               \
    "The packs of the single kernels of a pack, in its order.")                                    \
  X(cost, core_cost, METH_O, "($module, pack, /)", "The cost of a pack as JSON.")                  \
  X(torch_code, core_torch_code, WITH_KEYWORDS, "($module, pack, patterns=True)",                  \
    "The source of a self-contained torch.nn.Module.")                                             \
  X(tvm_code, core_tvm_code, WITH_KEYWORDS, "($module, program, name='')",                         \
    "Python that defines a program in TVM's tensor expressions.")                                  \
  X(formula, core_formula, WITH_KEYWORDS, "($module, pack, latex=False)",                          \
    "The kernels of a pack as sums over indices.")                                                 \
  X(dot, core_dot, METH_O, "($module, kernel, /)",                                                 \
    "A picture of a kernel in Graphviz's language.")                                               \
  X(svg, core_svg, METH_O, "($module, pack, /)", "A picture of the kernels of a pack as SVG.")     \
  X(lower, core_lower, WITH_KEYWORDS, "($module, pack, target, batch=1)",                          \
    "The program of one target of a pack.")                                                        \
  X(operator_program, core_operator_program, WITH_KEYWORDS, "($module, name, arguments)",          \
    "The program of an operator of the library.")                                                  \
  X(signature, core_signature, METH_O, "($module, program, /)",                                    \
    "The inputs and the outputs of a program.")                                                    \
  X(compile, core_compile, WITH_KEYWORDS, "($module, program, schedule=None, machine=None)",       \
    "Compile a program into a shared object in the cache.")                                        \
  X(load_object, core_load_object, METH_O, "($module, path, /)",                                   \
    "Load a shared object of the cache and return the handle of dlopen.")                          \
  X(print_program, core_print_program, METH_O, "($module, program, /)",                            \
    "A program in canonical form.")                                                                \
  X(edit_program, core_edit_program, WITH_KEYWORDS, "($module, program, edit)",                    \
    "The program after one edit.")                                                                 \
  X(replay_edits, core_replay_edits, WITH_KEYWORDS, "($module, program, edits, winograd=0)",       \
    "The program after edits from an untrusted source, a line each.")                              \
  X(bind_schedule, core_bind_schedule, WITH_KEYWORDS,                                              \
    "($module, program, schedule=None, machine=None)",                                             \
    "Check a schedule, and return the program and the schedule in canonical form.")                \
  X(emit, core_emit, WITH_KEYWORDS, "($module, program, schedule=None, machine=None)",             \
    "The C of a program under a schedule.")                                                        \
  X(predict_program, core_predict_program, WITH_KEYWORDS,                                          \
    "($module, program, schedule=None, machine=None)",                                             \
    "The predicted time of a program as JSON, without any measurement.")                           \
  X(count_program, core_count_program, METH_O, "($module, program, /)",                            \
    "The operation and element counts of a program as JSON.")                                      \
  X(measurer, core_measurer, WITH_KEYWORDS,                                                        \
    "($module, program, repeats=0, seconds=0, threads=1, seed=1, screen=False, "                   \
    "cold=False)",                                                                                 \
    "An object that measures candidates of a program.")                                            \
  X(measure, core_measure, METH_VARARGS, "($module, measurer, candidates, /)",                     \
    "Compile, verify and time each candidate, a (program after edits, schedule or None).")         \
  X(tune, core_tune, WITH_KEYWORDS,                                                                \
    "($module, program, method='quick', trials=0, seconds=0, seed=1, threads=0, "                  \
    "log=None, winograd=False, sketch=None, machine=None, patience=0, timeout=0, "                 \
    "together=0)",                                                                                 \
    "Search for the fastest schedule of a program within a budget.")                               \
  X(logged, core_logged, METH_VARARGS, "($module, program, log, /)",                               \
    "The program after edits and the schedule of the best record in a tuning log.")                \
  X(evaluate, core_evaluate, WITH_KEYWORDS, "($module, program, inputs, elements=None)",           \
    "Evaluate the first output of a program with the interpreter.")                                \
  X(network_compile, core_network_compile, WITH_KEYWORDS,                                          \
    "($module, network, log=None, threads=1, machine=None, optimize=True, name=None)",             \
    "Compile a network into a shared object in the cache.")                                        \
  X(network_source, core_network_source, WITH_KEYWORDS,                                            \
    "($module, network, log=None, threads=1, machine=None, optimize=True, name=None)",             \
    "The C of a network: {file name: text} of NAME.c, NAME.h and an example.")                     \
  X(network_optimize, core_network_optimize, WITH_KEYWORDS,                                        \
    "($module, network, passes=None, machine=None)",                                               \
    "The network after optimization passes, with the same results.")                               \
  X(watch_states, watch_states, METH_VARARGS, "($module, tensors, direct, /)",                     \
    "The current states of tensors, five uint64 each.")                                            \
  X(watch_blocks, watch_blocks, METH_O, "($module, ranges, /)",                                    \
    "Memory ranges split into blocks, each with a checksum of its contents.")                      \
  X(watch_same, watch_same, METH_VARARGS,                                                          \
    "($module, tensors, direct, states, always, turning, turn, window, /)",                        \
    "Check that tensors are unchanged: the next turn, or -1 if they changed.")                     \
  X(watch_values, watch_values, METH_VARARGS, "($module, tables, values, /)",                      \
    "Whether the values of the tables, one after another, are exactly these objects.")             \
  X(watch_key, watch_key, METH_VARARGS, "($module, tables, key, value, /)",                        \
    "Whether each table has this object under the key.")                                           \
  X(call_layouts, call_layouts, FASTCALL, "($module, inputs, direct, /)",                          \
    "The memory layouts of tensors: types, sizes and strides.")                                    \
  X(call_same_layouts, call_same_layouts, FASTCALL, "($module, inputs, direct, layouts, /)",       \
    "Whether tensors have the layouts that `call_layouts` returned for others.")                   \
  X(call_run, call_run, FASTCALL,                                                                  \
    "($module, function, weights, packed, arena, inputs, outputs, direct, /)",                     \
    "Run the code of a compiled network on tensors, and return its status.")

/* What only tests and benchmarks use: canvas._testing. */
#define TESTING_METHODS(X)                                                                         \
  X(reach, core_reach, METH_O, "($module, pack, /)",                                               \
    "Why a kernel does not see neighbours along H and W and mix all channels with weights.")       \
  X(simplify, core_simplify, METH_O, "($module, kernel, /)",                                       \
    "The kernel without redundant nodes.")                                                         \
  X(value_key, core_value_key, METH_O, "($module, kernel, /)",                                     \
    "A key of what the simplified kernel computes; '' if it has no small sizes.")                  \
  X(draw_is_free, core_draw_is_free, WITH_KEYWORDS, "($module, seed, index, options)",             \
    "Whether a draw is one of the share that ignores the drawing rules.")                          \
  X(probability, core_probability, WITH_KEYWORDS, "($module, kernel, targets, options)",           \
    "The exact probability that one attempt of a draw gives this kernel, as JSON.")                \
  X(successes, core_successes, WITH_KEYWORDS, "($module, targets, options, seed, attempts)",       \
    "How many attempts of a draw give a kernel, as JSON.")                                         \
  X(broken_rules, core_broken_rules, WITH_KEYWORDS, "($module, pack, options)",                    \
    "The names of the drawing rules that a pack breaks, separated by blanks.")                     \
  X(baseline, core_baseline, METH_O, "($module, targets, /)",                                      \
    "The cost of the convolutions that the targets replace, without bias, as JSON.")               \
  X(network_evaluate, core_network_evaluate, WITH_KEYWORDS, "($module, network, arrays)",          \
    "Evaluate the outputs of a network with the interpreter.")

/* clang-format on */

#endif
