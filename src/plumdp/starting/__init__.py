"""From rows to a first answer: what the columns of a log seem to be, and the table that its first runs make."""
