"""The bot: platforms on one side, agent and knowledge on the other."""
