"""A TLS handshake of a client and a listener, without sockets."""

import ssl

# OpenSSL's codes of a certificate without a list, with one that has ended, and of a revoked one.
_OF_LISTS = 3, 12, 23


def is_accepted(listener: ssl.SSLContext, client: ssl.SSLContext) -> bool:
    """Whether `listener` completes a handshake with `client`, or refuses it for a list of revoked ones."""
    first, second = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = (
        client.wrap_bio(first, second, server_hostname="localhost"),
        listener.wrap_bio(second, first, server_side=True),
    )
    done: set[ssl.SSLObject] = set()
    for _ in range(10):
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLCertVerificationError as error:
                if error.verify_code not in _OF_LISTS:
                    raise
                return False
            done.add(end)
    return len(done) == len(ends)
