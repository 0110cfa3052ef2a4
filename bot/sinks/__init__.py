"""We do something: one file a target, and `perform` which knows them all.

A sink performs one effect and returns the event of its end. It decides nothing; of what can go wrong it tells the
core only what matters for the next step (`Trouble`).
"""
