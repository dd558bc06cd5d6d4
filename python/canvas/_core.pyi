"""The C core: functions from text to text.

The module has the functions that the package uses; `canvas._testing` has those that only tests and
benchmarks use.  Every function except `main`, `version` and the watch and call functions raises
Error for bad input, with line and column if the text has them.  Functions may run in several
threads at once: the interpreter lock is released during the work.

The text formats are those of docs/kernel.md: a *kernel*, a *pack* (a kernel and its bind lines,
accepted wherever a kernel is), *targets* (one line per layer, or "C,H,W;..."), a *program*
(docs/program.md).  The first sentence of each docstring is also that of the extension's table,
python/ext/methods.h.
"""

from collections.abc import Sequence
from os import PathLike
from types import ModuleType
from typing import Any

_testing: ModuleType
SAMPLER_VERSION: int

class Error(ValueError):
    """Bad input, in one message."""

class NoSolution(Error):
    """There is no solution; the message says why."""

_Tensor = tuple[str, str, tuple[int, ...], int, int, bool]

def version() -> str:
    """The version of Canvas, such as "0.1.0"."""

def main(argv: Sequence[str], /) -> int:
    """Run the canvas command and return its exit code.

    `argv[0]` is the program's name.  Output goes to the process's stdout and stderr: flush
    Python's own buffers first.  The exit code is 0, 1 if there is no solution, 2 for bad input.
    """

def primitives() -> str:
    """The primitive table as JSON.

    A list of {"name", "family", "inputs", "attributes", "facts", "meaning"}.
    """

def print_kernels(text: str, /) -> str:
    """The kernels of a text in canonical form.

    A blank line separates two kernels.
    """

def hash(pack: str, /) -> str:
    """The hash of a kernel or pack: 32 hex digits, equal for isomorphic kernels.

    Sizes do not count. The hash of a pack of several kernels or with kept targets is one of what
    each target has.
    """

def draw(targets: str, seed: int, index: int, options: str) -> tuple[str, int] | None:
    """Draw a kernel and its G, or None if the index gives no kernel.

    The result is a pure function of the arguments.  `options`: "primitives=5..12
    require=reach|none groups=4 draws=rules|paper", "" for the defaults.  0 <= seed and 0 <= index
    < 2**63.
    """

def mutate(
    targets: str, seed: int, index: int, options: str, parents: list[tuple[str, int]]
) -> tuple[str, int] | None:
    """Make a child of one or two kernels and its G, or None if no legal child was found.

    `parents`: (kernel, G) each; with two, a part of the second is grafted onto the first.
    `options` are those of `draw`.  The result is a pure function of the arguments; another index
    may give a child where this one gives None.
    """

def idle_weights(pack: str, /) -> str:
    """Targets on whose small images some weight cannot affect the output, a line each.

    "" if there are none.
    """

def solve(kernel: str, targets: str, budget: str, options: str) -> str:
    """Choose the sizes of a kernel that fill the budget, and return the pack.

    `budget`: such as "macs=0.5x,params=0.5x", relative to the replaced layers; a quantity that is
    not named is limited to 1.0x.  `options`: "G=4"; "exempt=1" (equal copies without weights, and
    weights that cannot affect a small image, are allowed); "norm=batch" (the pack has a norm
    after every weight inside the kernel); "".  Raises NoSolution with the constraint that failed.
    """

def bind(kernel: str, at: str) -> str:
    """A pack with one binding of the kernel.

    `at`: the sizes, such as "C=64,H=56,W=56,G=4,x0=64"; also Cin and Cout, K or KH and KW,
    stride, name.
    """

def strided(kernel: str, mode: str) -> str:
    """A kernel that takes the stride of its targets itself.

    `mode`: "pool" is the kernel as it is, whose input is average-pooled; "window": the first
    unfold along each axis of each path takes the stride; "output": the result is subsampled.
    """

def print_pack(text: str, /) -> str:
    """A pack in canonical form."""

def parts(pack: str, /) -> list[str]:
    """The packs of the single kernels of a pack, in its order.

    Each has the targets of its kernel; kept targets are in none.
    """

def cost(pack: str, /) -> str:
    """The cost of a pack as JSON.

    {"kernel", "hash", "macs", "flops", "params", "activations", "elementwise", "bytes",
    "targets": [{"name", "kernel", "macs", ...}], "kept": [{"name", "kernel": null, ...}]}:
    integers, for one sample, summed over the targets and the kept ones, which count as dense
    convolutions; flops = 2 * macs.
    """

def torch_code(pack: str, patterns: bool = True) -> str:
    """The source of a self-contained torch.nn.Module.

    `patterns`: replace sequences of primitives by one PyTorch operator where one exists, with
    equal results.
    """

def tvm_code(program: str, name: str = "") -> str:
    """Python that defines a program in TVM's tensor expressions.

    `name`: of its function, in place of the program's.  Raises Error for a reduction whose bounds
    depend on data or on other axes.
    """

