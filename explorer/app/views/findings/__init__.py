"""The page Findings: a list of studies, and any of them as a document."""
