"""mBART-50: one model for 52 languages."""
