"""M2M-100 and NLLB-200: one model for many pairs of languages."""
