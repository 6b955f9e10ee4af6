"""Reference stages of joints and actuators: rows, laws, factorization and modes."""
