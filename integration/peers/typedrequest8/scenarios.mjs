// The scenarios of both clients. Each result is free of ids and times, so that a test compares it whole.
import { once } from 'node:events';
import { call } from './calls.mjs';

const ask = (session, method, request, timeoutMs) =>
  call(session.lib, session.router, session.send, method, request, timeoutMs);

export const common = {
  echo: (s) => ask(s, 'echo', { a: 1, text: 'grüße € 😀 \u2028 \u0000 "\\', list: [1.5, -0, true, null] }),
  loneSurrogate: (s) => ask(s, 'echo', { deep: { lone: '\ud800' } }),
  typedError: (s) => ask(s, 'throwTyped', {}),
  plainError: (s) => ask(s, 'throwPlain', {}),
  nothing: (s) => ask(s, 'nothing', {}),
  unknownMethod: (s) => ask(s, 'nobodyServesThis', {}),

  retryTwice: async (s) => {
    const outcome = await ask(s, 'retryTwice', {});
    return { ...outcome, ...identities(s.sent) };
  },

  inFlight: async (s) => {
    const calls = 1000;
    const outcomes = await Promise.all(Array.from({ length: calls }, (_, n) => ask(s, 'echo', { n })));
    return { calls, right: outcomes.filter(({ response }, n) => response?.got.n === n).length };
  },

  outOfOrder: async (s) => {
    const order = [];
    const held = ['a', 'b', 'c', 'd', 'e'].map((tag) =>
      ask(s, 'hold', { tag }).then(({ response }) => order.push(response?.tag)),
    );
    await ask(s, 'release', { tags: ['e', 'a', 'd', 'b', 'c'] });
    await Promise.all(held);
    return { order };
  },

  servesCalls: (s) =>
    ask(s, 'asksBack', {
      calls: [
        { method: 'clientAdds', request: { q: 41 } },
        { method: 'clientThrows', request: {} },
        { method: 'clientHasNot', request: {} },
      ],
    }),

  servesManyCalls: async (s) => {
    const calls = Array.from({ length: 100 }, (_, q) => ({ method: 'clientAdds', request: { q } }));
    const { response } = await ask(s, 'asksBack', { calls });
    return { calls: calls.length, right: response?.answers.filter((a, q) => a.response?.answer === q + 1).length };
  },

  large: async (s) => {
    const text = 'é'.repeat(512 * 1024); // 1 MiB of UTF-8
    const { response } = await ask(s, 'echo', { text });
    return { chars: text.length, same: response?.got.text === text };
  },

  silence: async (s) => ({ silent: await ask(s, 'silence', {}, 300), after: await ask(s, 'echo', { n: 1 }) }),

  /** Waits until the server closes the socket. */
  closed: async (s) => {
    const [code, reason] = await once(s.socket, 'close');
    return { code, reason: reason.toString() };
  },
};

export const v8only = {
  retryForever: async (s) => {
    const outcome = await ask(s, 'retryForever', {});
    return { ...outcome, ...identities(s.sent) };
  },

  /** What a real v8 caller makes of each answer in malformed.mjs that leaves the socket open: server8 only. */
  malformedAnswers: async (s) => {
    const { response } = await ask(s, 'malformedKinds', {});
    const kinds = response.kinds.filter((kind) => kind !== 'invalid-utf8'); // ws closes with 1007
    const outcomes = await Promise.all(kinds.map((kind) => ask(s, 'malformed', { kind, good: false }, 2000)));
    return Object.fromEntries(kinds.map((kind, n) => [kind, outcomes[n]]));
  },
};

/** How the sends of one call differ: a retry keeps the correlation and, since v8, changes the instance id. */
function identities(sent) {
  const distinct = (values) => new Set(values.filter((value) => value !== undefined)).size;
  return {
    sends: sent.length,
    correlations: distinct(sent.map((envelope) => envelope.correlation.id)),
    instances: distinct(sent.map((envelope) => envelope.requestInstanceId)),
  };
}
