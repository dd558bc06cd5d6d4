"""From a candidate to a network of one's own: train it to the end, export it as plain files."""
