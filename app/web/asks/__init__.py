"""What the server asks a person: the inbox, the card of an ask, sampling requests, the stage."""
