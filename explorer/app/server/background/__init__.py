"""Long work that visitors share: computed in the background once somebody asks, told about, and kept."""
