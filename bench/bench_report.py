"""Write the tables of docs/reports anew from the results in bench/results.

    ./dev bench report [NAME ...] [--check]

NAMEs are reports (docs/reports/NAME.md), or README; all by default. A table is between two
comments, of which the first describes it:

    <!-- rows FILE / TABLE + TABLE @ WORDS | case | COLUMN -->  a line per case
    <!-- machines FILE / TABLE / CASE | machine | COLUMN -->    a line per machine
    <!-- summary FILE / COLUMN | TABLE | TABLE > COLUMN -->     a line per table and column
    ...
    <!-- end -->

FILE is bench/results/FILE.jsonl. Of each value the newest row counts. A table shows one machine:
the one whose name has the WORDS behind "@", or the one that was measured last. Below it are
machine, commits and dates. "COLUMN = HEAD" renames a column, "COLUMN!" leaves out cases that
lack it, "COLUMN~" hides its spread. A summary has one line for each pair of TABLE + TABLE >
COLUMN + COLUMN. --check changes nothing and fails where a table differs.
"""

from __future__ import annotations

import argparse
import re
import statistics
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import harness
from harness import BadResults, Row

REPORTS = harness.ROOT / "docs" / "reports"
README = harness.ROOT / "README.md"
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
    if size < 1:
        return f"{value:.3g}"
    return f"{value:,.{0 if size >= 100 else 1 if size >= 10 else 2}f}"


def cell(row: Row | None, plain: bool = False) -> str:
    if row is None:
        return ""
    if isinstance(row["value"], str):
        return str(row["value"]).replace("|", "\\|")
    text = number(row["value"], row["unit"])
    return f"{text} +- {row['spread']:.2g}" if "spread" in row and not plain else text


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
    """Machines with their commits and dates, wrapped as documents are."""
    places: dict[str, list[str]] = {}
    for row in rows:
        when = " ".join(row[name] or f"{name} unknown" for name in ("commit", "date"))
        known = places.setdefault(row["machine"] or "machine unknown", [])
        if when not in known:
            known.append(when)
    text = "; ".join(f"{place} ({', '.join(sorted(whens))})" for place, whens in places.items())
    return textwrap.fill(text, 100)


def parts(spec: str) -> tuple[str, str, list[str]]:
    """The file, the text behind the slash, the names behind the bars."""
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


@dataclass(frozen=True)
class Column:
    """A column of a directive: NAME[!][~] [= HEAD]."""

    name: str
    shown: str
    needed: bool
    plain: bool

    @staticmethod
    def of(text: str) -> Column:
        name, shown = split(text, "=")
        bare = name.rstrip("!~")
        return Column(bare, shown or bare, "!" in name[len(bare) :], "~" in name[len(bare) :])

    def head(self, rows: list[Row]) -> str:
        """With its unit, where all of its numbers have the same."""
        units = {row["unit"] for row in rows if row["column"] == self.name}
        unit = units.pop() if len(units) == 1 else ""
        return self.shown + ("" if unit in SPOKEN else f", {unit}")


def table_of_rows(spec: str) -> str:
    name, rest, (first, *texts) = parts(spec)
    tables, where = split(rest, "@")
    columns, known = [Column.of(text) for text in texts], harness.read(name)
    heads, cells, used = [first], {}, []
    for table in (word.strip() for word in tables.split("+")):
        found = newest(known, table, where)
        values = {(row["case"], row["column"]): row for row in found}
        cases = list(dict.fromkeys(row["case"] for row in found))
        for column in columns:
            here = [values[case, column.name] for case in cases if (case, column.name) in values]
            if not here:
                raise BadResults(f"table '{table}' of '{name}' has no column '{column.name}'")
            used += here
            heads.append((f"{table}: " if "+" in tables else "") + column.head(found))
            for row in here:
                cells[row["case"], len(heads) - 1] = cell(row, column.plain)
    needed = [i for i, column in enumerate(columns, 1) if column.needed]
    cases = [c for c in dict.fromkeys(c for c, _ in cells) if all((c, i) in cells for i in needed)]
    order = {row["case"]: None for row in known}  # as the benchmark runs them
    lines = [line(heads), "|---" * len(heads) + "|"]
    for case in (case for case in order if case in cases):
        lines.append(line([case, *(cells.get((case, i), "") for i in range(1, len(heads)))]))
    return "\n".join(lines) + f"\n\n{origin([row for row in used if row['case'] in cases])}\n"


def table_of_machines(spec: str) -> str:
    name, rest, (first, *texts) = parts(spec)
    table, case = split(rest, "/")
    columns = [Column.of(text) for text in texts]
    rows = [row for row in by_date(harness.read(name), table, "") if row["case"] == case]
    heads = [first, "commit", "date", *(column.head(rows) for column in columns)]
    lines = [line(heads), "|---" * len(heads) + "|"]
    for machine in dict.fromkeys(row["machine"] for row in reversed(rows)):
        here = {row["column"]: row for row in rows if row["machine"] == machine}
        here = {c.name: here[c.name] for c in columns if c.name in here}
        if not here:
            continue
        last = max(here.values(), key=lambda row: row["date"] or "")
        place = [str(last[field] or "unknown") for field in ("machine", "commit", "date")]
        shown = [cell(here.get(column.name), column.plain) for column in columns]
        lines.append(line([*place, *shown]))
    return "\n".join(lines) + "\n"


def summarised(entries: list[str], usual: str) -> Iterator[tuple[str, str, str, str]]:
    """Table, column, machine and name of each line; "" for any machine or the usual name."""
    for entry in entries:
        text, renamed = split(entry, "=")
        place, where = split(text, "@")
        tables, columns = split(place, ">")
        for column in (columns or usual).split("+"):
            for table in tables.split("+"):
                yield table.strip(), column.strip(), where, renamed


def table_of_summaries(spec: str) -> str:
    name, usual, entries = parts(spec)
    known, used = harness.read(name), []
    mixed = any(">" in entry for entry in entries)
    heads = [
        "table: column" if mixed else usual,
        "cases",
        "geometric mean",
        "median",
        "least",
        "most",
    ]
    lines = [line(heads), "|---" * len(heads) + "|"]
    for table, column, where, renamed in summarised(entries, usual):
        rows = [row for row in newest(known, table, where) if row["column"] == column]
        values = [float(row["value"]) for row in rows if harness.is_number(row["value"])]
        if not values:
            raise BadResults(f"table '{table}' of '{name}' has no numbers '{column}'")
        used += rows
        mean = [harness.geometric(values), statistics.median(values), min(values), max(values)]
        unit = rows[0]["unit"]
        shown = (f"{table}: {column}" if mixed else table) + (f", {where}" if where else "")
        lines.append(line([renamed or shown, str(len(values)), *(number(v, unit) for v in mean)]))
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
    known = {path.stem: path for path in [README, *sorted(REPORTS.glob("*.md"))]}
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