def formula(pack: str, latex: bool = False) -> str:
    """The kernels of a pack as sums over indices.

    Sizes are symbols.  `latex`: LaTeX with an align* environment for each kernel.
    """

def dot(kernel: str, /) -> str:
    """A picture of a kernel in Graphviz's language."""

def svg(pack: str, /) -> str:
    """A picture of the kernels of a pack as SVG.

    Its <desc> holds the text: the kernel's, or for several kernels or kept targets the pack's.
    """

def lower(pack: str, target: int, batch: int = 1) -> str:
    """The program of one target of a pack.

    `target` counts from 0; `batch`: samples.
    """

def operator_program(name: str, arguments: str) -> str:
    """The program of an operator of the library.

    `arguments`: such as "height=56 kernel=3" (docs/operators.md).
    """

def signature(program: str, /) -> tuple[list[_Tensor], list[_Tensor]]:
    """The inputs and the outputs of a program.

    Each is (name, dtype, shape, least, most, rising).  dtype is "f32", "f64", "bf16" or "i32";
    elements of i32 lie in [least, most], and if `rising` they never decrease along the last axis.
    """

def compile(
    program: str, schedule: str | None = None, machine: str | None = None
) -> tuple[str, str, int, list[bool], list[bool]]:
    """Compile a program into a shared object in the cache.

    Returns (path, function, packed, prepare, takes).  The function takes a pointer for each input
    of `takes`, then for each output, and returns 0, or 1 if it is out of memory.  If `packed` >
    0, it also takes a buffer of that many bytes between the two, which function_prepare fills;
    function_prepare takes the inputs of `prepare` and the buffer.  `schedule`: None selects the
    default schedule; `machine`: None selects this machine.  Raises Error also if no C compiler
    works.
    """

def load_object(path: str, /) -> int:
    """Load a shared object of the cache and return the handle of dlopen.

    Its folders, its owner and its checksum are checked first.  Raises Error if it was removed or
    damaged or cannot be loaded.
    """

def print_program(program: str, /) -> str:
    """A program in canonical form."""

def edit_program(program: str, edit: str) -> str:
    """The program after one edit.

    `edit`: such as "inline P" or "cache Y as CC" (docs/program.md).
    """

def replay_edits(program: str, edits: str, winograd: int = 0) -> str:
    """The program after edits from an untrusted source, a line each.

    Edits that change values are rejected: `type`, `border Y` without a name, and `winograd` with
    tiles larger than `winograd`.
    """

def bind_schedule(
    program: str, schedule: str | None = None, machine: str | None = None
) -> tuple[str, str]:
    """Check a schedule, and return the program and the schedule in canonical form.

    Every loop of the schedule is printed with its extent; Error says why it is illegal for the
    program on the machine.  `schedule`: None selects the default schedule, which may edit the
    program; `machine`: None selects this machine.
    """

def emit(program: str, schedule: str | None = None, machine: str | None = None) -> str:
    """The C of a program under a schedule.

    The arguments are those of `bind_schedule`.
    """

def predict_program(program: str, schedule: str | None = None, machine: str | None = None) -> str:
    """The predicted time of a program as JSON, without any measurement.

    {"seconds", ...}: of a run of native code without what is computed at load time, at likely
    rates of the machine's vectors, so that every such machine gives the same.  `schedule`,
    `machine`: None for the default schedule and this machine.
    """

def count_program(program: str, /) -> str:
    """The operation and element counts of a program as JSON.

    {"program", "points", "flops", "read", "written", "stages": [{"name", "points", "reduction",
    "flops", "read", "written"}]}, as `canvas count --json` prints it.
    """

def measurer(
    program: str,
    repeats: int = 0,
    seconds: float = 0,
    threads: int = 1,
    seed: int = 1,
    screen: bool = False,
    cold: bool = False,
) -> object:
    """An object that measures candidates of a program.

    It must not be used by two threads at once.  `repeats`: timed samples, 0 for 30; `seconds`:
    limit for each candidate, 0 for 10.  `screen`: compile with the fastest compiler and stop
    timing slow candidates early; `cold`: also time with cold caches.  Raises Error if there is no
    C compiler.
    """

def measure(
    measurer: object, candidates: Sequence[tuple[str, str | None]], /
) -> list[dict[str, Any]]:
    """Compile, verify and time each candidate, a (program after edits, schedule or None).

    Each runs in a child process with limits and is compared with the interpreter.  A verdict is
    {"failure": "ok" or the kind, "message", "median", "lower", "upper", "cold", "repeats"}, times
    in seconds per run.  An exception that a signal raises has the verdicts as its attribute
    `verdicts`, None for candidates without one.
    """

