// What both servers share: the events they report and the commands they take.
import { parseArgs } from 'node:util';
import { commands, emit } from './control.mjs';
import { call } from './calls.mjs';
import { record } from './record.mjs';

/**
 * Reports sockets of a WebSocketServer and, with --record, every frame; then carries out commands until stdin
 * closes or the command stop arrives.
 */
export function control(wss, lib, router, port) {
  const { values: options } = parseArgs({ options: { record: { type: 'boolean', default: false } } });
  let newest;
  wss.on('connection', (socket, request) => {
    newest = socket;
    emit('open', { path: request.url });
    if (options.record) record(socket);
    socket.on('close', (code, reason) => emit('closed', { code, reason: reason.toString() }));
    socket.on('error', (error) => emit('socketError', { message: error.message }));
  });
  const each = (act) => wss.clients.forEach(act);
  const acts = {
    close: ({ code = 1000, reason = '' }) => each((socket) => socket.close(code, reason)),
    cut: () => each((socket) => socket.terminate()),
    pause: () => each((socket) => socket.pause()),
    resume: () => each((socket) => socket.resume()),
    send: ({ text }) => each((socket) => socket.send(text)),
    call: async ({ calls, timeoutMs }) => {
      const send = (text) => newest.send(text);
      const answers = calls.map(({ method, request }) => call(lib, router, send, method, request, timeoutMs));
      emit('called', { answers: await Promise.all(answers) });
    },
    stop: () => process.exit(0),
  };
  commands((command) => acts[command.do](command), acts.stop);
  emit('ready', { url: `ws://127.0.0.1:${port}/`, typedrequest: lib.version });
}
