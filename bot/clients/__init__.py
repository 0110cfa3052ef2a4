"""The wires: Kubernetes and Mattermost. No wording, no policy.

Every call has a total deadline and is counted; reads are repeated a few times, writes only where the server said that
it did nothing. What a library raises is translated here, once, into `errors`.
"""
