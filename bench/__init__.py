"""What the bot costs, beside what the same thing costs without it.

`python -m bench` (or `make bench`) starts the real services and measures. Machines drift, so each figure and its floor
are taken in turn, five times, and compared by their medians; a budget counts as missed when the excess is
larger than the spread of the pairs.
"""
