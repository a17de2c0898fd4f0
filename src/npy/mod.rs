//! `.npy` files in and out: the header, the mapped input, the atomic output.
