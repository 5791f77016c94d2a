"""Gates: rules over figures that decide pass or fail."""
