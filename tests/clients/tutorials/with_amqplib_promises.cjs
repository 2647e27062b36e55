// The tutorials' programs with amqplib's promises: `node with_amqplib_promises.cjs URI PROGRAM ARGUMENT…`.

const { randomUUID } = require('node:crypto');
const amqp = require('amqplib');

const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
const fibonacci = (number) => (number < 2 ? number : fibonacci(number - 1) + fibonacci(number - 2));
const forever = () => {
  console.log('ready');
  return new Promise(() => {});
};

const programs = {
  async send(channel, queue, ...bodies) {
    await channel.assertQueue(queue, { durable: false });
    for (const body of bodies) channel.sendToQueue(queue, Buffer.from(body));
    await channel.waitForConfirms();
    console.log('sent', bodies.length);
  },

  async receive(channel, queue) {
    await channel.assertQueue(queue, { durable: false });
    await channel.consume(queue, (message) => console.log('got', message.content.toString()), { noAck: true });
    await forever();
  },

  async assign(channel, queue, ...bodies) {
    await channel.assertQueue(queue, { durable: true });
    for (const body of bodies) channel.sendToQueue(queue, Buffer.from(body), { persistent: true });
    await channel.waitForConfirms();
    console.log('assigned', bodies.length);
  },

  // One task at a time, a tenth of a second for each dot, acknowledged when done.
  async work(channel, queue) {
    await channel.assertQueue(queue, { durable: true });
    await channel.prefetch(1);
    await channel.consume(queue, async (message) => {
      const body = message.content.toString();
      console.log('began', body);
      await sleep(100 * (body.split('.').length - 1));
      console.log('done', body);
      channel.ack(message);
    });
    await forever();
  },

  async emit(channel, exchange, kind, ...keys) {
    await channel.assertExchange(exchange, kind, { durable: false });
    for (const key of keys) channel.publish(exchange, key, Buffer.from(`about ${key}`));
    await channel.waitForConfirms();
    console.log('emitted', keys.length);
  },

  async listen(channel, exchange, kind, ...keys) {
    await channel.assertExchange(exchange, kind, { durable: false });
    const { queue } = await channel.assertQueue('', { exclusive: true });
    for (const key of keys) await channel.bindQueue(queue, exchange, key);
    const got = (message) => console.log('got', message.fields.routingKey, message.content.toString());
    await channel.consume(queue, got, { noAck: true });
    await forever();
  },

  async serve(channel, queue) {
    await channel.assertQueue(queue, { durable: false });
    await channel.prefetch(1);
    await channel.consume(queue, (message) => {
      const answer = Buffer.from(String(fibonacci(Number(message.content.toString()))));
      const { replyTo, correlationId } = message.properties;
      channel.sendToQueue(replyTo, answer, { correlationId });
      channel.ack(message);
    });
    await forever();
  },

  async call(channel, queue, ...numbers) {
    const { queue: replyTo } = await channel.assertQueue('', { exclusive: true });
    const waiting = new Map();
    const keep = (message) => waiting.get(message.properties.correlationId)(message.content.toString());
    await channel.consume(replyTo, keep, { noAck: true });
    for (const number of numbers) {
      const correlationId = randomUUID();
      const answer = new Promise((resolve) => waiting.set(correlationId, resolve));
      channel.sendToQueue(queue, Buffer.from(number), { correlationId, replyTo });
      console.log('answer', number, await answer);
    }
  },

  async confirm(channel, queue, count) {
    await channel.assertQueue(queue, { durable: false });
    for (let number = 0; number < Number(count); number += 1) channel.sendToQueue(queue, Buffer.from(String(number)));
    await channel.waitForConfirms();
    console.log('confirmed', (await channel.checkQueue(queue)).messageCount);
    channel.on('return', (message) => console.log('returned', message.fields.replyText));
    channel.publish('', `${queue}.nobody`, Buffer.from('lost'), { mandatory: true });
    await channel.waitForConfirms();
  },
};

async function main(uri, name, ...argumentsOfProgram) {
  const connection = await amqp.connect(uri);
  const channel = await connection.createConfirmChannel();
  await programs[name](channel, ...argumentsOfProgram);
  await channel.close();
  await connection.close();
}

main(...process.argv.slice(2)).catch((error) => {
  console.error(error);
  process.exit(1);
});
