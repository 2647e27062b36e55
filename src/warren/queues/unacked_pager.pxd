cimport cython

from warren.model.message cimport StoredMessage, without_body
from warren.model.ring cimport Ring
from warren.queues.queue cimport Delivery
from warren.store.stores cimport Stores

cdef int _PERSISTENT
cdef int _BODY_ON_DISK

@cython.final
cdef class UnackedPager:
    cdef readonly Stores stores
    cdef Ring _unwritten
    cdef StoredMessage _last

    cpdef add(self, Delivery delivery)
    @cython.locals(unwritten=Ring, delivery=Delivery, message=StoredMessage)
    cpdef shrink(self)
