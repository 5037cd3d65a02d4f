// What both clients share: a socket, the methods they serve, the scenarios they run.
import { once } from 'node:events';
import { parseArgs } from 'node:util';
import WebSocket from 'ws';
import { commands, emit } from './control.mjs';
import { route } from './calls.mjs';
import { record } from './record.mjs';

/**
 * Dials the URL of the first argument and runs the scenarios named by the others, one after the other; each is
 * a function of a session. Reports a result a scenario, then done, and ends.
 */
export async function run(lib, scenarios) {
  const { values, positionals } = parseArgs({ options: { record: { type: 'boolean', default: false } }, allowPositionals: true });
  const [url, ...names] = positionals;
  commands(() => {}, () => process.exit(0));

  const router = new lib.TypedRouter();
  const serve = (name, handler) => router.addTypedHandler(new lib.TypedHandler(name, handler));
  serve('clientAdds', async ({ q }) => ({ answer: q + 1 }));
  serve('clientThrows', async () => {
    throw new lib.TypedResponseError('client refuses', { code: 'C1' });
  });
  serve('clientSilence', () => new Promise(() => {}));

  const socket = new WebSocket(url, { perMessageDeflate: false });
  if (values.record) record(socket);
  const sent = [];
  const send = (text) => {
    sent.push(JSON.parse(text));
    socket.send(text);
  };
  const session = { lib, router, socket, sent, send };
  socket.on('message', (data) => {
    route(router, data.toString(), send).catch((error) => console.error('dropped a message:', error.message));
  });
  await once(socket, 'open');
  socket.on('error', (error) => emit('socketError', { message: error.message }));
  emit('open', { url });
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
