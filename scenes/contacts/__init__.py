"""Bodies in contact: piles, tops, slopes."""
