"""The partition of the input space that a parent makes: codes now, the geodesic kernel next."""

from kdcal_core.partition.codes import ActivationCodes, Codes, LeafCodes, pack_bits

__all__ = ["ActivationCodes", "Codes", "LeafCodes", "pack_bits"]
