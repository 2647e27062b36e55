"""Where names meet things."""
