"""What the networks see: images, event frames and their geometry."""
