"""How did the stored tables come to be? One file per version, applied in order."""
