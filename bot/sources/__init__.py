"""The world tells us something: one watched thing a file.

Each is a coroutine that listens for ever and hands events to the loop; what turns a wire's shape into an event is pure.
"""
