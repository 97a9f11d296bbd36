"""What goes on inside a model while it learns: gradients by depth, Adam's averages, dropout."""
