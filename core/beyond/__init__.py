"""What this project adds to the paper: further methods, GGUF files, factors learned by
gradients."""
