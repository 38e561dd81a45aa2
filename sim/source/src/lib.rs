//! Simulated MySQL servers and the binlog encoder behind Capstan's simulator and conformance kit.
