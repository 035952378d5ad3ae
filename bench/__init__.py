"""What the bot measures up to: each module measures one thing, `python -m bench` all of them."""
