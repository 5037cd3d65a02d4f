// A 3.3.0 client: its calls carry no requestInstanceId. Usage: client3.mjs [--record] URL SCENARIO... 3>&1 1>&2
import * as lib from './v3.mjs';
import { run } from './client.mjs';
import { common } from './scenarios.mjs';

await run(lib, common);
