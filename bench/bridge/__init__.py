"""Makes the data files that translate questions from Chinese into English."""
