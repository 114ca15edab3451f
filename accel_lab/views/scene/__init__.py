"""What views show, apart from how: facts gathered from a system."""
