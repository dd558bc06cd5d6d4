"""From a trained network to a faster one: operators fitted to its layers, one chosen for each."""
