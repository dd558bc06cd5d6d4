"""The C core, text in and text out.

Every function but `main` and the two without arguments raises Error for bad input: one sentence,
with line and column where the text has them.  Calls may run in several threads at a time: the
interpreter lock is free during the work.

Texts are those of docs/kernel.md: a *kernel*, a *pack* (a kernel and its bind lines; accepted
where a kernel is wanted), *targets* (a line per layer, or "C,H,W;..."), a *program*
(docs/program.md).
"""

from collections.abc import Sequence
from os import PathLike
from typing import Any

class Error(ValueError):
    """Bad input, in one sentence."""

class NoSolution(Error):
    """The answer is "none"; the sentence says why."""

def version() -> str:
    """For example "0.1.0"."""

def main(argv: Sequence[str], /) -> int:
    """The canvas command; argv[0] is the program's name.  Prints to the process's stdout and
    stderr (flush Python's own first); answers the exit code: 0, 1 for "none", 2 for bad input.
    """

def primitives() -> str:
    """The primitive table as a JSON list of {"name", "family", "inputs", "attributes", "facts",
    "meaning"}.
    """

def print_kernels(text: str, /) -> str:
    """All kernels of a text in canonical form, a blank line between two."""

def hash(kernel: str, /) -> str:
    """32 hex digits, equal for isomorphic kernels."""

def reach(kernel: str, /) -> str:
    """Why the kernel does not see neighbours along H and W and mix all channels with weights: a
    sentence, "" if it does.
    """

def draw(targets: str, seed: int, index: int, options: str) -> tuple[str, int] | None:
    """(kernel, G) of one draw, a pure function of its arguments; None: this index is skipped.

    `options`: "primitives=5..12 require=reach|none groups=4 draws=rules|paper", "" for the
    defaults.  0 <= seed and 0 <= index < 2**63.
    """

def draw_is_free(seed: int, index: int, options: str) -> bool:
    """Whether the draw is one of the share (`free=0.1`) that keeps no rule of drawing."""

def idle_weights(pack: str) -> str:
    """A line for each target with a small image where a weight cannot matter; "" where none."""

def broken_rules(pack: str, options: str) -> str:
    """The names of the rules that a pack breaks, blanks between, of those that the options of a
    draw leave on; of a kernel without bind lines those that need no sizes.
    """

def mutate(
    targets: str, seed: int, index: int, options: str, parents: list[tuple[str, int]]
) -> tuple[str, int] | None:
    """(kernel, G) of a child of one or two parents, each a kernel and its G; of two, a part of the
    second is grafted onto the first.  A pure function of its arguments; None: no legal child was
    found, another index may have one.  `options` are those of `draw`.
    """

def simplify(kernel: str, /) -> str:
    """The same kernel with what says nothing taken away: equal up to rounding at all sizes, for
    all weights of the nodes that stay.
    """

def solve(kernel: str, targets: str, budget: str, options: str) -> str:
    """The pack whose sizes fill the budget ("macs=0.5x,params=0.5x"; what is not named keeps
    1.0x of the layers replaced).

    `options`: "G=4", "exempt=1" (equal copies without weights, and weights that cannot
    matter on a small image, are allowed), "norm=batch" (the
    pack has a norm after every weight inside the kernel), "".  Raises
    NoSolution with the constraint that failed.
    """

def bind(kernel: str, at: str) -> str:
    """A pack with one binding, from "C=64,H=56,W=56,G=4,x0=64"; also Cin and Cout, K or KH and
    KW, stride, name.
    """

def print_pack(text: str, /) -> str:
    """A pack in canonical form."""

def cost(pack: str, /) -> str:
    """JSON {"kernel", "hash", "macs", "flops", "params", "activations", "elementwise", "bytes",
    "targets": [{"name", "macs", ...}]}: whole numbers, of one sample, summed over the targets;
    flops = 2 * macs.
    """

def baseline(targets: str, /) -> str:
    """JSON as of `cost` for the convolutions that the targets replace, without bias."""

def torch_code(pack: str, patterns: bool = True) -> str:
    """A self-contained torch.nn.Module; `patterns`: runs of primitives as one operator of PyTorch
    where there is one (equal results).
    """

