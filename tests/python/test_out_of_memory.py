"""Memory that runs out raises MemoryError, and the process lives on."""

import subprocess
import sys
import textwrap

PROGRAM = """
import resource
from canvas import _core

def room(mebibytes):
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (used + (mebibytes << 20), hard))

def free_room():
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))

def is_refused(call, mebibytes=1):
    room(mebibytes)
    try:
        call()
    except MemoryError as error:
        return "memory" in str(error)
    finally:
        free_room()
    return False
"""


def run_child(text: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM + textwrap.dedent(text)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_text_that_does_not_fit() -> None:
    # The text has 12 MB, and the reader copies it.
    answer = run_child(
        """
        kernel = "canvas 1\\nkernel k\\na = input\\nout a\\n"
        large = kernel + "# comment\\n" * 1200000
        print(is_refused(lambda: _core.print_kernels(large)))
        print(_core.print_kernels(large) == _core.print_kernels(kernel))
        """
    )
    assert answer.split() == ["True", "True"]


def test_an_interpreter_without_memory() -> None:
    answer = run_child(
        """
        program = "canvas 1\\nprogram p\\nin X f32 [i:4]\\nM[a:1000, b:300] = X[0] + real(a)\\n" \\
            "Y[i:2] = M[a, b] // sum a:1000, b:300\\nout Y\\n"
        import array
        values = array.array("d", [1, 2, 3, 4]).tobytes()
        work = lambda: _core.evaluate(program, [values])
        print(is_refused(work))
        print(bool(work()))
        """
    )
    assert answer.split() == ["True", "True"]
