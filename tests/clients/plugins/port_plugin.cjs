// Sends what is meant for RabbitMQ's own port to the broker under test: the suite has that port in its code.

const net = require('node:net');

const MEANT = 5672;
const PORT = Number(process.env.WARREN_CLIENTS_PORT);
const connect = net.connect;

net.connect = function (...args) {
  const options = args[0];
  if (options !== null && typeof options === 'object' && Number(options.port) === MEANT) {
    args[0] = { ...options, port: PORT };
  }
  return connect.apply(net, args);
};
