"""Understanding neurons and networks: dynamics, statistics, energy, figures."""
