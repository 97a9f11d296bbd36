"""Who may watch a running model: what it tells an observer, and hooks that change scores or weights."""
