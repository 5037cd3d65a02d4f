// Makes the golden vectors of package contract with the tools the peers use:
// JSON.stringify, Array.prototype.sort (UTF-16 code units), URL, Date.UTC and
// node:crypto. Node 20 or later, no packages.
//
//   node make.mjs           writes contract/testdata/vectors/*.json
//   node make.mjs --check   makes them again and exits 1 when a file differs
//
// What is refused is judged by the strict reader below, which shares nothing
// with the Go code.

import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const directory = join(dirname(fileURLToPath(import.meta.url)), '../../../contract/testdata/vectors');
const maximumDepth = 64;

// --- strict reader: bytes to a tree of [kind, ...] nodes, or a throw ---------

class Refused extends Error {}

function readStrict(bytes) {
  let text;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new Refused('invalid utf-8');
  }
  let at = 0;
  const space = () => { while (' \t\n\r'.includes(text[at] ?? 'x')) at++; };
  const take = (pattern) => {
    pattern.lastIndex = at;
    const match = pattern.exec(text);
    if (match === null) throw new Refused('malformed');
    at = pattern.lastIndex;
    return match[0];
  };
  const string = () => {
    const token = take(/"(?:[^"\\\u0000-\u001f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*"/y);
    const value = JSON.parse(token);
    if (!value.isWellFormed()) throw new Refused('lone surrogate');
    return value;
  };
  const value = (depth) => {
    space();
    const next = text[at];
    if (next === '{' || next === '[') {
      if (depth >= maximumDepth) throw new Refused('too deep');
      at++;
      return next === '{' ? ['object', members(depth + 1)] : ['array', elements(depth + 1)];
    }
    if (next === '"') return ['string', string()];
    if (next === 't' || next === 'f' || next === 'n') return ['literal', take(/true|false|null/y)];
    const token = take(/-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y);
    if (!/^(?:0|-?[1-9][0-9]*)$/.test(token) || !Number.isSafeInteger(Number(token))) {
      throw new Refused('not a plain safe integer');
    }
    return ['number', Number(token)];
  };
  const sequence = (close, one) => {
    space();
    if (text[at] === close) { at++; return; }
    for (;;) {
      one();
      space();
      const mark = text[at++];
      if (mark === close) return;
      if (mark !== ',') throw new Refused('malformed');
    }
  };
  const members = (depth) => {
    const map = new Map();
    sequence('}', () => {
      space();
      const name = string();
      if (map.has(name)) throw new Refused('duplicate name');
      space();
      take(/:/y);
      map.set(name, value(depth));
    });
    return map;
  };
  const elements = (depth) => {
    const list = [];
    sequence(']', () => list.push(value(depth)));
    return list;
  };
  const tree = value(0);
  space();
  if (at !== text.length) throw new Refused('data after the value');
  return tree;
}

function write([kind, content]) {
  switch (kind) {
    case 'object':
      return `{${[...content.keys()].sort().map((name) => `${JSON.stringify(name)}:${write(content.get(name))}`).join(',')}}`;
    case 'array':
      return `[${content.map(write).join(',')}]`;
    case 'literal':
      return content;
    default:
      return JSON.stringify(content);
  }
}

const bytesOf = (input) => (typeof input === 'string' ? Buffer.from(input, 'utf8') : input);
const canonical = (input) => write(readStrict(bytesOf(input)));

function refusal(input) {
  try {
    readStrict(bytesOf(input));
  } catch (error) {
    if (error instanceof Refused) return error.message;
    throw error;
  }
  return null;
}

// --- inputs ------------------------------------------------------------------

const nest = (depth) => '['.repeat(depth) + ']'.repeat(depth);
const everyEscape = `"${Array.from({ length: 0x22 }, (_, i) => `\\u${i.toString(16).padStart(4, '0')}`).join('')}\\u005c\\/\\u007f\\u00e9"`;

