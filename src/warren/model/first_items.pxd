cpdef drop_first(list items, Py_ssize_t count)
