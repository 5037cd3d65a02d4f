import { emit } from './control.mjs';

/** Reports each message of a socket in both directions, as the event frame. */
export function record(socket) {
  const report = (direction, data, binary) =>
    emit('frame', binary ? { direction, base64: Buffer.from(data).toString('base64') } : { direction, text: data.toString() });
  socket.on('message', (data, binary) => report('in', data, binary));
  const send = socket.send.bind(socket);
  socket.send = (data, ...rest) => {
    report('out', data, rest[0]?.binary ?? typeof data !== 'string');
    return send(data, ...rest);
  };
}