const accepted = [
  ['empty object', '{}'],
  ['empty array', ' [ ] '],
  ['literals', '[true,false,null]'],
  ['scalar at the root', ' 7 '],
  ['whitespace', ' {\t"b" :\r\n [ 1 , 2 ] , "a" : { } } '],
  ['largest and smallest safe integer', '[9007199254740991,-9007199254740991,0]'],
  ['U+E000 against U+1F600', '{"\ue000":1,"\u{1f600}":2}'],
  ['the same, escaped', '{"\\ue000":1,"\\ud83d\\ude00":2}'],
  ['U+FFFF against U+10000', '{"\uffff":1,"\u{10000}":2,"\ud7ff":3}'],
  ['U+2028 and U+2029', '"\u2028\\u2028\u2029\\u2029"'],
  ['U+2028 in a name', '{"\\u2028":1,"a":2}'],
  ['every control character', everyEscape],
  ['html characters', '"<>&\\u003c\\u003e\\u0026\'"'],
  ['solidus', '"\\/"'],
  ['upper-case escapes', '"\\u00E9\\uD83D\\uDE00\\u001F"'],
  ['noncharacter and replacement', '"\ufffe\uffff\ufffd"'],
  ['combining marks are not composed', '"e\\u0301\u00e9"'],
  ['prefix names', '{"aa":1,"a":2,"":3,"ab":4}'],
  ['index names', '{"10":1,"9":2,"1":3,"-1":4}'],
  ['prototype name', '{"b":1,"__proto__":{"z":1,"y":2},"a":3}'],
  ['case order', '{"b":1,"B":2,"a":3,"A":4,"_":5,"-":6}'],
  ['names that differ by escape only in writing', '{"\\u0061b":1,"\\u0061":2}'],
  ['nested order', '{"z":{"y":[{"x":1,"w":2}]},"a":{}}'],
  ['array keeps order', '[3,1,2,"b","a"]'],
  ['64 levels', nest(64)],
  ['64 levels of objects', '{"a":'.repeat(63) + '{}' + '}'.repeat(63)],
  ['brackets in strings do not nest', `["${'['.repeat(80)}"]`],
];

const refused = [
  ['2^53', '9007199254740992'],
  ['-2^53', '-9007199254740992'],
  ['a long integer', '[123456789012345678901234567890]'],
  ['negative zero', '-0'],
  ['negative zero inside', '{"a":[-0]}'],
  ['1.0', '1.0'],
  ['1e3', '1e3'],
  ['1E3', '[1E3]'],
  ['0.0', '0.0'],
  ['0e0', '0e0'],
  ['-0.5', '-0.5'],
  ['leading zero', '01'],
  ['plus sign', '+1'],
  ['bare minus', '-'],
  ['hexadecimal', '0x1'],
  ['NaN', 'NaN'],
  ['Infinity', '-Infinity'],
  ['lone high surrogate', '"\\ud800"'],
  ['lone low surrogate', '"\\udc00"'],
  ['surrogates in wrong order', '"\\ude00\\ud83d"'],
  ['high surrogate before text', '"\\ud83dx"'],
  ['two high surrogates', '"\\ud83d\\ud83d\\ude00"'],
  ['lone surrogate in a name', '{"\\ud800":1}'],
  ['surrogate as utf-8 bytes', Buffer.from('22eda08022', 'hex')],
  ['overlong utf-8', Buffer.from('22c08022', 'hex')],
  ['cut utf-8', Buffer.from('22e28022', 'hex')],
  ['byte ff', Buffer.from('22ff22', 'hex')],
  ['utf-8 beyond U+10FFFF', Buffer.from('22f490808022', 'hex')],
  ['byte order mark', '\ufeff{}'],
  ['duplicate name', '{"a":1,"a":1}'],
  ['duplicate name by escape', '{"a":1,"\\u0061":1}'],
  ['duplicate name apart', '{"a":1,"b":2,"a":3}'],
  ['duplicate empty name', '{"":1,"":2}'],
  ['duplicate name inside', '[{"x":{"a":1,"a":2}}]'],
  ['65 levels', nest(65)],
  ['65 levels of objects', '{"a":'.repeat(64) + '{}' + '}'.repeat(64)],
  ['trailing value', '{} {}'],
  ['trailing comma', '[1,]'],
  ['trailing comma in an object', '{"a":1,}'],
  ['leading comma', '[,1]'],
  ['missing comma', '[1 2]'],
  ['missing colon', '{"a" 1}'],
  ['bare name', '{a:1}'],
  ['single quotes', "{'a':1}"],
  ['name that is no string', '{1:1}'],
  ['control character in a string', '"\t"'],
  ['line end in a string', '"\n"'],
  ['unknown escape', '"\\x41"'],
  ['short escape', '"\\u12"'],
  ['cut object', '{"a":1'],
  ['cut string', '"a'],
  ['cut literal', 'tru'],
  ['upper-case literal', 'True'],
  ['comment', '/**/{}'],
  ['form feed', '\f{}'],
  ['no-break space', '\u00a0{}'],
  ['nothing', ''],
  ['whitespace alone', ' '],
  ['stray bracket', '{}}'],
];

