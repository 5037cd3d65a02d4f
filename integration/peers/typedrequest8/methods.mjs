// The methods that both servers offer. A Go server that client8 or client3 is pointed at offers the same ones;
// README.md has them as a table.
import { callAll } from './calls.mjs';

/**
 * Adds the methods to router. connectionOf finds, from a handler's tools, the connection that the call came in
 * on: an object with an id and send(text). The object itself is no key: the 3.3.0 router hands out a copy a call.
 */
export function addMethods(lib, router, connectionOf) {
  const held = new Map(); // connection id -> Map(tag -> answer)
  const heldOn = ({ id }) => {
    if (!held.has(id)) held.set(id, new Map());
    return held.get(id);
  };

  const methods = {
    echo: async (request) => ({ got: request }),
    throwTyped: async () => {
      throw new lib.TypedResponseError('denied', { code: 'E1' });
    },
    throwPlain: async () => {
      throw new Error('a text that must not reach the wire');
    },
    nothing: async () => undefined,
    silence: () => new Promise(() => {}),
    large: async ({ bytes }) => ({ text: 'x'.repeat(bytes) }),
    wait: async ({ ms, tag }) => {
      await sleep(ms);
      return { tag };
    },
    hold: ({ tag }, tools) =>
      new Promise((resolve) => heldOn(connectionOf(tools)).set(tag, () => resolve({ tag }))),
    release: async ({ tags }, tools) => {
      const waiting = heldOn(connectionOf(tools));
      for (const tag of tags) {
        while (!waiting.has(tag)) await sleep(1);
        waiting.get(tag)();
        waiting.delete(tag);
        await sleep(0); // let this answer leave before the next one
      }
      return { released: tags.length };
    },
    asksBack: async ({ calls }, tools) => {
      const connection = connectionOf(tools);
      const send = (text) => connection.send(text);
      return { answers: await callAll(lib, router, send, calls) };
    },
    retryTwice: async (_, tools) => (tools.localData.attempt > 2 ? { attempts: tools.localData.attempt } : undefined),
    retryForever: async () => undefined,
  };
  for (const [name, handler] of Object.entries(methods)) router.addTypedHandler(new lib.TypedHandler(name, handler));
  addRetries(router, ({ method, correlation, request }) =>
    method === 'retryTwice' || method === 'retryForever'
      ? { call: correlation.id, times: method === 'retryTwice' ? 2 : Infinity, waitForMs: request.waitForMs }
      : undefined,
  );
}

/**
 * Neither version's handlers can ask for a retry. Middleware gets the whole envelope, and the router sends what
 * middleware wrote on it, so the answer still comes out of the real router.
 *
 * wanted says of an envelope how often its call is to be asked again, and what tells one call from another (in
 * methods of this folder correlation.id, which stays the same over the retries of a call).
 */
export function addRetries(router, wanted) {
  const attempts = new Map();
  router.addMiddleware(async (envelope) => {
    const retries = wanted(envelope);
    if (!retries) return;
    const attempt = (attempts.get(retries.call) ?? 0) + 1;
    attempts.set(retries.call, attempt);
    envelope.localData.attempt = attempt;
    if (attempt <= retries.times) envelope.retry = { waitForMs: retries.waitForMs ?? 20, reason: 'not yet' };
  });
}

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
