"""What people can ask for: one file a command, `grammar` for what is well formed.

Every command file holds its grammar in its docstring, a frozen dataclass of what was asked, a `SPEC`
(usage and examples that a test parses), and `parse`. What is *allowed* is decided elsewhere: the grammar
knows no limits and no roles. `COMMANDS` is the only register.
"""
