// The control channel of every peer program. Both TypedRequest versions write to stdout, so events leave as
// JSON lines on file descriptor 3 and commands come in as JSON lines on stdin. A closed stdin ends the program:
// a peer never outlives the test that started it.
import { writeSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';

/** Reads the command line: --record, which every program has, options of the program's own, and positionals. */
export function parse(own = {}) {
  return parseArgs({ options: { record: { type: 'boolean', default: false }, ...own }, allowPositionals: true });
}

/** Writes one event line. Synchronous, so the last event is out before the process ends. */
export function emit(event, fields = {}) {
  let rest = Buffer.from(JSON.stringify({ event, ...fields }) + '\n');
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(3, rest));
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error; // a full pipe: the reader is on its way
    }
  }
}

/** Calls handler for each command line; end runs once when stdin is closed. */
export function commands(handler, end) {
  const lines = createInterface({ input: process.stdin });
  lines.on('line', (line) => {
    if (line.trim() !== '') handler(JSON.parse(line));
  });
  lines.on('close', end);
}