// A small generator with a fixed seed: trees with names that sort differently
// by code unit and by code point, written with odd spacing and escapes.
function generated(count) {
  let state = 0x9e3779b9;
  const below = (n) => {
    state ^= state << 13; state ^= state >>> 17; state ^= state << 5;
    return (state >>> 0) % n;
  };
  const pieces = ['a', 'b', 'Z', '0', '"', '\\', '/', '\n', '\u0001', '\u007f', '\u00e9', '\u2028', '\ud7ff', '\ue000', '\uffff', '\u{10000}', '\u{1f600}', '\u{10ffff}', '<'];
  const word = () => Array.from({ length: below(4) }, () => pieces[below(pieces.length)]).join('');
  const spaces = () => ['', '', ' ', '\n\t'][below(4)];
  const quote = (s) => (below(3) > 0 ? JSON.stringify(s)
    : `"${Array.from({ length: s.length }, (_, i) => `\\u${s.charCodeAt(i).toString(16).padStart(4, '0')}`).join('')}"`);
  const value = (depth) => {
    const kind = below(depth > 3 ? 4 : 7);
    if (kind === 0) return ['true', 'false', 'null'][below(3)];
    if (kind === 1) return String(below(2) ? -1 - below(1 << 30) : below(1 << 30) * below(1 << 22));
    if (kind < 4) return quote(word());
    const items = Array.from({ length: below(5) }, () => value(depth + 1));
    if (kind === 4) return `[${items.map((item) => spaces() + item + spaces()).join(',')}]`;
    const names = new Set(items.map(word));
    return `{${[...names].map((name, i) => `${spaces()}${quote(name)}${spaces()}:${spaces()}${items[i]}`).join(',')}}`;
  };
  return Array.from({ length: count }, (_, i) => [`generated ${i}`, value(0)]);
}

// --- digests -----------------------------------------------------------------

// The same table as contract/digest.go. The three domains are this product's
// choice.
const digestDomains = {
  dnsLeaseRenewal: ['serve.zone/runtime-network-dns-lease-renewal', 'renewal'],
  relayCredential: ['serve.zone/cluster-relay-credential', 'credential'],
  acceptedRegistration: ['serve.zone/cluster-relay-accepted-registration', 'registration'],
};

const someDigest = (text) => `sha256:${createHash('sha256').update(text).digest('hex')}`;

const records = {
  dnsLeaseRenewal: [
    {
      controller: { kind: 'cloudly', id: 'controller-1' }, nodeId: '-node_a', runtimeNamespace: 'serve.zone:main',
      projection: { id: 'projection:1', generation: 7, digest: someDigest('projection') }, sequence: 1,
      dns: { issuedAt: 1767225600000, notBefore: 1767225600000, expiresAt: 1767226500000 },
    },
    {
      dns: { expiresAt: 9007199254740991, notBefore: 1, issuedAt: 0 }, sequence: 9007199254740991,
      projection: { digest: someDigest(''), generation: 1, id: 'p' }, runtimeNamespace: 'n', nodeId: '_',
      controller: { '\ue000': 1, '\u{1f600}': 2, note: '\u2028"\\/<' },
    },
  ],
  relayCredential: [
    {
      id: 'credential_1', cluster: 'cluster-a', generation: 3, userId: 'machine-1',
      delivery: { secretId: 'secret-1', version: 2, digest: someDigest('version') },
    },
  ],
  acceptedRegistration: [
    {
      id: 'registration-9', generation: 9, cluster: 'cluster-a', nodeId: 'node-a', listenAddress: '10.0.4.7', listenPort: 8443,
      version: '4.0.0', registrationSequence: 0, acceptedAt: 1767225600000,
      credential: { id: 'credential_1', generation: 3, digest: someDigest('credential') },
    },
  ],
};

function digestVectors() {
  const vectors = [];
  for (const [kind, [domain, member]] of Object.entries(digestDomains)) {
    for (const [i, record] of records[kind].entries()) {
      const hashed = canonical(JSON.stringify({ domain, [member]: record }));
      const digest = `sha256:${createHash('sha256').update(hashed, 'utf8').digest('hex')}`;
      const complete = JSON.stringify({ ...record, digest });
      vectors.push({ name: `${kind} ${i}`, kind, record: complete, hashed, digest });
      vectors.push({ name: `${kind} ${i} spaced, without its digest`, kind, record: JSON.stringify(record, null, 2), hashed, digest });
    }
  }
  return vectors;
}

// --- scalars the platform itself judges --------------------------------------

const days = ['2026-01-01', '2024-02-29', '2023-02-29', '2000-02-29', '1900-02-29', '2026-13-45', '2026-00-10', '2026-04-31', '2026-12-31',
  '0100-01-01', '0099-12-31', '0000-01-01', '9999-12-31', '10000-01-01', '2026-1-1', '2026-01-01 ', '2026/01/01', '', '-001-01-01'];

