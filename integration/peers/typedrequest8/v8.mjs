// TypedRequest 8.0.3. No package of that version is served; its code lives inside the self-contained bundle of
// @design.estate/dees-comms 1.1.0, which exports DeesComms alone. The classes are taken from one instance of it.
import { DeesComms } from '@design.estate/dees-comms/dist_bundle/bundle.js';

const comms = new DeesComms({ channelName: `peer-${process.pid}` });
await comms.createTypedHandler('', async () => undefined);

export const version = '8.0.3';
export const TypedRouter = comms.typedrouter.constructor;
export const TypedHandler = comms.typedrouter.handlerMap.getArray()[0].constructor;
export const TypedTarget = comms.typedtarget.constructor;
export const TypedRequest = comms.createTypedRequest('').constructor;

// Only a failed call shows the class of its error.
const refusing = new TypedTarget({
  postMethod: async (envelope) => ({
    ...envelope,
    correlation: { ...envelope.correlation, phase: 'response' },
    error: { text: 'refused', data: {} },
  }),
});
export const TypedResponseError = await new TypedRequest(refusing, 'refused').fire({}).catch((error) => error.constructor);

await comms.close(); // the BroadcastChannel would keep the process alive
