// An old peer: the 3.3.0 router behind SmartServe 2.0.3, whose answers carry "localData":null.
// Usage: server3.mjs [--record] 3>&1 1>&2
import { SmartServe } from '@push.rocks/smartserve';
import * as lib from './v3.mjs';
import { addMethods } from './methods.mjs';
import { control } from './server.mjs';

const typedRouter = new lib.TypedRouter();
addMethods(lib, typedRouter, (tools) => tools.localData.peer);

const server = new SmartServe({ hostname: '127.0.0.1', port: 0, websocket: { typedRouter } });
await server.start();
const { wss, server: http } = server.adapter; // its public API names no port of its own choice
control(wss, lib, typedRouter, http.address().port);
