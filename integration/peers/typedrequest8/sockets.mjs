// What every program with sockets reports of them, and the commands it takes for them.
import { emit } from './control.mjs';
import { callAll } from './calls.mjs';
import { record } from './record.mjs';

/** Reports what becomes of an open socket and, when recording, each of its messages. */
export function watch(socket, recording) {
  if (recording) record(socket);
  socket.on('close', (code, reason) => emit('closed', { code, reason: reason.toString() }));
  socket.on('error', (error) => emit('socketError', { message: error.message }));
}

/**
 * The commands that README.md names for every socket. all returns the sockets that are open, newest the one to
 * call over.
 */
export function socketActs(lib, router, all, newest) {
  const each = (act) => all().forEach(act);
  return {
    close: ({ code = 1000, reason = '' }) => each((socket) => socket.close(code, reason)),
    cut: () => each((socket) => socket.terminate()),
    pause: () => each((socket) => socket.pause()),
    resume: () => each((socket) => socket.resume()),
    send: ({ text }) => each((socket) => socket.send(text)),
    call: ({ calls, timeoutMs }) => report(lib, router, newest(), calls, timeoutMs),
    stop: () => process.exit(0),
  };
}

/** Calls the peer of a socket, all at once, and reports the outcomes as the event called. */
export async function report(lib, router, socket, calls, timeoutMs) {
  const answers = await callAll(lib, router, (text) => socket.send(text), calls, timeoutMs);
  emit('called', { answers });
  return answers;
}
