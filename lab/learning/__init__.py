"""Training at work: gradients by depth, Adam's moments, dropout, the thinned log."""
