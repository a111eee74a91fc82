"""Torres et al.'s tables and simulation study, over many seeds and beside kdcal's settings."""
