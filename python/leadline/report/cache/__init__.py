"""What a cache study found."""
