// What clients share: a socket, and for client8 and client3 the methods they serve and the scenarios they run.
import { once } from 'node:events';
import WebSocket from 'ws';
import { commands, emit, parse } from './control.mjs';
import { route } from './calls.mjs';
import { watch } from './sockets.mjs';

/**
 * Opens a socket whose messages are given to router, and reports it. prepare gets the socket before anything is
 * sent; options are those of ws.
 */
export async function connect(url, router, { recording, prepare = () => {}, ...options }) {
  const socket = new WebSocket(url, { perMessageDeflate: false, ...options });
  watch(socket, recording);
  prepare(socket);
  socket.on('message', (data) => {
    route(router, data.toString(), (text) => socket.send(text)).catch((error) =>
      console.error('dropped a message:', error.message),
    );
  });
  await once(socket, 'open');
  emit('open', { url });
  return socket;
}

/**
 * Dials the URL of the first argument and runs the scenarios named by the others, one after the other; each is
 * a function of a session. Reports a result a scenario, then done, and ends.
 */
export async function run(lib, scenarios) {
  const { values, positionals } = parse();
  const [url, ...names] = positionals;
  commands(() => {}, () => process.exit(0));

  const router = new lib.TypedRouter();
  const serve = (name, handler) => router.addTypedHandler(new lib.TypedHandler(name, handler));
  serve('clientAdds', async ({ q }) => ({ answer: q + 1 }));
  serve('clientThrows', async () => {
    throw new lib.TypedResponseError('client refuses', { code: 'C1' });
  });
  serve('clientSilence', () => new Promise(() => {}));

  const socket = await connect(url, router, { recording: values.record });
  const sent = [];
  const send = (text) => {
    sent.push(JSON.parse(text));
    socket.send(text);
  };
  const session = { lib, router, socket, sent, send };
  for (const name of names) {
    sent.length = 0;
    try {
      emit('result', { scenario: name, result: await scenarios[name](session) });
    } catch (error) {
      emit('failed', { scenario: name, message: error.message });
      process.exit(1);
    }
  }
  if (socket.readyState === WebSocket.OPEN) {
    socket.close(1000, 'done');
    await once(socket, 'close');
  }
  emit('done');
  process.exit(0);
}
