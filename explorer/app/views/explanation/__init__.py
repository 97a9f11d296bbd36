"""The page "Is attention an explanation?": weights beside what they carried and did."""
