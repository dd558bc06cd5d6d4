"""How a network is trained, and how its state is kept in a file."""
