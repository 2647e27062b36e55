cpdef majority_index(matches)
cpdef joint_index(matches, outgoing)
