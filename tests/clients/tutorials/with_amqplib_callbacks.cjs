// The tutorials' programs with amqplib's callbacks: `node with_amqplib_callbacks.cjs URI PROGRAM ARGUMENT…`.

const { randomUUID } = require('node:crypto');
const amqp = require('amqplib/callback_api');

const fibonacci = (number) => (number < 2 ? number : fibonacci(number - 1) + fibonacci(number - 2));
const ready = () => console.log('ready');

// Callbacks get an error first; none is expected, so any ends the program.
const must = (next) => (error, value) => {
  if (error) throw error;
  next(value);
};

const programs = {
  send(channel, end, queue, ...bodies) {
    channel.assertQueue(queue, { durable: false }, must(() => {
      for (const body of bodies) channel.sendToQueue(queue, Buffer.from(body));
      channel.waitForConfirms(must(() => end('sent', bodies.length)));
    }));
  },

  receive(channel, _end, queue) {
    channel.assertQueue(queue, { durable: false }, must(() => {
      const got = (message) => console.log('got', message.content.toString());
      channel.consume(queue, got, { noAck: true }, must(ready));
    }));
  },

  assign(channel, end, queue, ...bodies) {
    channel.assertQueue(queue, { durable: true }, must(() => {
      for (const body of bodies) channel.sendToQueue(queue, Buffer.from(body), { persistent: true });
      channel.waitForConfirms(must(() => end('assigned', bodies.length)));
    }));
  },

  // One task at a time, a tenth of a second for each dot, acknowledged when done.
  work(channel, _end, queue) {
    channel.assertQueue(queue, { durable: true });
    channel.prefetch(1);
    const begin = (message) => {
      const body = message.content.toString();
      console.log('began', body);
      setTimeout(() => {
        console.log('done', body);
        channel.ack(message);
      }, 100 * (body.split('.').length - 1));
    };
    channel.consume(queue, begin, {}, must(ready));
  },

  emit(channel, end, exchange, kind, ...keys) {
    channel.assertExchange(exchange, kind, { durable: false }, must(() => {
      for (const key of keys) channel.publish(exchange, key, Buffer.from(`about ${key}`));
      channel.waitForConfirms(must(() => end('emitted', keys.length)));
    }));
  },

  listen(channel, _end, exchange, kind, ...keys) {
    channel.assertExchange(exchange, kind, { durable: false });
    channel.assertQueue('', { exclusive: true }, must(({ queue }) => {
      for (const key of keys) channel.bindQueue(queue, exchange, key);
      const got = (message) => console.log('got', message.fields.routingKey, message.content.toString());
      channel.consume(queue, got, { noAck: true }, must(ready));
    }));
  },

  serve(channel, _end, queue) {
    channel.assertQueue(queue, { durable: false });
    channel.prefetch(1);
    const answer = (message) => {
      const { replyTo, correlationId } = message.properties;
      const body = Buffer.from(String(fibonacci(Number(message.content.toString()))));
      channel.sendToQueue(replyTo, body, { correlationId });
      channel.ack(message);
    };
    channel.consume(queue, answer, {}, must(ready));
  },

  call(channel, end, queue, ...numbers) {
    const asked = new Map();
    let replyTo;
    const ask = (number) => {
      const correlationId = randomUUID();
      asked.set(correlationId, number);
      channel.sendToQueue(queue, Buffer.from(number), { correlationId, replyTo });
    };
    const keep = (message) => {
      console.log('answer', asked.get(message.properties.correlationId), message.content.toString());
      if (numbers.length) ask(numbers.shift());
      else end();
    };
    channel.assertQueue('', { exclusive: true }, must(({ queue: own }) => {
      replyTo = own;
      channel.consume(own, keep, { noAck: true }, must(() => ask(numbers.shift())));
    }));
  },

  confirm(channel, end, queue, count) {
    let confirmed = 0;
    const last = must(() => {
      channel.on('return', (message) => console.log('returned', message.fields.replyText));
      channel.publish('', `${queue}.nobody`, Buffer.from('lost'), { mandatory: true }, must(() => end()));
    });
    const one = must(() => {
      confirmed += 1;
      if (confirmed < Number(count)) return;
      channel.checkQueue(queue, must(({ messageCount }) => {
        console.log('confirmed', messageCount);
        last(null);
      }));
    });
    channel.assertQueue(queue, { durable: false }, must(() => {
      for (let number = 0; number < Number(count); number += 1) {
        channel.sendToQueue(queue, Buffer.from(String(number)), {}, one);
      }
    }));
  },
};

const [uri, name, ...argumentsOfProgram] = process.argv.slice(2);
amqp.connect(uri, must((connection) => {
  connection.createConfirmChannel(must((channel) => {
    const end = (...words) => {
      if (words.length) console.log(...words);
      channel.close(must(() => connection.close()));
    };
    programs[name](channel, end, ...argumentsOfProgram);
  }));
}));
