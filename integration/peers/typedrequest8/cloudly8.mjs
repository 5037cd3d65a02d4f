// A minimal Cloudly behind the real router of TypedRequest 8: it takes one relay and registers the nodes that are
// enrolled. Members of bodies that the contract does not spell are those of package simulate.
// Usage: cloudly8.mjs [--record] --hostname NAME 3>&1 1>&2
import { createHash, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { isDeepStrictEqual } from 'node:util';
import { WebSocketServer } from 'ws';
import * as lib from './v8.mjs';
import { route } from './calls.mjs';
import { emit, parse } from './control.mjs';
import { addForwarded, body, pushes, refuseLocalData, reports, respell, strict, unusual } from './hop.mjs';
import { control } from './server.mjs';
import { report } from './sockets.mjs';

const { values } = parse({ hostname: { type: 'string' } });
const clusterId = 'cluster-a';
const offer = { minimumPeerVersion: '32.0.0', interfacesVersion: '32.44.0' };
const bearer = /^clusterRelayToken_[A-Za-z0-9][A-Za-z0-9:._-]{0,199}_[0-9a-f]{64}$/;

const jwts = new Set();
const nodes = new Map(); // by id: { token, epoch, sessions by nonce and generation, the current session, its socket }
let origin = null;
let registrations = 0;

const refuse = (text, data = {}) => {
  throw new lib.TypedResponseError(text, data);
};
const need = (right, text) => right || refuse(text);
const negotiable = ({ protocol }) => need(protocol?.interfacesVersion?.startsWith('32.'), 'protocol-incompatible');
const reference = (id, generation, record) => ({
  digest: 'sha256:' + createHash('sha256').update(JSON.stringify(record)).digest('hex'),
  generation,
  id,
});

/** Each gets the request and the connection that it came on. */
const own = {
  getIdentityByToken({ token }) {
    need(bearer.test(token), 'the token is not known');
    const jwt = `${randomUUID()}.${randomUUID()}`;
    jwts.add(jwt);
    const expiresAt = Date.now() + 3_600_000;
    return { identity: { jwt, expiresAt, role: 'cluster', type: 'machine', userId: 'relay', name: clusterId } };
  },

  registerCloudlyClientSession(request, connection) {
    negotiable(request);
    need(jwts.has(request.identity.jwt), 'the identity is not known');
    connection.authenticated = true;
    return { ...strict(), protocol: offer };
  },

  registerClusterRelay(request, connection) {
    negotiable(request);
    need(connection.authenticated, 'the socket is not authenticated');
    const code = 'relay-sequence-not-advancing';
    const advances = request.registrationSequence > (connection.sequence ?? -1);
    if (!advances) refuse(`${code}: the number was used`, { code });
    connection.sequence = request.registrationSequence;
    connection.registered = true;
    origin = `https://${values.hostname}:${request.relay.listenPort}`;
    registrations += 1;
    emit('relayRegistered', { origin, relay: request.relay, sequence: request.registrationSequence });
    return {
      ...strict(),
      origin,
      acceptedRegistration: reference(`registration-${clusterId}`, registrations, request),
      credential: reference(`credential-${clusterId}`, 1, clusterId),
      protocol: offer,
    };
  },

  getClusterConfig({ identity }) {
    need(jwts.has(identity.jwt), 'the identity is not known');
    const known = [...nodes.keys()].map((id) => ({ data: { clusterId, role: 'worker' }, id }));
    // The relay reads this body itself and takes no lone surrogate anywhere in it.
    return { services: [strict()], configData: { data: { nodes: known, relay: { origin }, name: clusterId }, id: clusterId } };
  },

  getClusterVpnNetwork: () => ({ network: null }),
  getClusterRouteTable: () => ({ table: null }),
  getClusterPlatformDesiredState: () => ({ bindings: [], providerConfigs: [], capabilities: [] }),
  getSecretRecipientEnrollmentState: () => ({ recipients: [], generation: 0 }),

  registerPalletRuntimeSession(request, connection) {
    negotiable(request);
    need(connection.registered, 'no relay is verified on this socket');
    const { nodeId, nodeInstanceNonce: nonce, credential } = request;
    const node = nodes.get(nodeId);
    need(node && credential?.token === node.token, "the node's credential is not current");
    const identity = JSON.stringify([nonce, credential.generation]);
    if (!node.sessions.has(identity)) node.sessions.set(identity, mint(nodeId, ++node.epoch, credential.generation));
    node.session = node.sessions.get(identity);
    node.socket = connection.socket;
    return { later: unusual(), ...strict(), protocol: offer, session: node.session };
  },
};

const mint = (nodeId, sessionEpoch, credentialGeneration) => ({
  sessionEpoch,
  ...strict(),
  controller: { id: 'control-plane', kind: 'cloudly', ...strict() },
  nodeId,
  credentialGeneration,
  runtimeNamespace: 'namespace:1',
  clusterId,
});

/** Judges a report by the node's session, when it names one. */
function admit({ session }, { localData: { connection } }) {
  need(connection.registered, 'no relay is verified on this socket');
  if (!session) return;
  const node = nodes.get(session.nodeId);
  need(node?.socket === connection.socket, 'the session is not registered over this socket');
  need(isDeepStrictEqual(session, node.session), "the session is not the node's current one");
}

const enroll = ({ nodeId, token }) => nodes.set(nodeId, { token, epoch: 0, sessions: new Map() });

/** The push names the session with its members in another order than the registration did. */
async function push({ nodeId, calls, timeoutMs }) {
  const { session, socket } = nodes.get(nodeId);
  const reversed = Object.fromEntries(Object.entries(session).reverse());
  const bodies = calls.map(({ method, request }) => ({ method, request: body(request, reversed) }));
  await report(lib, router, socket, bodies, timeoutMs);
}

const router = new lib.TypedRouter();
for (const [name, answer] of Object.entries(own)) {
  router.addTypedHandler(
    new lib.TypedHandler(name, async (request, tools) => answer(request, tools.localData.connection)),
  );
}
addForwarded(lib, router, reports, admit);
refuseLocalData(router);

const wss = new WebSocketServer({ host: '127.0.0.1', port: 0 });
await once(wss, 'listening');
control(wss, lib, router, wss.address().port, { record: values.record, acts: { enroll, push } });

wss.on('connection', (socket) => {
  respell(socket, '\r\n\t ', 'foreign-of-cloudly');
  const connection = { socket };
  const send = (text) => socket.send(text);
  socket.on('message', (data) => {
    route(router, data.toString(), send, { trustedLocalData: { connection } }).catch((error) =>
      console.error('dropped a message:', error.message),
    );
  });
});