function isDay(text) {
  const match = /^(\d{4})-(\d{2})-(\d{2})$/.exec(text);
  if (match === null) return false;
  const date = new Date(Date.UTC(Number(match[1]), Number(match[2]) - 1, Number(match[3])));
  return date.toISOString().slice(0, 10) === text;
}

const origins = ['https://relay.example', 'https://relay.cluster-a.serve.zone:8443', 'https://relay.example:443', 'https://Relay.example',
  'https://relay.example/', 'https://relay.example/x', 'https://relay.example?', 'https://relay.example#', 'https://u@relay.example',
  'https://u:p@relay.example', 'https://@relay.example', 'http://relay.example', 'http://relay.example:80', 'http://relay.example:443',
  'https://relay.example:80', 'https://relay.example:', 'https://relay.example:08443', 'https://relay.example:65535', 'https://relay.example:65536',
  'https://10.0.0.1', 'https://10.0.0.1:8443', 'https://10.0.0.01', 'https://10.1', 'https://1', 'https://0x7f.1', 'https://256.1.1.1', 'https://a.1',
  'https://[::1]', 'https://[::1]:8443', 'https://[0:0::1]', 'https://[::A]', 'https://[1::]', 'https://[2001:db8::1]', 'https://[::1', 'https://::1',
  'https://localhost', 'https://a_b.example', 'https://a-.example', 'https://', 'https:relay.example', 'HTTPS://relay.example', 'ftp://relay.example',
  'wss://relay.example', 'https://relay.example\n', ' https://relay.example', 'https://re lay.example', 'https://relay%2eexample', 'https://b\u00fccher.example',
  'https://xn--bcher-kva.example', 'https://relay.example\\', 'https://a.0x', 'https://a.0x1g', 'https://1.2.3.4.5', 'null', ''];

function isOrigin(text) {
  try {
    const url = new URL(text);
    return (url.protocol === 'https:' || url.protocol === 'http:') && url.origin === text;
  } catch {
    return false;
  }
}

const key = (fill) => Buffer.alloc(32, fill).toString('base64');
const noiseKeys = [key(0), key(255), Buffer.from(someDigest('key').slice(7), 'hex').toString('base64'), Buffer.alloc(31).toString('base64'),
  Buffer.alloc(33).toString('base64'), key(255).replaceAll('/', '_'), key(0).slice(0, 43), `${key(0).slice(0, 42)}B=`, `${key(0).slice(0, 42)}==`,
  `${key(0)}\n`, `${key(0).slice(0, 42)}\n=`, ` ${key(0).slice(1)}`, ''];
const isNoiseKey = (text) => {
  const bytes = Buffer.from(text, 'base64');
  return bytes.length === 32 && bytes.toString('base64') === text;
};

// --- files -------------------------------------------------------------------

function made() {
  const judge = (list, rule) => list.map((text) => ({ text, valid: rule(text) }));
  const files = {
    'canonical.json': [...accepted, ...generated(96)].map(([name, input]) => ({ name, input, canonical: canonical(input) })),
    'refused.json': refused.map(([name, input]) => {
      const why = refusal(input);
      if (why === null) throw new Error(`not refused: ${name}`);
      return { name, inputBase64: bytesOf(input).toString('base64'), why };
    }),
    'key_order.json': (() => {
      const keys = ['', 'a', 'aa', 'A', 'ab', 'b', '_', '-', '0', '10', '9', '\u007f', '\u00e9', 'e\u0301', '\u2028', '\ud7ff', '\ue000', '\ufb33',
        '\uffff', '\u{10000}', '\u{1f600}', '\u{10ffff}', 'a\ue000', 'a\u{1f600}', '__proto__', '\u0000', ' ', '"', '\\'];
      return { keys, sorted: [...keys].sort() };
    })(),
    'digests.json': digestVectors(),
    'days.json': judge(days, isDay),
    'origins.json': judge(origins, isOrigin),
    'noise_keys.json': judge(noiseKeys, isNoiseKey),
  };
  return Object.entries(files).map(([name, content]) => [name, `${JSON.stringify(content, null, 1)}\n`]);
}

if (process.argv.includes('--check')) {
  const files = made();
  const expected = files.map(([name]) => name).sort();
  const present = readdirSync(directory).sort();
  const wrong = files.filter(([name, text]) => !present.includes(name) || readFileSync(join(directory, name), 'utf8') !== text).map(([name]) => name);
  wrong.push(...present.filter((name) => !expected.includes(name)));
  if (wrong.length > 0) {
    console.error(`vectors differ: ${wrong.join(', ')}`);
    process.exit(1);
  }
  console.log(`${files.length} vector files are as made`);
} else {
  mkdirSync(directory, { recursive: true });
  for (const [name, text] of made()) writeFileSync(join(directory, name), text);
}
