"""The stages of a search, from the first draw to the table, and a row of it once more."""
