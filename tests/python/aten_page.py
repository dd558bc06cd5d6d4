"""The table of docs/aten.md: the operators of canvas.aten by family."""

from canvas.aten.families import ROWS


def table() -> str:
    """Names as ATen has them, without "aten." and ".default"."""
    families: dict[str, list[str]] = {}
    for name, row in ROWS.items():
        short = name.removeprefix("aten.").removesuffix(".default")
        families.setdefault(row.family, []).append(f"`{short}`")
    lines = ["| family | operators |", "|---|---|"]
    lines += [f"| {family} | {' '.join(sorted(names))} |" for family, names in families.items()]
    return "\n".join(lines) + "\n"
