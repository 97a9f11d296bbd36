"""The commands about training besides `train` itself."""
