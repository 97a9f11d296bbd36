"""Models that differ in one choice only, compared with intervals."""
