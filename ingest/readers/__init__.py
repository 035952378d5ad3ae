"""How each kind of file is read. These modules run in the child that converts one file, never beside the bot."""
