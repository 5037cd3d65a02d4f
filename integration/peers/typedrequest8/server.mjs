// What both servers share: the events they report and the commands they take.
import { commands, emit, parse } from './control.mjs';
import { socketActs, watch } from './sockets.mjs';

/**
 * Reports sockets of a WebSocketServer and, when recording, every frame; then carries out commands, those of acts
 * besides the common ones, until stdin closes or the command stop arrives.
 */
export function control(wss, lib, router, port, { record = parse().values.record, acts = {} } = {}) {
  let newest;
  wss.on('connection', (socket, request) => {
    newest = socket;
    emit('open', { path: request.url });
    watch(socket, record);
  });
  const all = { ...socketActs(lib, router, () => wss.clients, () => newest), ...acts };
  commands((command) => all[command.do](command), all.stop);
  emit('ready', { url: `ws://127.0.0.1:${port}/`, typedrequest: lib.version });
}