def dot(kernel: str, /) -> str:
    """A picture in Graphviz's language."""

def svg(kernel: str, /) -> str:
    """A picture as SVG; its <desc> holds the kernel's text."""

def lower(pack: str, target: int, batch: int = 1) -> str:
    """The program of one binding for `batch` samples; targets count from 0."""

def operator_program(name: str, arguments: str) -> str:
    """The program of an operator (docs/operators.md), from "height=56 kernel=3 ..."."""

_Row = tuple[str, str, tuple[int, ...], int, int, bool]

def signature(program: str, /) -> tuple[list[_Row], list[_Row]]:
    """The inputs and the outputs of a program, each (name, dtype, shape, least, most, rising):
    dtype is "f32", "f64", "bf16" or "i32"; elements of i32 lie in [least, most] and where they
    rise never fall along the last axis, from least to most.
    """

def compile(
    program: str, schedule: str | None = None, machine: str | None = None
) -> tuple[str, str, int, list[bool], list[bool]]:
    """(path, function, packed, prepare, takes): a shared object in the cache and the name of its
    function, which takes a pointer for each input of `takes`, then each output, and answers 0,
    or 1 where there is no memory. With `packed` > 0 it takes memory of so many bytes between
    the two, which function_prepare fills; that takes the inputs of `prepare`, and the memory.
    `schedule`: None for the default one; `machine`: None for this one. Error also where no
    compiler works.
    """

def load_object(path: str, /) -> int:
    """The handle of dlopen for such a shared object, once its folders, its owner and its checksum
    are checked. Error: it was removed or damaged, or cannot be loaded.
    """

def print_program(program: str, /) -> str:
    """A program in canonical form."""

def edit_program(program: str, edit: str) -> str:
    """The program after an edit, as "inline P" or "cache Y as CC" (docs/program.md)."""

def replay_edits(program: str, edits: str, winograd: int = 0) -> str:
    """The program after edits that a stranger may have written, a line each: those that change
    values are refused: `type`, `border Y` without a name, and `winograd` in larger tiles.
    """

def bind_schedule(
    program: str, schedule: str | None = None, machine: str | None = None
) -> tuple[str, str]:
    """(program, schedule) in canonical form, every loop with its number: the schedule is legal for
    the program on the machine. `schedule`: None for the default one, which may come with edits of
    the program; `machine`: None for this one.
    """

def emit(program: str, schedule: str | None = None, machine: str | None = None) -> str:
    """The C of a program under a schedule, arguments as of `bind_schedule`."""

def edit_schedule(program: str, schedule: str, edit: str, machine: str | None = None) -> str:
    """The schedule after an edit of it, as "split it 4" or "move P to jo", checked as a whole
    (canvas_bound_edit of canvas.h lists them).
    """

def follow_edit(program: str, schedule: str, edit: str, machine: str | None = None) -> str:
    """The schedule for what `edit_program` makes of the program by the same edit."""

def network_compile(
    network: str,
    log: str | PathLike[str] | None = None,
    threads: int = 1,
    machine: str | None = None,
    optimize: bool = True,
    name: str | None = None,
) -> dict[str, Any]:
    """A network compiled: {"path": of a shared object in the cache, "function": NAME, "packed",
    "arena": bytes, "text": of the network after the passes, "weights": [(name, source or None,
    dtype, shape)], "inputs", "outputs": [(name, dtype, shape)], "calls": [(program, results, macs,
    bytes)], "simpler": the programs of calls with a simpler schedule, as the code of a better one
    does not compile, "made", "found": functions that were compiled, and that were in the cache}.
    docs/networks.md describes NAME_load, NAME_run and NAME_call. `log`: a tuning log, whose best
    schedules are taken; `threads`: that share the work of long calls; `machine`: None for this
    one. Error also where no compiler works.
    """

def network_source(
    network: str,
    log: str | PathLike[str] | None = None,
    threads: int = 1,
    machine: str | None = None,
    optimize: bool = True,
    name: str | None = None,
) -> dict[str, str]:
    """The same as C to keep: the texts of NAME.c, NAME.h and an example by their file names."""

