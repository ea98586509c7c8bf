"""What the data files that take questions from Chinese into English are made with."""
