"""The birth of a head: the snapshots of a run, over many sentences and over one."""
