"""Giving the hardware back and taking it again."""
