"""Views of a run as training or search sees it: the shifted target, smoothing, filtering."""
