// A real TypedRequest 8 router behind a WebSocket server. Usage: server8.mjs [--record] 3>&1 1>&2
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { WebSocketServer } from 'ws';
import * as lib from './v8.mjs';
import { route } from './calls.mjs';
import { addMethods } from './methods.mjs';
import { answerMalformed, kinds } from './malformed.mjs';
import { control } from './server.mjs';

const router = new lib.TypedRouter();
addMethods(lib, router, (tools) => tools.localData.connection);
router.addTypedHandler(new lib.TypedHandler('malformedKinds', async () => ({ kinds: Object.keys(kinds) })));

const wss = new WebSocketServer({ host: '127.0.0.1', port: 0 });
await once(wss, 'listening');
control(wss, lib, router, wss.address().port);

wss.on('connection', (socket) => {
  const connection = { id: randomUUID(), send: (data, sendOptions) => socket.send(data, sendOptions) };
  socket.on('message', (data) => {
    receive(connection, data.toString()).catch((error) => console.error('dropped a message:', error.message));
  });
});

async function receive(connection, text) {
  const envelope = JSON.parse(text);
  if (envelope?.method === 'malformed' && envelope.correlation?.phase === 'request') {
    return answerMalformed(envelope, connection.send);
  }
  await route(router, text, connection.send, { trustedLocalData: { connection } });
}
