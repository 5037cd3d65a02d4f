// A real TypedRequest 8 client. Usage: client8.mjs [--record] URL SCENARIO... 3>&1 1>&2
import * as lib from './v8.mjs';
import { run } from './client.mjs';
import { common, v8only } from './scenarios.mjs';

await run(lib, { ...common, ...v8only });
