//! Fetches, starts and stops real MySQL servers for tests and demos, beside the system.
