"""Reference stages of joints and actuators: constraint rows, actuator laws, factorization and modes of axis rows."""
