"""Measures beside the weight: what it carried, what it did, and where a score or a logit comes
from."""
