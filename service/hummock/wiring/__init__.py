"""Puts processes together: the only place that names concrete classes. Opens in order, closes in reverse."""
