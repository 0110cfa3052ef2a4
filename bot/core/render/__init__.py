"""Every sentence the bot can say, made from values by pure functions.

Written for a phone: no tables on a card, the verdict in the first line, clock times instead of ages, shapes that
differ as well as colours. Nobody is mentioned except by `mention`. Text from outside goes through `escape`.
"""
