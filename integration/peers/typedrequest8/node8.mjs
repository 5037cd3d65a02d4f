// A node as a real TypedRequest 8 client: it dials the node listener of a relay and does what it is told.
// Usage: node8.mjs [--record] [--ca FILE] [--servername NAME] --node ID --token TEXT URL 3>&1 1>&2
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import * as lib from './v8.mjs';
import { connect } from './client.mjs';
import { commands, parse } from './control.mjs';
import { addForwarded, body, pushes, refuseLocalData, respell, strict, unusual } from './hop.mjs';
import { report, socketActs } from './sockets.mjs';

const { values, positionals } = parse({
  ca: { type: 'string' },
  servername: { type: 'string' },
  node: { type: 'string' },
  token: { type: 'string' },
});
const nonce = randomUUID(); // of this process start
let session;

const router = new lib.TypedRouter();
addForwarded(lib, router, pushes);
refuseLocalData(router);

const socket = await connect(positionals[0], router, {
  recording: values.record,
  prepare: (socket) => respell(socket, ' \t\n', 'foreign-of-node'),
  ca: values.ca && readFileSync(values.ca),
  servername: values.servername,
});

/** Registers over the live socket and holds the session of the answer. With another generation it is a rotation. */
async function register({ tag, generation = 1 }) {
  const request = {
    later: unusual(),
    ...strict(),
    tag,
    protocol: { minimumPeerVersion: '32.0.0', interfacesVersion: '32.44.0' },
    resolvedAuthorities: ['network', 'secrets'],
    nodeInstanceNonce: nonce,
    credential: { token: values.token, generation },
    nodeId: values.node,
  };
  const [{ response }] = await report(lib, router, socket, [{ method: 'registerPalletRuntimeSession', request }]);
  session = response?.session ?? session;
}

/** Sends reports under the session that is held, and those that are bare without one. */
const reportAll = ({ calls, timeoutMs }) => {
  const bodies = calls.map(({ method, request, bare }) => ({ method, request: body(request, bare ? undefined : session) }));
  return report(lib, router, socket, bodies, timeoutMs);
};

const acts = { ...socketActs(lib, router, () => [socket], () => socket), register, report: reportAll };
commands((command) => acts[command.do](command), acts.stop);