def tune(
    program: str,
    method: str = "quick",
    trials: int = 0,
    seconds: float = 0,
    seed: int = 1,
    threads: int = 0,
    log: str | PathLike[str] | None = None,
    winograd: bool = False,
    sketch: str | None = None,
    machine: str | None = None,
    patience: int = 0,
    timeout: float = 0,
    together: int = 0,
) -> dict[str, Any]:
    """Search for the fastest schedule of a program within a budget.

    Returns {"program", "schedule", "rule", "failure", "message", "predicted", "median", "before",
    "after", "first", "sketches", "points", "trials", "seconds", "failures"}.  0 means no limit,
    or the default of the method.  `patience`: end after so many trials in a row without
    improvement; `timeout`: seconds per trial; `together`: schedules compiled at once.  Raises
    NoSolution if no schedule was correct.  An exception that a signal raises has the result of
    the best trial, without finals, as its attribute `found`, if there was one.
    """

def logged(program: str, log: str | PathLike[str], /) -> tuple[str, str] | None:
    """The program after edits and the schedule of the best record in a tuning log.

    Records count if they are of this program, this machine, its compiler and one thread; None if
    there are none.
    """

def evaluate(program: str, inputs: Sequence[bytes], elements: bytes | None = None) -> bytes:
    """Evaluate the first output of a program with the interpreter.

    `inputs`: the `in` tensors in order, float64, row-major; `elements`: flat indices of the
    output, int64 (None: all).  The result is float64, in that order.  All are in the machine's
    byte order.
    """

def network_compile(
    network: str,
    log: str | PathLike[str] | None = None,
    threads: int = 1,
    machine: str | None = None,
    optimize: bool = True,
    name: str | None = None,
) -> dict[str, Any]:
    """Compile a network into a shared object in the cache.

    Returns {"path", "function": NAME, "packed", "arena": bytes, "text": the network after the
    passes, "weights": [(name, source or None, dtype, shape)], "inputs", "outputs": [(name, dtype,
    shape)], "calls": [(program, results, macs, bytes)], "simpler": programs that use a simpler
    schedule because the code of a better one does not compile, "made", "found": numbers of
    functions that were compiled or taken from the cache}.  docs/networks.md describes NAME_load,
    NAME_run and NAME_call.  `log`: a tuning log whose best schedules are used; `threads`: threads
    that share the work of long calls; `machine`: None selects this machine.  Raises Error also if
    no C compiler works.
    """

def network_source(
    network: str,
    log: str | PathLike[str] | None = None,
    threads: int = 1,
    machine: str | None = None,
    optimize: bool = True,
    name: str | None = None,
) -> dict[str, str]:
    """The C of a network: {file name: text} of NAME.c, NAME.h and an example.

    The arguments are those of `network_compile`.
    """

def network_optimize(network: str, passes: str | None = None, machine: str | None = None) -> str:
    """The network after optimization passes, with the same results.

    `passes`: names separated by blanks or commas, run in that order; None runs all but winograd
    (docs/networks.md).  Speed is predicted for the machine whose text is given; None selects this
    machine.
    """

def watch_states(tensors: list[Any], direct: bytes, /) -> bytes:
    """The current states of tensors, five uint64 each.

    A state is the object, the implementation it points to if read directly (else 0), the data
    pointer, the version and a hash of the layout.  `direct`: how to read tensors without Python
    calls, made by inference/tensor_access.py; empty to read attributes.
    """

def watch_blocks(ranges: bytes, /) -> bytes:
    """Memory ranges split into blocks, each with a checksum of its contents.

    `ranges`: pairs of an address and a number of bytes, uint64 each; the caller keeps that memory
    alive.
    """

def watch_same(
    tensors: list[Any],
    direct: bytes,
    states: bytes,
    always: bytes,
    turning: bytes,
    turn: int,
    window: int,
    /,
) -> int:
    """Check that tensors are unchanged: the next turn, or -1 if they changed.

    Compares the states, the checksums of all blocks `always`, and those of `window` bytes of the
    blocks `turning`, from block `turn` on.
    """

def watch_values(tables: list[dict[Any, Any]], values: list[Any], /) -> bool:
    """Whether the values of the tables, one after another, are exactly these objects."""

def watch_key(tables: list[dict[Any, Any]], key: Any, value: Any, /) -> bool:
    """Whether each table has this object under the key."""

def call_layouts(inputs: Sequence[Any], direct: bytes, /) -> bytes:
    """The memory layouts of tensors: types, sizes and strides.

    Empty if one of them is not dense, not on the CPU or of a type that cannot be read directly
    (inference/tensor_access.py).
    """

def call_same_layouts(inputs: Sequence[Any], direct: bytes, layouts: bytes, /) -> bool:
    """Whether tensors have the layouts that `call_layouts` returned for others.

    False if `layouts` is empty.
    """

def call_run(
    function: int,
    weights: int,
    packed: int,
    arena: int,
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    direct: bytes,
    /,
) -> int:
    """Run the code of a compiled network on tensors, and return its status.

    Calls NAME_run at these addresses with the memory of the tensors; 0 means success.  The
    interpreter lock is released meanwhile.
    """
