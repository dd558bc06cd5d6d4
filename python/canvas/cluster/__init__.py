"""Jobs on the machines of a cluster: hosts on its nodes, one driver (docs/cluster.md)."""
