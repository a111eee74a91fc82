"""Paper 003's tables and simulation study, repeated over seeds and beside kdcal's own settings."""
