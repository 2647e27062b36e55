cpdef bytes encode_entry(group, entry)
