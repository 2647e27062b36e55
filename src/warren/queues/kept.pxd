cimport cython
from libc.stdint cimport uint64_t

from warren.model.message cimport Message, StoredMessage
from warren.queues.queue cimport Delivery, Queue
from warren.queues.ready cimport Ready
from warren.store.lane cimport Lane
from warren.store.message_store cimport MessageStore

cdef int _PERSISTENT

cdef class KeptReady(Ready):
    cdef MessageStore _store
    cdef Lane _lane

    @cython.locals(delivery=Delivery)
    cpdef Delivery pass_by(self, Message message, Queue queue)
    @cython.locals(delivery=Delivery)
    cpdef Delivery pop(self, Queue queue)
    @cython.locals(message=Message, position=uint64_t)
    cpdef Message pop_message(self)
    @cython.locals(message=Message, position=uint64_t)
    cpdef Message drop(self)
    @cython.locals(delivery=Delivery, message=Message, place=Py_ssize_t)
    cpdef clear(self)
    @cython.locals(message=Message)
    cdef Message _take(self, uint64_t position)
    @cython.locals(stored=StoredMessage)
    cdef _keep(self, Message message, uint64_t position)
    @cython.locals(stored=StoredMessage)
    cdef _release(self, Message message, uint64_t position)
