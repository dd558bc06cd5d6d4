#!/usr/bin/env python3
"""Writes longer predicted times into tests/c/default_programs.h, after a change that is meant.

    tests/default_times.py FOLDER/tests/test_default_times

Such a change is one of the cost model, or one that is faster when it is measured. The test names
each row that became slower; `git diff` shows what is written. Shorter times need no update.
"""

import pathlib
import re
import subprocess
import sys

ROWS = pathlib.Path(__file__).resolve().parent / "c" / "default_programs.h"
TIME = re.compile(r'\b[012],\s+([\d.e+-]+),\s+(?:NULL\}|"[^"]+"\}|"[^"]+"\n\s+")')
SLOWER = re.compile(r"predicted: (\S+) us, at most (\S+) before:.*?\nrow (\d+)\n", re.DOTALL)


def main() -> int:
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    done = subprocess.run(sys.argv[1:], capture_output=True, text=True)
    text = ROWS.read_text()
    places = list(TIME.finditer(text))
    for time, most, row in reversed(SLOWER.findall(done.stderr + done.stdout)):
        place = places[int(row)]
        if place[1] != most:
            raise SystemExit(f"row {row} holds {place[1]}, not {most}: build the test again")
        text = text[: place.start(1)] + time + text[place.end(1) :]
        print(f"row {row}: {most} becomes {time}")
    ROWS.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
