"""What training does: gradients by depth, Adam's moments, dropout, the thinned log."""
