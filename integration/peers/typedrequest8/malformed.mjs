// Answers that no real router gives, composed at the socket. Each entry gets the good answer as an object and
// returns the frames to send: strings go out as text messages, { text: Buffer } as a text message of those very
// bytes, { binary: Buffer } as a binary message.
const json = (value) => [JSON.stringify(value)];
const without = (answer, name) => {
  const { [name]: _, ...rest } = answer;
  return rest;
};

export const kinds = {
  // identity
  'instance-id-absent': (a) => json(without(a, 'requestInstanceId')),
  'instance-id-other': (a) => json({ ...a, requestInstanceId: 'uni_000000000000000000000000' }),
  'method-other': (a) => json({ ...a, method: 'other' }),
  'correlation-absent': (a) => json(without(a, 'correlation')),
  'correlation-id-other': (a) => json({ ...a, correlation: { ...a.correlation, id: 'uni_000000000000000000000000' } }),
  'phase-unknown': (a) => json({ ...a, correlation: { ...a.correlation, phase: 'answer' } }),
  // members of the right answer
  'response-absent': (a) => json(without(a, 'response')),
  'error-null': (a) => json({ ...a, error: null }),
  'error-string': (a) => json({ ...a, error: 'denied' }),
  'error-text-absent': (a) => json({ ...a, error: { data: {} } }),
  'error-text-number': (a) => json({ ...a, error: { text: 7, data: {} } }),
  'retry-wait-zero': (a) => json({ ...a, retry: { waitForMs: 0, reason: 'r' } }),
  'retry-wait-negative': (a) => json({ ...a, retry: { waitForMs: -1, reason: 'r' } }),
  'retry-wait-fraction': (a) => json({ ...a, retry: { waitForMs: 1.5, reason: 'r' } }),
  'retry-wait-string': (a) => json({ ...a, retry: { waitForMs: '20', reason: 'r' } }),
  'retry-wait-huge': (a) => json({ ...a, retry: { waitForMs: 2 ** 31, reason: 'r' } }),
  // odd, but tolerated by the real client
  'retry-null': (a) => json({ ...a, retry: null }),
  'error-data-null': (a) => json({ ...a, error: { text: 'bad', data: null }, retry: null }),
  'request-null': (a) => json({ ...a, request: null }),
  'request-absent': (a) => json(without(a, 'request')),
  'response-null': (a) => json({ ...a, response: null }),
  'local-data-null': (a) => json({ ...a, localData: null, unknown: [1] }),
  'answered-twice': (a) => [...json(a), ...json({ ...a, response: { kind: 'second' } })],
  // not JSON, or not this JSON
  'empty': () => [''],
  'not-json': () => ['not json'],
  'truncated': (a) => [JSON.stringify(a).slice(0, -1)],
  'trailing-data': (a) => [JSON.stringify(a) + ' {}'],
  'array': (a) => json([a]),
  'number': () => ['7'],
  'null': () => ['null'],
  'duplicate-member': (a) => [JSON.stringify(a).replace('{', '{"response":{"kind":"first"},')],
  'invalid-utf8': (a) => [{ text: spliced(a) }],
  'byte-order-mark': (a) => ['\ufeff' + JSON.stringify(a)],
  'deep': (a) => [JSON.stringify({ ...a, response: 'DEEP' }).replace('"DEEP"', '['.repeat(65) + ']'.repeat(65))],
  'binary': (a) => [{ binary: Buffer.from(JSON.stringify(a)) }],
};

function spliced(answer) {
  const [head, tail] = JSON.stringify({ ...answer, response: { kind: 'SPLIT' } }).split('SPLIT');
  return Buffer.concat([Buffer.from(head), Buffer.from([0xff]), Buffer.from(tail)]);
}

/**
 * Answers a call of the method "malformed", request { kind, good }: first the named bad answer, then, when good
 * is true, the right one 50 ms later on the same socket.
 */
export function answerMalformed(envelope, send) {
  const { kind, good } = envelope.request;
  const right = {
    method: envelope.method,
    request: envelope.request,
    response: { kind },
    requestInstanceId: envelope.requestInstanceId,
    correlation: { id: envelope.correlation.id, phase: 'response' },
  };
  for (const frame of kinds[kind](right)) {
    if (typeof frame === 'string') send(frame, { binary: false });
    else if (frame.text) send(frame.text, { binary: false });
    else send(frame.binary, { binary: true });
  }
  if (good) setTimeout(() => send(JSON.stringify(right), { binary: false }), 50);
}
