"""Write the tables of docs/reports anew from the results in bench/results.

    ./dev bench report [NAME ...] [--check]

NAMEs are reports (docs/reports/NAME.md); all by default. A table stands between two lines of
comment, of which the first says what it shows:

    <!-- rows FILE / TABLE | case | COLUMN | COLUMN -->       one line per case
    <!-- machines FILE / TABLE / CASE | machine | COLUMN -->  one line per machine
    <!-- summary FILE / COLUMN | TABLE | TABLE -->            one line per table
    ...
    <!-- end -->

FILE is bench/results/FILE.jsonl. A name before the last "|" may be "COLUMN = HEAD", which renames
the column. "TABLE @ WORDS" takes the rows whose machine has these words. Otherwise rows of the
machine that was measured last are taken; of each value the newest row counts. Below the table
stands where and when it was measured. --check changes nothing and fails where a table differs.
"""

from __future__ import annotations

import argparse
import re
import statistics
import sys
from pathlib import Path

import harness
from harness import BadResults, Row

REPORTS = harness.ROOT / "docs" / "reports"
BLOCK = re.compile(r"^<!-- (rows|machines|summary) (.+?) -->\n(.*?)^<!-- end -->$", re.M | re.S)
SPOKEN = {"", "times", "text"}  # units that a head does not name


def number(value: float, unit: str) -> str:
    """With as many digits as the unit deserves."""
    size = abs(value)
    if isinstance(value, int) and unit not in ("us", "ms", "s", "%"):
        return f"{value:,}"
    if unit == "times":
        return f"{value:.2f}"
    if unit == "%":
        return f"{value:.1f}"
    if unit in ("", "GFLOP/s"):
        return f"{value:.3g}" if size < 1 else f"{value:.2f}" if size < 100 else f"{value:,.0f}"
    digits = 0 if size >= 100 else 1 if size >= 10 else 2 if size >= 1 else 3
    return f"{value:,.{digits}f}"


def cell(row: Row | None) -> str:
    if row is None:
        return ""
    if isinstance(row["value"], str):
        return str(row["value"]).replace("|", "\\|")
    text = number(row["value"], row["unit"])
    return f"{text} +- {row['spread']:.2g}" if "spread" in row else text


def by_date(rows: list[Row], table: str, where: str) -> list[Row]:
    """Those of one table, the newest last."""
    rows = [row for row in rows if row["table"] == table and where in (row["machine"] or "")]
    if not rows:
        raise BadResults(f"no results of table '{table}'" + (f" on '{where}'" if where else ""))
    return sorted(rows, key=lambda row: row["date"] or "")  # stable: later lines win


def newest(rows: list[Row], table: str, where: str) -> list[Row]:
    """Of one table and one machine: of each value the newest row."""
    rows = by_date(rows, table, where)
    last = rows[-1]["machine"]
    kept = {(row["case"], row["column"]): row for row in rows if row["machine"] == last}
    return list(kept.values())


def origin(rows: list[Row]) -> str:
    """One line: machine, commits and dates."""
    places: dict[str, list[str]] = {}
    for row in rows:
        when = f"commit {row['commit']}" if row["commit"] else "commit unknown"
        when += f", {row['date']}" if row["date"] else ""
        known = places.setdefault(row["machine"] or "machine unknown", [])
        if when not in known:
            known.append(when)
    told = [f"{place} ({'; '.join(sorted(whens))})" for place, whens in places.items()]
    return f"Measured on {'; '.join(told)}."


def parts(spec: str) -> tuple[str, str, list[str]]:
    """File, what stands behind the slash, the names behind the bars."""
    first, *names = (part.strip() for part in spec.split("|"))
    name, slash, rest = first.partition("/")
    if not slash:
        raise BadResults(f"'{spec}' has no FILE / NAME")
    return name.strip(), rest.strip(), names


def split(text: str, mark: str) -> tuple[str, str]:
    first, _, second = text.partition(mark)
    return first.strip(), second.strip()


def line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |".replace("|  |", "| |")


def head(name: str, shown: str, rows: list[Row]) -> str:
    """The column's name with its unit, where all of its numbers have the same."""
    units = {row["unit"] for row in rows if row["column"] == name and row["value"] != ""}
    unit = units.pop() if len(units) == 1 else ""
    return (shown or name) + ("" if unit in SPOKEN else f", {unit}")


