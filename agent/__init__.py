"""The agent: one turn of a conversation, as a LangGraph graph."""
