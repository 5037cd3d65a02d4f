// Calls over a socket with the classes of either version, and what came of them as plain JSON.

/** A 3.3.0 call waits for ever; this much later than the asked timeout it is given up here. */
const GRACE_MS = 500;

/**
 * Fires one call through send and reports { response } or { error }. The error of an answer is
 * { name: 'TypedResponseError', text, data }, any other one { name, message }.
 */
export async function call(lib, router, send, method, request, timeoutMs = 10_000) {
  const target = new lib.TypedTarget({
    postMethodWithTypedRouter: async (envelope) => send(JSON.stringify(envelope)),
    typedRouterRef: router,
    supportsAbortSignal: true,
    responseTimeoutMs: timeoutMs,
  });
  let timer;
  const givenUp = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer in ${timeoutMs}ms`)), timeoutMs + GRACE_MS);
  });
  try {
    return { response: await Promise.race([new lib.TypedRequest(target, method).fire(request), givenUp]) };
  } catch (error) {
    if (error instanceof lib.TypedResponseError) {
      return { error: { name: 'TypedResponseError', text: error.errorText, data: error.errorData } };
    }
    return { error: { name: error.name, message: error.message } };
  } finally {
    clearTimeout(timer);
  }
}

/** Fires calls of { method, request } all at once and returns their outcomes in that order. */
export const callAll = (lib, router, send, calls, timeoutMs) =>
  Promise.all(calls.map(({ method, request }) => call(lib, router, send, method, request, timeoutMs)));

/** Gives one received text to the router and sends what it answers. */
export async function route(router, text, send, options) {
  const answer = await router.routeAndAddResponse(JSON.parse(text), options);
  if (answer) send(JSON.stringify(answer));
}
