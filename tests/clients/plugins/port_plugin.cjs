// Sends what is meant for RabbitMQ's own ports to the broker under test: the suites have them in their code.

const net = require('node:net');

const MEANT = new Map([
  [5672, process.env.WARREN_CLIENTS_PORT],
  [5552, process.env.WARREN_CLIENTS_STREAM_PORT],
  [5551, process.env.WARREN_CLIENTS_STREAM_TLS_PORT],
]);
const connect = net.Socket.prototype.connect;

function port(given) {
  return Number(MEANT.get(Number(given)) || given);
}

net.Socket.prototype.connect = function (first, ...rest) {
  // Node calls it with what net.connect was given, in an array.
  const [options, ...more] = Array.isArray(first) ? first : [first, ...rest];
  if (options !== null && typeof options === 'object') {
    return connect.call(this, { ...options, port: port(options.port) }, ...more);
  }
  return connect.call(this, port(options), ...more);
};
