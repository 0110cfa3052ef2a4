"""What keeps it going: the loop that feeds the core, and the HTTP server through which people and probes come in."""
