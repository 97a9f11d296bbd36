"""From text to ``Translation``: one text, many texts, or a finished translation run again."""
