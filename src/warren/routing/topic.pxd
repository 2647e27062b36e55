cimport cython

from warren.routing.exchange cimport Exchange

cdef class TrieNode

cdef class TopicExchange(Exchange):
    cdef readonly TrieNode _root
    cdef unsigned long long _turn
    cdef object _bits

    @cython.locals(
        turn=cython.ulonglong, visited=Py_ssize_t, nodes=list, reached=list, node=TrieNode, child=TrieNode
    )
    cdef list _match(self, list words)

cdef class TrieNode:
    cdef dict children
    cdef TrieNode one
    cdef TrieNode any
    cdef readonly str pattern
    cdef bint is_loop
    cdef unsigned long long turn

    @cython.locals(node=TrieNode)
    cdef TrieNode get_or_add_child(self, str word)
    cdef remove_child(self, str word)
    cpdef bint is_bare(self) noexcept

@cython.locals(node=TrieNode, loop=TrieNode)
cdef enter_loops(list nodes, unsigned long long turn)

@cython.locals(node=TrieNode)
cdef insert_pattern(TrieNode root, str pattern)

@cython.locals(node=TrieNode, child=TrieNode, nodes=list, patterns=list)
cdef list planted(TrieNode root)

@cython.locals(node=TrieNode, words=list, path=list, depth=Py_ssize_t)
cdef remove_pattern(TrieNode root, str pattern)

cpdef list split_words(str key)
