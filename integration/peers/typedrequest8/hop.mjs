// What cloudly8 and node8 share: the methods that a relay passes between them, bodies that a second encoder would
// not write again, and the spelling of what they send.
import { addRetries } from './methods.mjs';

/** Node to Cloudly, besides the registration (contract §8.1). */
export const reports = [
  'reportRuntimeAssignmentObservation',
  'reportRuntimeAssignmentTerminalReceipt',
  'getRuntimeRegistryCredential',
  'getRuntimeManagedVpnCredential',
  'reportRuntimeNetworkProtection',
  'reportRuntimeNetworkProjectionApplication',
  'getRuntimeSecretRecipientState',
  'beginRuntimeSecretRecipientEnrollment',
  'completeRuntimeSecretRecipientEnrollment',
  'getRuntimeAssignmentSecretMaterial',
  'reportRuntimeAssignmentLogs',
];

/** Cloudly to node (contract §8.2). */
export const pushes = [
  'applyRuntimeAssignment',
  'applyRuntimeLocalStorageClaim',
  'applyRuntimeNetworkDnsLeaseRenewal',
  'readRuntimeAssignmentStats',
];

/** What is strictly judged may hold all of this: the top level of a body, and a session. */
export const strict = () =>
  JSON.parse(String.raw`{
    "10": "an index comes first in JavaScript", "2": [],
    "": "a name of no characters", "constructor": null, "toString": {},
    "\u2028\u2029\ufeff\uffff\ue000\ud83d\ude00": "name",
    "text": "\u0000\u001f\b\t\n\f\r\"\\/<>&'\u007f\u0085 é€😀 \u2028\u2029 \ufeff\uffff\ue000",
    "numbers": [1.5, -0.25, 1e21, 1e-7, 5e-324, 1.7976931348623157e308, 123456789012345680000, 9007199254740993]
  }`);

/** What may stand deeper in a body that is passed on. */
export const unusual = () =>
  JSON.parse(String.raw`{
    "lone": ["\ud800", "\udfff\ud800", "x\udc00"], "\udbff": "and in a name",
    "nested": ${'[{"":'.repeat(10)}1e21${'}]'.repeat(10)},
    "strict": ${JSON.stringify(strict())}
  }`);

/**
 * Serves methods that a relay passes. The member ask of a request chooses the end: refuse (by name, with data), fail,
 * nothing, retry (twice, told apart by the member tag), else an acceptance, which repeats the members tag and text.
 * admit may throw before that.
 */
export function addForwarded(lib, router, names, admit = () => {}) {
  for (const name of names) {
    router.addTypedHandler(
      new lib.TypedHandler(name, async (request, tools) => {
        admit(request, tools);
        switch (request.ask) {
          case 'refuse':
            throw new lib.TypedResponseError('not-today: é \u2028 "\\', { later: unusual(), code: 'not-today', ...strict() });
          case 'fail':
            throw new Error('a text that must not reach the wire');
          case 'nothing':
            return undefined;
        }
        return { later: unusual(), ...strict(), status: 'accepted', echo: request.text, tag: request.tag };
      }),
    );
  }
  addRetries(router, ({ request }) => (request.ask === 'retry' ? { call: request.tag, times: 2 } : undefined));
}

/**
 * The body of a call that a relay passes: session last, after much that is not the relay's business. Without a
 * session the body has no such member.
 */
export const body = (members, session) => ({ later: unusual(), ...strict(), ...members, session });

/** Drops what brings a member localData, null too, as a transport of version 8 is able to. */
export function refuseLocalData(router) {
  const guard = (_, { wireLocalDataPresent }) => !wireLocalDataPresent;
  router.registerIncomingRequestAuthorityGuard(guard);
  router.registerIncomingResponseAuthorityGuard(guard);
}

/**
 * Spells everything a socket sends with this white space, the members of the envelope in another order, and members
 * in it that are nobody's business behind the first hop: mark stands in their values.
 */
export function respell(socket, space, mark) {
  const send = socket.send.bind(socket);
  socket.send = (text, ...rest) => {
    const { method, ...members } = JSON.parse(text);
    const foreign = { localData: { mark }, authInfo: { jwt: mark }, [mark]: [mark] };
    return send(JSON.stringify({ ...foreign, ...members, method }, null, space), ...rest);
  };
}
