"""Event cameras: recordings, their files, frames made of them, and a simulated sensor."""
