"""What a study says: the table and its files, plots, progress while a search runs."""
