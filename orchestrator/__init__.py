"""The service: what is asked of which source, what is made of the answers, and how it is offered."""