def network_evaluate(network: str, arrays: Sequence[bytes]) -> list[bytes]:
    """The outputs of a network by the interpreter. `arrays`: its inputs, then its weights, in the
    order of the text; these and the answer are whole tensors of float64, row-major, in the
    machine's byte order.
    """

def network_optimize(network: str, passes: str | None = None, machine: str | None = None) -> str:
    """The text of a network that computes the same faster: every pass but winograd, or those that
    are named, with blanks or commas between, in that order.  docs/networks.md says what they do.
    What is faster is predicted for the machine of the text; None: for this one.
    """

def watch_states(tensors: list[Any], direct: bytes, /) -> bytes:
    """What PyTorch's tensors are now: for each one five uint64, the object, what it holds where it
    is asked directly (else 0), its memory, its version and a hash of its layout.  `direct`: how to
    ask without Python in between, as inference/tensor_access.py makes it; empty: by attributes.
    """

def watch_blocks(ranges: bytes, /) -> bytes:
    """Memory in blocks, each with a sum of what it holds now.  `ranges`: pairs of an address and a
    number of bytes, uint64 each; the caller keeps that memory.
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
    """-1 where the states of the tensors are others, or blocks hold something else: each of
    `always`, and `window` bytes of those that take turns, from `turn` on; else the next turn.
    """

def watch_values(tables: list[dict[Any, Any]], values: list[Any], /) -> bool:
    """Whether the values of the tables, one after another, are these objects and no more."""

def watch_key(tables: list[dict[Any, Any]], key: Any, value: Any, /) -> bool:
    """Whether each table has this object for the key."""

def call_layouts(inputs: Sequence[Any], direct: bytes, /) -> bytes:
    """How tensors lie in memory: types, sizes and strides.  Empty where one of them is not dense,
    on the CPU and of a type that may be asked directly (inference/tensor_access.py).
    """

def call_same_layouts(inputs: Sequence[Any], direct: bytes, layouts: bytes, /) -> bool:
    """Whether tensors lie as `call_layouts` has said of others; never where that was empty."""

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
    """Calls NAME_run of a compiled network at these addresses, on the memory of these tensors, and
    gives what it answers, 0 where it is done; the interpreter lock is free meanwhile.
    """

def count_program(program: str, /) -> str:
    """JSON {"program", "points", "flops", "read", "written", "stages": [{"name", "points",
    "reduction", "flops", "read", "written"}]}, as `canvas count --json`.
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
    """What measures candidates, in one thread at a time: `repeats` timed samples and `seconds` for
    each (0: 30 and 10), `screen`: compiled by what compiles fastest, and slow ones are not timed
    on; `cold`: timed with nothing in the caches, too.  Error where there is no compiler.
    """

def measure(
    measurer: object, candidates: Sequence[tuple[str, str | None]], /
) -> list[dict[str, Any]]:
    """Candidates, (program after edits, schedule or None), each compiled, compared with the
    interpreter and timed in a child with limits: {"failure": "ok" or the kind, "message",
    "median", "lower", "upper", "cold", "repeats"}, times in seconds of one run.  What a signal
    raises meanwhile has them as its attribute `verdicts`, None where there was none yet.
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
    """The fastest schedule found: {"program", "schedule", "rule", "failure", "message",
    "predicted", "median", "before", "after", "first", "sketches", "points", "trials", "seconds",
    "failures"}.  0: no limit, or the method's own number.  `patience`: so many trials in a row
    that were not better end it; `timeout`: seconds of each; `together`: schedules that are
    compiled at once.  NoSolution: no schedule was correct.  What a signal raises meanwhile has
    the same of the best trial, without finals, as its attribute `found`, if there was one.
    """

def logged(program: str, log: str | PathLike[str], /) -> tuple[str, str] | None:
    """(program after edits, schedule) of the best record that a tuning log has for the program on
    this machine, with its compiler and one thread; None: it has none.
    """

def evaluate(program: str, inputs: Sequence[bytes], elements: bytes | None = None) -> bytes:
    """The program's first output by the interpreter.

    `inputs`: the `in` tensors in order, float64, row-major; `elements`: flat indices of the
    output, int64 (None: all); the answer: float64, in that order.  All in the machine's byte
    order.
    """
