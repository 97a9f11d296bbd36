"""The models: everything that runs inside ``forward``, of the paper and of its recurrent predecessors."""