def table_of_rows(spec: str) -> str:
    name, table, (first, *columns) = parts(spec)
    found = newest(harness.read(name), *split(table, "@"))
    pairs = [split(column, "=") for column in columns]
    for column, _ in pairs:
        if not any(row["column"] == column for row in found):
            raise BadResults(f"table '{table}' of '{name}' has no column '{column}'")
    values = {(row["case"], row["column"]): row for row in found}
    used = [row for row in found if row["column"] in {column for column, _ in pairs}]
    lines = [line([first, *(head(column, shown, found) for column, shown in pairs)])]
    lines.append("|---" * (len(pairs) + 1) + "|")
    for case in dict.fromkeys(row["case"] for row in used):
        lines.append(line([case, *(cell(values.get((case, column))) for column, _ in pairs)]))
    return "\n".join(lines) + f"\n\n{origin(used)}\n"


def table_of_machines(spec: str) -> str:
    name, rest, (first, *columns) = parts(spec)
    table, case = split(rest, "/")
    rows = [row for row in by_date(harness.read(name), table, "") if row["case"] == case]
    lines = [line([first, "commit", "date", *(head(column, "", rows) for column in columns)])]
    lines.append("|---" * (len(columns) + 3) + "|")
    for machine in dict.fromkeys(row["machine"] for row in reversed(rows)):
        here = {row["column"]: row for row in rows if row["machine"] == machine}
        last = list(here.values())[-1]
        place = [str(last[field] or "unknown") for field in ("machine", "commit", "date")]
        lines.append(line([*place, *(cell(here.get(column)) for column in columns)]))
    return "\n".join(lines) + "\n"


def table_of_summaries(spec: str) -> str:
    name, column, tables = parts(spec)
    known, used = harness.read(name), []
    lines = [line([column, "cases", "geometric mean", "median", "least", "most"]), "|---" * 6 + "|"]
    for entry in tables:
        table, shown = split(entry, "=")
        rows = [row for row in newest(known, *split(table, "@")) if row["column"] == column]
        values = [float(row["value"]) for row in rows if harness.is_number(row["value"])]
        if not values:
            raise BadResults(f"table '{table}' of '{name}' has no numbers '{column}'")
        used += rows
        mean = [harness.geometric(values), statistics.median(values), min(values), max(values)]
        lines.append(line([shown or table, str(len(values)), *(f"{v:.2f}" for v in mean)]))
    return "\n".join(lines) + f"\n\n{origin(used)}\n"


def updated(text: str) -> str:
    """A report with its tables made anew."""
    makers = {
        "rows": table_of_rows,
        "machines": table_of_machines,
        "summary": table_of_summaries,
    }

    def made(match: re.Match[str]) -> str:
        return f"<!-- {match[1]} {match[2]} -->\n\n{makers[match[1]](match[2])}\n<!-- end -->"

    starts = len(re.findall(r"^<!-- (?:rows|machines|summary) ", text, re.M))
    if starts != len(BLOCK.findall(text)) or starts != text.count("<!-- end -->"):
        raise BadResults("a table has no line '<!-- end -->', or one too many")
    return BLOCK.sub(made, text)


def chosen(names: list[str]) -> list[Path]:
    known = {path.stem: path for path in sorted(REPORTS.glob("*.md"))}
    for name in names:
        if name not in known:
            raise BadResults(f"there is no report '{name}'; there are: {' '.join(known)}")
    return [known[name] for name in names or known]


def main() -> None:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--check", action="store_true", help="fail where a table differs")
    given = parser.parse_args()
    stale = []
    for path in chosen(given.names):
        old = path.read_text(encoding="utf-8")
        try:
            new = updated(old)
        except BadResults as error:
            raise BadResults(f"{path.relative_to(harness.ROOT)}: {error}") from error
        if new == old:
            continue
        stale.append(path.stem)
        if not given.check:
            path.write_text(new, encoding="utf-8")
            print(f"written: {path.relative_to(harness.ROOT)}")
    if given.check and stale:
        sys.exit(f"bench: tables differ from the results in {', '.join(stale)}; "
                 "run ./dev bench report")  # fmt: skip


if __name__ == "__main__":
    harness.run(main)
