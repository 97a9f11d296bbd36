"""The page Search: how a translation is looked for, with a beam or by drawing."""
