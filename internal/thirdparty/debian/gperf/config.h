/* What gperf's configure would find out: nothing that the C library lacks. */
