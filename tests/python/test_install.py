"""Canvas as C users get it: `cmake --install`, then a stranger's project on the moved result."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CONSUMER = ROOT / "tests/install/consumer"
CXX = shutil.which("g++") or shutil.which("clang++")


def run(*command, rejected=False, **environment):
    """What `command` prints; it must succeed, or be rejected."""
    done = subprocess.run(
        [str(word) for word in command],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=280,
    )
    assert (done.returncode != 0) == rejected, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    """The build of `./dev build`, installed into a folder with spaces and moved to another."""
    folder = tmp_path_factory.mktemp("in stall")
    run("cmake", "--install", ROOT / "build", "--prefix", folder / "first place")
    return (folder / "first place").rename(folder / "second place")


def library(prefix, name):
    return next(prefix.glob(f"lib*/**/{name}"))


def kernel(prefix):
    """What every program of the consumer prints."""
    printed = run(prefix / "bin/canvas", "sample", "--targets", "64,56,56")
    return printed.partition("\n")[2]  # without the comment that tells G


def declared(prefix):
    header = re.sub(r"/\*.*?\*/", "", (prefix / "include/canvas.h").read_text(), flags=re.S)
    return set(re.findall(r"\b(canvas_\w+)\(", header))


@pytest.mark.parametrize("flags, name", [("-D", "libcanvas.so"), ("-g", "libcanvas.a")])
def test_libraries_show_what_the_header_declares_and_nothing_else(prefix, flags, name):
    listed = run("nm", flags, "--defined-only", library(prefix, name))
    assert {line.split()[-1] for line in listed.splitlines() if " " in line} == declared(prefix)


def test_a_minor_version_of_its_own_soname(prefix):
    version = re.search(r"canvas (\d+\.\d+)", run(prefix / "bin/canvas", "--version"))[1]
    dynamic = run("readelf", "-d", library(prefix, "libcanvas.so"))
    assert f"soname: [libcanvas.so.{version}]" in dynamic
    needed = set(re.findall(r"NEEDED.*\[(.*)\]", dynamic))
    # what glibc is made of: its loader has the function that finds thread-local variables
    assert {name for name in needed if "ld-linux" not in name} <= {"libc.so.6", "libm.so.6"}


def configure(prefix, folder, *flags, rejected=False):
    return run(
        *("cmake", "-S", CONSUMER, "-B", folder, f"-DCMAKE_CXX_COMPILER={CXX}", *flags),
        rejected=rejected,
        CMAKE_PREFIX_PATH=str(prefix),
    )


def test_find_package(prefix, tmp_path):
    configure(prefix, tmp_path / "b", "-DWANTED=0.1", "-DCOMPONENTS=shared;static")
    run("cmake", "--build", tmp_path / "b")
    for program in ("draw", "draw_cxx", "draw_static", "draw_static_cxx"):
        assert run(tmp_path / "b" / program) == kernel(prefix)
    assert "libcanvas.so" in run("ldd", tmp_path / "b/draw")
    assert "libcanvas.so" not in run("ldd", tmp_path / "b/draw_static")


def test_find_package_rejects_what_is_not_there(prefix, tmp_path):
    said = configure(prefix, tmp_path / "b", "-DWANTED=0.2", rejected=True)
    # as newer versions of CMake word it, and older ones
    assert re.search(r"compatible\s+with\s+(the version requested|requested version)", said)
    said = configure(prefix, tmp_path / "b", "-DWANTED=0.1", "-DCOMPONENTS=gpu", rejected=True)
    assert "not every component is installed: static;gpu" in said


@pytest.mark.skipif(not shutil.which("pkg-config"), reason="pkg-config is not installed")
@pytest.mark.parametrize("language", ["c", "cxx"])
@pytest.mark.parametrize("kind", ["shared", "static"])
def test_pkg_config(prefix, tmp_path, language, kind):
    folder = library(prefix, "canvas.pc").parent
    compiler, source = {"c": ("cc", "draw.c"), "cxx": (f"{CXX} -std=c++17", "draw_cxx.cpp")}[
        language
    ]
    static = "-static" if kind == "static" else ""
    flags = f"$(pkg-config {'--static' * (kind == 'static')} --cflags --libs canvas)"
    command = f"eval \"{compiler} {static} '$1' -o '$2'\" \"{flags}\""
    run("sh", "-c", command, "sh", CONSUMER / source, tmp_path / "p", PKG_CONFIG_PATH=str(folder))
    assert run(tmp_path / "p", LD_LIBRARY_PATH=str(folder.parent)) == kernel(prefix)


@pytest.mark.parametrize("name", ["libcanvas.so", "libcanvas.a"])
def test_the_example_of_c_measures_and_calls(prefix, tmp_path, name):
    examples = ROOT / "examples"
    words = ["-O2", "-Wall", "-Wextra", "-Werror", f"-I{prefix}/include", "-o", tmp_path / "m"]
    found = library(prefix, name)
    run("cc", *words, examples / "c/measure_schedules.c", found, "-lm", "-ldl")
    said = run(
        tmp_path / "m",
        examples / "programs/product.program",
        examples / "c/product.schedule",
        LD_LIBRARY_PATH=str(found.parent),
        CANVAS_CACHE=str(tmp_path / "cache"),
    )
    assert said.count(": correct, ") == 2, said
    assert "equal to the interpreter's" in said, said
    said = run(
        tmp_path / "m",
        examples / "schedules/e1.schedule",
        rejected=True,
        LD_LIBRARY_PATH=str(found.parent),
    )
    assert "expected 'program'" in said, said


def test_the_example_of_c_draws_a_kernel_and_measures_it(prefix, tmp_path):
    found = library(prefix, "libcanvas.a")
    words = ["-O2", "-Wall", "-Wextra", "-Werror", f"-I{prefix}/include", "-o", tmp_path / "d"]
    run("cc", *words, ROOT / "examples/c/draw_kernel.c", found, "-lm", "-ldl")
    cache = {"CANVAS_CACHE": str(tmp_path / "cache")}
    said = run(tmp_path / "d", "16,8,8;32,4,4", "macs=0.5x", "1", **cache)
    pack, _, measured = said.partition("# t0: ")
    assert pack.count("bind t") == 2 and measured.count(" MACs, correct, ") == 2, said
    assert run(tmp_path / "d", "16,8,8;32,4,4", "macs=0.5x", "1", **cache).startswith(pack)
    refused = {"macs=0.5y": "unknown unit 'y'", "macs=1,params=1": "none of 1000 draws fits"}
    for budget, why in refused.items():
        assert why in run(tmp_path / "d", "16,8,8", budget, "1", rejected=True), budget


def test_the_example_of_c_runs_a_network(prefix, tmp_path):
    examples, found = ROOT / "examples", library(prefix, "libcanvas.a")
    words = ["-O2", "-Wall", "-Wextra", "-Werror", f"-I{prefix}/include", "-o", tmp_path / "m"]
    run("cc", *words, examples / "c/run_network.c", found, "-lm", "-ldl")
    cache = str(tmp_path / "cache")
    said = run(tmp_path / "m", examples / "networks/block.net", CANVAS_CACHE=cache)
    assert "block: equal to the interpreter's" in said, said


@pytest.mark.parametrize(
    "compiler, standard",
    [
        ("gcc", "c11"),
        ("gcc", "c99"),
        ("clang", "c17"),
        ("g++", "c++11"),
        ("g++", "c++20"),
        ("clang++", "c++11"),
        ("clang++", "c++20"),
    ],
)
def test_header_compiles_alone(prefix, tmp_path, compiler, standard):
    if not shutil.which(compiler):
        pytest.skip(f"{compiler} is not installed")
    source = tmp_path / ("a.cpp" if "+" in standard else "a.c")
    source.write_text("#include <canvas.h>\nint main() { return CANVAS_OK; }\n")
    warnings = ("-Wall", "-Wextra", "-pedantic", "-Werror")
    run(
        compiler,
        f"-std={standard}",
        *warnings,
        "-I",
        prefix / "include",
        "-c",
        source,
        "-o",
        "/dev/null",
    )


@pytest.mark.nightly
def test_static_only_with_lto(tmp_path):
    """How a distribution may build it: one library, link-time optimisation in its flags."""
    flags = ("-DCANVAS_SHARED=OFF", "-DCMAKE_C_FLAGS=-flto -O2", "-DCMAKE_BUILD_TYPE=None")
    run("cmake", "-S", ROOT, "-B", tmp_path / "b", *flags)
    run("cmake", "--build", tmp_path / "b", "--parallel", "2")
    prefix = tmp_path / "prefix"
    run("cmake", "--install", tmp_path / "b", "--prefix", prefix)
    assert not list(prefix.glob("lib*/libcanvas.so*"))
    test_libraries_show_what_the_header_declares_and_nothing_else(prefix, "-g", "libcanvas.a")
    configure(prefix, tmp_path / "c", "-DCOMPONENTS=shared", rejected=True)
    configure(prefix, tmp_path / "d", "-DCMAKE_C_FLAGS=-flto")
    run("cmake", "--build", tmp_path / "d")
    assert run(tmp_path / "d/draw") == kernel(prefix)


@pytest.mark.nightly
def test_as_a_part_of_another_build(tmp_path):
    """add_subdirectory, as FetchContent does it."""
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(whole LANGUAGES C)\n"
        f"add_subdirectory({ROOT} canvas EXCLUDE_FROM_ALL)\n"
        f"add_executable(draw {CONSUMER}/draw.c)\n"
        "target_link_libraries(draw PRIVATE canvas::canvas_static)\n"
    )
    run("cmake", "-S", tmp_path, "-B", tmp_path / "b")
    run("cmake", "--build", tmp_path / "b", "--parallel", "2", "--target", "draw")
    assert run(tmp_path / "b/draw").startswith("canvas 1\nkernel ")
