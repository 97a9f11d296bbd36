"""Language models: the text that they read, the n-gram model beside them, and what is measured on them."""
