"""A shop that sells for a while: customers order, a worker charges them, and not everything goes well.

customers ─▶ shop (topic) ─▶ orders ─▶ charge ─▶ shop: payment.captured
                 │              └─ refused, or given up after three times ─▶ orders.dead
                 └─▶ shop.events (a stream that keeps everything)
"""

import json
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import pika
from pika.adapters.blocking_connection import BlockingChannel
from pika.spec import Basic

EXCHANGE, DEAD = "shop", "shop.dead"
ORDERS, DEAD_ORDERS, EVENTS = "orders", "orders.dead", "shop.events"
CREATED, CAPTURED, DECLINED = "order.created", "payment.captured", "payment.declined"
# What is sold: the name, the price in cents, and how often in comparison.
CATALOGUE = (
    ("tea", 490, 9),
    ("coffee", 890, 7),
    ("cups", 1250, 4),
    ("kettle", 3900, 2),
    ("samovar", 24900, 1),
)
COUNTRIES = ("de", "fr", "it", "pl", "xx")
# A card reader that does not answer, an address that is none: shares of all orders.
HICCUPS, NO_ADDRESS = 0.06, 0.03
ATTEMPTS = 3
# Orders of a second in the middle of the day; mornings and evenings are quieter.
RATE = 60


@dataclass
class Till:
    """Counters of the shop."""

    ordered: int = 0
    captured: int = 0
    declined: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, name: str) -> None:
        """Increment the counter `name`."""
        with self.lock:
            setattr(self, name, getattr(self, name) + 1)


def open_shop(uri: str) -> None:
    """Declare the exchanges and queues of the shop, as any application of RabbitMQ does."""
    with pika.BlockingConnection(pika.URLParameters(uri)) as connection:
        channel = connection.channel()
        channel.exchange_declare(EXCHANGE, "topic", durable=True)
        channel.exchange_declare(DEAD, "fanout", durable=True)
        channel.queue_declare(EVENTS, durable=True, arguments={"x-queue-type": "stream", "x-max-age": "7D"})
        limits = {"x-dead-letter-exchange": DEAD, "x-delivery-limit": ATTEMPTS}
        channel.queue_declare(ORDERS, durable=True, arguments=limits)
        channel.queue_declare(DEAD_ORDERS, durable=True)
        channel.queue_bind(EVENTS, EXCHANGE, "#")
        channel.queue_bind(ORDERS, EXCHANGE, CREATED)
        channel.queue_bind(DEAD_ORDERS, DEAD)


def trade(uri: str, seconds: float, progress: Callable[[float, Till], None]) -> Till:
    """Sell for `seconds`, with two order desks and two workers; returns the counters."""
    till = Till()
    closing = time.monotonic() + seconds
    workers = [Worker(uri, till, seed) for seed in (1, 2)]
    desks = [threading.Thread(target=_take_orders, args=(uri, till, seconds, seed)) for seed in (3, 4)]
    for thread in (*workers, *desks):
        thread.start()
    while any(desk.is_alive() for desk in desks):
        desks[0].join(1)
        desks[1].join(0.01)
        progress(max(0.0, closing - time.monotonic()), till)
    for worker in workers:
        worker.finish()
    return till


def _take_orders(uri: str, till: Till, seconds: float, seed: int) -> None:
    """The orders of a day in `seconds`: few in the morning, many at noon."""
    chance = random.Random(seed)
    with pika.BlockingConnection(pika.URLParameters(uri)) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        begun = time.monotonic()
        number = 0
        while (passed := time.monotonic() - begun) < seconds:
            noon = 1 - abs(2 * passed / seconds - 1)
            connection.sleep(chance.expovariate(RATE / 2 * (0.2 + 0.8 * noon)))
            number += 1
            publish(channel, CREATED, _order(chance, f"{seed}-{number}"))
            till.count("ordered")


def _order(chance: random.Random, number: str) -> dict[str, object]:
    [(product, price, _)] = chance.choices(CATALOGUE, [weight for *_, weight in CATALOGUE])
    pieces = chance.choice((1, 1, 1, 2, 3))
    country = COUNTRIES[-1] if chance.random() < NO_ADDRESS else chance.choice(COUNTRIES[:-1])
    return {
        "order": number,
        "product": product,
        "pieces": pieces,
        "cents": pieces * price,
        "country": country,
    }


def publish(channel: BlockingChannel, key: str, event: dict[str, object]) -> None:
    """Publish the event `event`; returns when it is confirmed."""
    properties = pika.BasicProperties(
        delivery_mode=2,
        content_type="application/json",
        message_id=str(event["order"]),
        timestamp=int(time.time()),
        headers={"country": str(event["country"])},
    )
    channel.basic_publish(EXCHANGE, key, json.dumps(event).encode(), properties)


class Worker(threading.Thread):
    """Charges orders until the queue is empty and the shop closes."""

    def __init__(self, uri: str, till: Till, seed: int) -> None:
        super().__init__()
        self._uri = uri
        self._till = till
        self._chance = random.Random(seed)
        self._is_closing = threading.Event()

    def finish(self) -> None:
        """Charge the remaining orders, and end."""
        self._is_closing.set()
        self.join()

    def run(self) -> None:
        """Run the worker thread."""
        with pika.BlockingConnection(pika.URLParameters(self._uri)) as connection:
            channel = connection.channel()
            channel.confirm_delivery()
            channel.basic_qos(prefetch_count=20)
            for method, _, body in channel.consume(ORDERS, inactivity_timeout=0.5):
                if method is None:
                    if self._is_closing.is_set():
                        break
                    continue
                self._charge(channel, method, json.loads(body))
            channel.cancel()

    def _charge(self, channel: BlockingChannel, method: Basic.Deliver, order: dict[str, object]) -> None:
        assert method.delivery_tag is not None
        if order["country"] == COUNTRIES[-1]:
            # It can never be delivered: rejected at once.
            publish(channel, DECLINED, {**order, "why": "no such address"})
            self._till.count("declined")
            channel.basic_reject(method.delivery_tag, requeue=False)
        elif self._chance.random() < HICCUPS * (6 if order["product"] == "samovar" else 1):
            # The card reader does not answer: requeued, and dead-lettered by the delivery limit after three
            # attempts.
            channel.basic_nack(method.delivery_tag, requeue=True)
        else:
            publish(channel, CAPTURED, order)
            self._till.count("captured")
            channel.basic_ack(method.delivery_tag)
